// How learning goes: quality, the guard's bets, events per minute, versions.

import { button, count, fixed, h } from "/page/dom.js";
import { Chart, marksOf, qualityData } from "/page/charts.js";
import { change, fallback, missing, version } from "/page/words.js";
import { rollback } from "/page/now.js";

const FORMS = [{ label: "start", color: "start" }, { label: "served", color: "served" }, { label: "live", color: "live" }];
const power = (v) => (Math.abs(v) < 4 ? fixed(10 ** v, v < 1 ? 2 : 0) : `1e${fixed(v, 0)}`);

export function learningView(app, place) {
  const formats = { format: (v) => fixed(v, 2), xFormat: count, height: 220 };
  const order = new Chart("Order of judged items (AUC), measured before each list was learned from", FORMS, formats);
  const first = new Chart("First place liked, measured before each list was learned from", FORMS, formats);
  const wealth = new Chart("The guard's bets: wealth, and what is needed for a promotion", [
    { label: "order", color: "live" }, { label: "needed", color: "live", dash: [5, 4] },
    { label: "first place", color: "served" }, { label: "needed ", color: "served", dash: [2, 3] },
  ], { height: 220, format: power, xFormat: count });
  const rate = new Chart("Events per minute, over the minutes until now", [{ label: "events", color: "served", bars: true }], {
    height: 140, format: (v) => count(v), xFormat: (v) => (v === 0 ? "now" : String(v)), range: (_, low, high) => [0, Math.max(high, 1)],
  });
  const words = h("ul", { class: "words-list" });
  const history = h("ol", { class: "history" });
  const versions = h("ul", { class: "versions" });
  const controls = h("p", { class: "buttons admin" },
    button("Promote what is being learned", () => decide(app, "promote", {}, "Promote?", "A copy of what is being learned is served from now on, although the guard has not decided so."), { id: "promote" }),
    button("Roll back", () => rollback(app), { class: "danger" }),
    button("Forget all that was learned", () => decide(app, "reset", {}, "Forget everything?", "All that was learned is left behind; the log of events stays."), { class: "danger" }));
  place.replaceChildren(
    h("h2", { id: "learning-heading" }, "Learning"),
    h("div", { class: "charts" }, order.figure, wealth.figure, first.figure, rate.figure),
    h("h3", {}, "What is missing for the next promotion"), words,
    h("h3", {}, "What was served, and why"), history, versions, controls);
  let drawn = null;
  const view = {
    reset() { drawn = null; },
    shown() { if (app.state) view.state(app.state); },
    state(state) {
      if (place.hidden || drawn === state || !state.curve) return;
      drawn = state;
      const marks = marksOf(state);
      for (const [chart, measure] of [[order, "auc"], [first, "first"]]) {
        const { data, width } = qualityData(state.curve, measure);
        const last = (k) => fixed(data[k].at(-1), 3);
        chart.set(data, marks, data[0].length ? `Mean of the last ${width} judged lists: start ${last(1)}, served ${last(2)}, live ${last(3)}.` : "No judged list yet.");
      }
      const { curve } = state;
      const tens = (name) => curve[name].map((v) => v / Math.LN10);
      wealth.set([curve.events, tens("wealth_rest"), tens("needed_rest"), tens("wealth_first"), tens("needed_first")], marks, state.guard ? `Order ${fixed(state.guard.wealth.rest, 2)} of ${fixed(state.guard.needed.rest, 0)}; first place ${fixed(state.guard.wealth.first, 2)} of ${fixed(state.guard.needed.first, 0)}.` : "There is no guard.");
      const minutes = state.per_minute;
      rate.set([minutes.map((_, i) => i - minutes.length + 1), minutes], [], `${count(minutes.at(-1))} in this minute, ${count(minutes.reduce((a, b) => a + b, 0))} in the last ${minutes.length}.`);
      drawWords(state);
    },
  };
  function drawWords(state) {
    const { guard } = state;
    if (!guard) return;
    const texts = ["rest", "first"].flatMap((name) => [missing(guard, name).text, fallback(guard, name)]).filter(Boolean);
    words.replaceChildren(...texts.map((text) => h("li", {}, text)));
    history.replaceChildren(...(state.marks.length ? state.marks.map((mark) => h("li", {}, change(mark))).reverse() : [h("li", {}, "The start has been served all the time.")]));
    const served = Object.values(guard.served);
    const kept = [{ version: 0, event: 0 }, ...state.versions];
    versions.replaceChildren(...kept.map((one) => h("li", {}, one.version ? `${version(one.version)}, made after ${count(one.event)} events` : version(0),
      served.includes(one.version) ? h("span", { class: "badge" }, "served") : null,
      app.may("admin") && !served.every((v) => v === one.version)
        ? button("serve this", () => decide(app, "promote", { version: one.version }, `Serve ${version(one.version)}?`, "It is served from now on, for the order and the first place."), { class: "quiet", "aria-label": `serve this: ${version(one.version)}` }) : null)));
  }
  return view;
}

async function decide(app, verb, body, title, text) {
  if (!(await app.confirm(title, text, "Do it"))) return;
  try {
    const done = await app.ask("POST", `/${verb}`, body);
    app.tell(verb === "reset" ? "All that was learned is forgotten." : `${version(done.version)} is served.`);
    app.search?.again();
  } catch (error) {
    app.failed(error);
  }
}
