// What the guard's numbers mean, in sentences.

import { count, fixed } from "/page/dom.js";

export const PLACES = { rest: "the order", first: "the first place" };
export const version = (number) => (number ? `version ${number}` : "the start");

export function servedSentence(guard) {
  const { rest, first } = guard.served;
  return rest === first ? `Served: ${version(rest)}.` : `Served: ${version(rest)} for the order, ${version(first)} for the first place.`;
}

// What is missing for the next promotion of a place.
export function missing(guard, place) {
  const [wealth, needed, lists] = [guard.wealth[place], guard.needed[place], guard.expected_events[place]];
  const share = Math.min(Math.max(Math.log(Math.max(wealth ?? needed, 1e-300)) / Math.log(needed), 0), 1);
  const what = PLACES[place];
  let text;
  if (wealth === null || wealth >= needed) {
    const holds = [];
    if (!guard.credible) holds.push("answers that agree with the start better than chance");
    if (place === "rest" && !guard.gain) holds.push("a gain in the mean, not only on most lists");
    text = holds.length ? `For ${what} the bet is won (${fixed(wealth ?? needed, 0)} of ${fixed(needed, 0)}). Still missing: ${holds.join(", and ")}.` : `For ${what} a promotion is due with the next judged list.`;
  } else {
    const hope = lists === null ? "so far it was not better, so none is in sight" : `about ${count(Math.ceil(lists))} more judged lists like those so far`;
    text = `For ${what} the bet that what is being learned is better stands at ${fixed(wealth, 2)}; ${fixed(needed, 0)} is needed: ${hope}.`;
  }
  return { share, text };
}

export function credibility(guard) {
  return guard.credible
    ? `Answers agree with the start better than chance (${fixed(guard.agreement, 2)} in the mean of the last 200).`
    : `Answers do not agree with the start better than chance yet (${fixed(guard.agreement, 2)}): until they do, nothing is promoted.`;
}

export function fallback(guard, place) {
  const share = guard.fallback[place];
  return guard.served[place] ? `If the start turns out to be better for ${PLACES[place]}, it is served again; ${fixed(100 * share, 1)} % of what that takes is reached.` : null;
}

const WHY = { promote: "promoted by the guard", "fall back": "fallen back to the start", "by hand": "set by hand", reset: "everything was forgotten", "warm start": "begun with pairs" };
export function change(mark) {
  const where = PLACES[mark.place] ?? "everything";
  return `${count(mark.events)} events: ${where} → ${version(mark.version)} (${WHY[mark.why] ?? mark.why})`;
}
