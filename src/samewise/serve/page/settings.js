// Settings and facts; the token; what an admin may do beside.

import { button, count, h, said } from "/page/dom.js";
import { token } from "/page/api.js";

const MEANS = {
  encoder: "where vectors come from", text_field: "the field of a payload that is encoded", guard: "the probability of any false promotion",
  margin: "by how much liked items should stand out", memory: "how many lists are remembered", half_life: "after how many events what was learned counts half",
  personal: "how many newest lists of who asks count for this person alone",
};

export function settingsView(app, place) {
  const facts = h("dl", { class: "facts" });
  const session = h("p", { class: "buttons" },
    button("Enter a token", () => app.askForToken(), { id: "enter-token" }),
    button("Forget the token", () => { token.set(""); location.reload(); }));
  const admin = h("div", { class: "admin" }, h("h3", {}, "Maintenance"), h("p", { class: "buttons" },
    button("Fit again to the items", () => act("start", { again: true }, "Start again?", "Encoder and units are taken from the items as they are now, and what was learned is left behind.")),
    button("Compact", () => act("compact", undefined, "Compact?", "Removes records and vectors that no replay and no search can reach."))));
  place.replaceChildren(h("h2", { id: "settings-heading" }, "Settings"), h("p", {}, "They are fixed when a collection is made."), facts, h("h3", {}, "This tab"), session, admin);
  async function act(verb, body, title, text) {
    if (!(await app.confirm(title, text, "Do it"))) return;
    try {
      await app.ask("POST", `/${verb}`, body);
      app.tell("Done.");
    } catch (error) {
      app.failed(error);
    }
  }
  const view = {
    shown() { if (app.state) view.state(app.state); },
    state(state) {
      if (place.hidden) return;
      const rows = [...Object.entries(state.settings).map(([name, value]) => [name, value ?? "none", MEANS[name] ?? ""]),
        ["items", count(state.items), "what can be found"], ["width", state.width ?? "none yet", "numbers in a vector"],
        ["record", count(state.seq), "up to which was learned"], ["waiting", count(state.committed - state.seq), "records that are committed and not learned from yet"]];
      facts.replaceChildren(...rows.map(([name, value, means]) => h("div", {}, h("dt", {}, name), h("dd", {}, said(value, 100), h("span", { class: "soft" }, means)))));
    },
  };
  return view;
}
