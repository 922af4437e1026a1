// The frame of the page: which collection, who one is, which view, and what the service says meanwhile.

import { $, announce, button, count, h } from "/page/dom.js";
import { Refused, at, outbox, request, stream, token } from "/page/api.js";
import { searchView } from "/page/search.js";
import { learningView } from "/page/learning.js";
import { mapView } from "/page/map.js";
import { hardView, peopleView } from "/page/people.js";
import { settingsView } from "/page/settings.js";
import { nowView } from "/page/now.js";

const VIEWS = {
  search: ["Search and teach", searchView],
  learning: ["Learning", learningView],
  map: ["Map", mapView],
  hard: ["Hard queries", hardView],
  people: ["Who taught", peopleView],
  settings: ["Settings", settingsView],
};
const RIGHTS = { read: "read only", feedback: "may teach", admin: "admin" };

// What the views share.
const app = {
  collection: null,
  scope: null,
  state: null,
  user: localStorage.getItem("samewise-user") ?? "",
  may: (scope) => ["read", "feedback", "admin"].indexOf(app.scope) >= ["read", "feedback", "admin"].indexOf(scope),
  ask: (method, path, body) => request(method, at(app.collection, path), body),
  tell: announce,
  failed(error) {
    if (error instanceof Refused && error.status === 401) askForToken();
    else announce(error instanceof Refused ? error.message : "The service gave no answer; it is asked again when it is back.");
  },
  confirm: confirmed,
  go: (view) => { location.hash = view; },
  search: null,
};

const views = {};
let stop = null;

function shownView() {
  const name = location.hash.slice(1);
  return name in VIEWS ? name : "search";
}

function route() {
  const name = shownView();
  for (const key of Object.keys(VIEWS)) {
    $(`view-${key}`).hidden = key !== name;
    const link = $(`tab-${key}`);
    if (key === name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${VIEWS[name][0]} · samewise`;
  views[name]?.shown?.();
}

function confirmed(title, text, action) {
  const dialog = $("ask");
  return new Promise((done) => {
    const close = (answer) => { dialog.close(); done(answer); };
    dialog.replaceChildren(
      h("h2", { id: "ask-heading" }, title),
      h("p", {}, text),
      h("p", { class: "buttons" }, button(action, () => close(true), { class: "primary" }), button("Cancel", () => close(false), { autofocus: true })),
    );
    dialog.oncancel = () => done(false);
    dialog.showModal();
  });
}

function askForToken() {
  const dialog = $("ask");
  if (dialog.open) return;
  const input = h("input", { id: "token-input", type: "password", autocomplete: "off", spellcheck: "false" });
  const enter = (event) => {
    event.preventDefault();
    token.set(input.value.trim());
    dialog.close();
    begin();
  };
  dialog.replaceChildren(
    h("h2", { id: "ask-heading" }, "A token is needed"),
    h("p", {}, "It stays in this tab, and is sent with each request."),
    h("form", { onsubmit: enter },
      h("label", { for: "token-input", class: "block" }, "Token"), input,
      h("p", { class: "buttons" }, h("button", { class: "primary", type: "submit" }, "Enter"))),
  );
  dialog.oncancel = null;
  dialog.showModal();
  input.focus();
}
app.askForToken = askForToken;

let [statusText, statusKind] = ["connecting", "bad"];

function status(text, kind) {
  [statusText, statusKind] = [text, kind];
  app.showStatus();
}

app.showStatus = () => {
  const place = $("status");
  const waits = outbox.size();
  place.textContent = waits ? `${statusText}, ${count(waits)} not sent yet` : statusText;
  place.dataset.kind = statusKind;
};

function onStatus(kind, code) {
  app.connected = kind === "connected";
  if (kind === "connected") {
    status("connected", "good");
    outbox.flush().then(app.showStatus);
  } else if (kind === "refused") {
    status("refused", "bad");
    if (code === 401) askForToken();
    else begin();
  } else status("reconnecting", "bad");
}

function onState(state) {
  app.state = state;
  views.now.state(state);
  for (const view of Object.values(views)) if (view !== views.now) view.state?.(state);
}

// A browser has six connections to a host, for all its tabs and for pages that one may go back to:
// a page that nobody sees listens only if something is left to send.
function listen() {
  stop?.();
  stop = null;
  if (app.collection && !(document.hidden && !outbox.size())) stop = stream(at(app.collection, "/watch"), onState, onStatus);
}

function choose(name) {
  app.collection = name;
  app.state = null;
  localStorage.setItem("samewise-collection", name);
  for (const view of Object.values(views)) view.reset?.();
  listen();
  route();
}

async function begin() {
  try {
    app.scope = (await request("GET", "/whoami")).scope;
    const found = Object.keys(await request("GET", "/collections"));
    const select = $("collection");
    select.replaceChildren(...found.map((name) => h("option", { value: name }, name)));
    const badge = $("rights");
    badge.textContent = RIGHTS[app.scope];
    badge.hidden = false;
    document.body.dataset.scope = app.scope;
    if (!found.length) {
      status("no collection yet", "bad");
      $("view-search").replaceChildren(
        h("h2", { id: "search-heading" }, "No collection yet"),
        h("p", {}, "Make one, and put items into it: the guide “A search that learns” has the requests. This page finds it by itself."));
      setTimeout(begin, 3000);
      return;
    }
    const last = localStorage.getItem("samewise-collection");
    select.value = found.includes(last) ? last : found[0];
    if (!views.now) for (const [key, [, make]] of Object.entries(VIEWS)) views[key] = make(app, $(`view-${key}`));
    views.now ??= nowView(app, $("now"));
    choose(select.value);
  } catch (error) {
    if (error instanceof Refused && error.status === 401) {
      status("a token is needed", "bad");
      askForToken();
    } else {
      status(error instanceof Refused ? error.message : "no answer", "bad");
      setTimeout(begin, 2000);
    }
  }
}

$("tabs").append(...Object.entries(VIEWS).map(([key, [title]]) => h("li", {}, h("a", { href: `#${key}`, id: `tab-${key}` }, title))));
document.addEventListener("visibilitychange", listen);
$("collection").addEventListener("change", (event) => choose(event.target.value));
addEventListener("hashchange", () => { route(); $("view").focus({ preventScroll: true }); });
route();
begin();
