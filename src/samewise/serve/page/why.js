// Why an item is where it is, in words and bars.

import { count, fixed, h } from "/page/dom.js";

const NAMES = { served: "what is served", live: "what is being learned", first: "what chooses the first place" };

export function why(found, which) {
  const parts = found.scores[which];
  const gain = parts.linear + parts.remembered;
  const direction = gain > 0.0005 ? "closer to the query" : gain < -0.0005 ? "farther from the query" : "no nearer and no farther";
  const pulls = found.nearest_lists.filter((one) => Math.abs(one.pull) > 1e-9);
  const toward = pulls.filter((one) => one.pull > 0).length;
  const most = Math.max(...[parts.score - gain, parts.linear, parts.remembered].map(Math.abs), 1e-9);
  const bar = (label, value) => h("div", { class: "bar" }, h("span", { class: "bar-label" }, label),
    h("meter", { min: 0, max: most, value: Math.abs(value), "aria-label": label }), h("span", { class: value < 0 ? "bad" : "" }, fixed(value)));
  return h("div", { class: "why" },
    h("p", {}, `Learning has moved it ${direction}: ${fixed(found.scores.start.score)} under the start, ${fixed(parts.score)} under ${NAMES[which]}.`),
    bar("the start", parts.score - gain),
    bar("learned for all queries", parts.linear),
    bar("remembered lists near this query", parts.remembered),
    found.personal ? bar("your own lists, on top", found.personal) : null,
    pulls.length
      ? h("p", {}, `Of the ${count(pulls.length)} remembered lists with the nearest queries, ${toward} pull it up and ${pulls.length - toward} down: ${pulls.map((one) => `${one.seq ? `record ${count(one.seq)}` : "an older one"} (similarity ${fixed(one.similarity, 2)}, pull ${fixed(one.pull, 2)})`).join(", ")}.`)
      : h("p", {}, "No remembered list near this query speaks of it."));
}
