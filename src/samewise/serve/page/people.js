// Which queries are hard, and who taught what.

import { button, count, fixed, h, said, when } from "/page/dom.js";

function loader(app, place, path, draw) {
  let asked = null;
  const view = {
    reset() { asked = null; },
    async shown() {
      if (place.hidden || !app.collection || asked === app.state?.seq) return;
      asked = app.state?.seq ?? null;
      try {
        draw(await app.ask("GET", path), view);
      } catch (error) {
        asked = null;
        app.failed(error);
      }
    },
  };
  return view;
}

export function hardView(app, place) {
  const list = h("ol", { class: "hard" });
  place.replaceChildren(h("h2", { id: "hard-heading" }, "Hard queries"),
    h("p", {}, "Judged lists of late in which what was served put disliked items above liked ones, the worst first; 0.5 is chance, 1 is right."), list);
  const titles = (name, texts) => h("p", { class: name }, h("strong", {}, name === "liked" ? "liked: " : "not liked: "), ...texts.flatMap((text, i) => [i ? " · " : "", said(text, 80)]));
  return loader(app, place, "/hard", ({ queries }) => {
    list.replaceChildren(...queries.map((one) => h("li", {},
      h("div", {}, h("strong", {}, said(one.asked, 200)), h("span", { class: "score" }, `served ${fixed(one.auc.served, 2)}, start ${fixed(one.auc.start, 2)}, live ${fixed(one.auc.live, 2)}`)),
      titles("liked", one.liked), titles("disliked", one.disliked),
      h("p", { class: "soft" }, one.user === null ? "no name" : said(one.user, 60), `, ${when(one.time)}`))));
    if (!queries.length) list.replaceChildren(h("li", {}, "None: no judged list so far was ranked worse than by chance."));
  });
}

export function peopleView(app, place) {
  const body = h("tbody");
  const note = h("p", { class: "soft" });
  place.replaceChildren(h("h2", { id: "people-heading" }, "Who taught"),
    h("p", {}, "Agreement is how far the start agrees with the answers: 1 always, 0 as by chance, below 0 against them."),
    h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Table of users" }, h("table", {}, h("thead", {}, h("tr", {}, ...["User", "Events", "Kinds", "Agreement", "First", "Last"].map((name) => h("th", { scope: "col" }, name)), h("th", { scope: "col", class: "admin" }, "Forget"))), body)), note);
  const forget = async (user, view) => {
    if (!(await app.confirm("Forget this person?", `All events and impressions of “${user.slice(0, 60)}” go, and the model is built again without them.`, "Forget"))) return;
    try {
      const done = await app.ask("DELETE", `/events?user=${encodeURIComponent(user)}`);
      app.tell(`${count(done.count)} events are forgotten.`);
      view.reset();
      view.shown();
    } catch (error) {
      app.failed(error);
    }
  };
  return loader(app, place, "/teachers", ({ users, more, since }, view) => {
    body.replaceChildren(...users.map((one) => h("tr", {},
      h("th", { scope: "row" }, one.user === null ? "without a name" : said(one.user, 60)),
      h("td", {}, count(one.events)),
      h("td", {}, Object.entries(one.kinds).map(([name, n]) => `${count(n)} ${name}`).join(", ")),
      h("td", { class: one.agreement !== null && one.agreement < 0.05 ? "bad" : "" }, fixed(one.agreement, 2)),
      h("td", {}, when(one.first)), h("td", {}, when(one.last)),
      h("td", { class: "admin" }, one.user === null ? "" : button("forget", () => forget(one.user, view), { class: "quiet danger", "aria-label": `Forget ${one.user.slice(0, 60)}` })))));
    note.textContent = [since > 1 ? `Counted from record ${count(since)} on.` : "", more ? `${count(more)} more are not shown.` : "", users.length ? "" : "Nobody yet."].filter(Boolean).join(" ");
  });
}
