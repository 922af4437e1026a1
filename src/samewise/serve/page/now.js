// Beside every view: what is served, what is missing for a promotion, and the way back.

import { $, button, count, fixed, h } from "/page/dom.js";
import { Chart, marksOf, qualityData } from "/page/charts.js";
import { credibility, missing, servedSentence, version } from "/page/words.js";

export function nowView(app, place) {
  const chart = new Chart("Quality before learning (AUC of judged lists)", [
    { label: "start", color: "start" }, { label: "served", color: "served" }, { label: "live", color: "live" },
  ], { height: 150, format: (v) => fixed(v, 2), xFormat: count });
  const words = h("div", {});
  const numbers = h("dl", { class: "numbers" });
  const back = button("Roll back", () => rollback(app), { id: "rollback", class: "admin danger", disabled: true });
  place.replaceChildren(h("h2", {}, "Now"), words, h("p", { class: "buttons" }, back), chart.figure, numbers);
  return {
    reset() {
      words.replaceChildren(h("p", {}, "waiting for the service"));
      numbers.replaceChildren();
      chart.figure.hidden = true;
    },
    state(state) {
      numbers.replaceChildren(...[["items", state.items], ["events", state.events], ["record", state.seq]].map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", { id: `n-${name}` }, count(value)))));
      if (state.failed) return words.replaceChildren(h("p", { class: "bad" }, "Learning has stopped; start the service again."));
      if (!state.started) return words.replaceChildren(h("p", {}, "Nothing was searched yet: the first search starts the collection."));
      const { guard } = state;
      if (!guard) return words.replaceChildren(h("p", {}, "Without a guard, what is being learned is served at once."));
      words.replaceChildren(
        h("p", { class: "big", id: "served" }, servedSentence(guard)),
        ...["rest", "first"].map((name) => {
          const { share, text } = missing(guard, name);
          return h("div", { class: "missing" }, h("progress", { max: 1, value: share, "aria-label": `To the next promotion of ${name === "rest" ? "the order" : "the first place"}` }), h("p", {}, text));
        }),
        h("p", { class: guard.credible ? "" : "note" }, credibility(guard)));
      back.disabled = !(app.may("admin") && Math.max(guard.served.rest, guard.served.first) > 0);
      const { data, lists, width } = qualityData(state.curve, "auc");
      chart.figure.hidden = lists === 0;
      const last = (k) => fixed(data[k].at(-1), 3);
      if (lists) chart.set(data, marksOf(state), `Mean of the last ${width} judged lists: start ${last(1)}, served ${last(2)}, live ${last(3)}.`);
    },
  };
}

export async function rollback(app) {
  if (!(await app.confirm("Roll back?", "The version before the newest one is served, from now on. What was learned stays, and may be promoted again.", "Roll back"))) return;
  try {
    const done = await app.ask("POST", "/rollback", {});
    app.tell(`Rolled back: ${version(done.version)} is served.`);
    app.search?.again();
  } catch (error) {
    app.failed(error);
  }
  $("rollback")?.focus();
}
