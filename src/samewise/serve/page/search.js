// Search, two lists side by side, and teaching.

import { button, fixed, h, icon, linked, picture, said } from "/page/dom.js";
import { outbox } from "/page/api.js";
import { why } from "/page/why.js";

const HISTORY = "samewise-taught";
const places = (n) => `${n} place${n === 1 ? "" : "s"}`;

export function searchView(app, place) {
  const view = new Search(app, place);
  app.search = view;
  return view;
}

class Search {
  constructor(app, place) {
    this.app = app;
    this.marks = new Map();
    this.order = [];
    this.answer = null;
    this.query = null;
    this.build(place);
  }

  build(place) {
    const { app } = this;
    this.text = h("input", { id: "query", type: "search", autocomplete: "off", maxlength: 20000, placeholder: "Search, or pick a query below", "aria-label": "Query" });
    this.which = h("select", { id: "which", onchange: () => this.again() },
      h("option", { value: "served" }, "what is served"), h("option", { value: "live" }, "what is being learned"));
    this.mix = h("input", { id: "mix", type: "checkbox", onchange: () => this.again() });
    this.clicks = h("input", { id: "clicks", type: "checkbox" });
    this.user = h("input", { id: "user", value: app.user, maxlength: 100, autocomplete: "off" });
    this.user.addEventListener("change", () => {
      app.user = this.user.value.trim();
      localStorage.setItem("samewise-user", app.user);
    });
    this.picks = h("ul", { class: "picks", "aria-label": "Queries to pick" });
    this.start = h("ol", { class: "results", "aria-labelledby": "start-title" });
    this.now = h("ol", { class: "results", "aria-labelledby": "now-title" });
    this.nowTitle = h("h3", { id: "now-title" }, "What is served");
    this.bar = h("div", { class: "teachbar", role: "group", "aria-label": "Teach" });
    this.taught = h("ol", { class: "taught" });
    this.lists = h("div", { class: "lists", hidden: true },
      h("div", { class: "list" }, h("h3", { id: "start-title" }, "The start"), this.start),
      h("div", { class: "list" }, this.nowTitle, this.bar, this.now));
    const submit = (event) => {
      event.preventDefault();
      if (this.text.value.trim()) this.ask({ text: this.text.value.trim() });
    };
    place.replaceChildren(
      h("h2", { id: "search-heading" }, "Search and teach"),
      h("form", { class: "searchbar", role: "search", onsubmit: submit }, this.text, h("button", { class: "primary", type: "submit" }, "Search")),
      h("div", { class: "options" },
        h("label", { class: "field" }, "Compare the start with ", this.which),
        h("label", { class: "check teacher" }, this.mix, " mix in candidates, which teach more"),
        h("label", { class: "check teacher" }, this.clicks, " learn from my clicks"),
        h("label", { class: "field teacher" }, "Teach as ", this.user)),
      h("div", { class: "pickrow" }, this.picks, button("Other queries", () => this.pick(), { class: "quiet" })),
      this.lists,
      h("details", { class: "teacher", id: "taught-box" }, h("summary", {}, "What you taught in this tab"), this.taught));
    this.now.addEventListener("keydown", (event) => this.key(event));
    addEventListener("keydown", (event) => {
      if ((event.ctrlKey || event.metaKey) && event.key === "z" && !/INPUT|TEXTAREA/.test(event.target.tagName)) {
        event.preventDefault();
        this.undoLast();
      }
    });
    this.drawTaught();
  }

  reset() {
    this.marks.clear();
    this.answer = this.query = null;
    this.lists.hidden = true;
    this.picks.replaceChildren();
    this.drawTaught();
    this.pick();
  }

  async pick() {
    try {
      const { items } = await this.app.ask("GET", "/pick?n=6");
      this.picks.replaceChildren(...items.map((item) => h("li", {},
        button(said(item.title, 44), () => this.ask({ item: item.id, title: item.title }), { class: "pick" }))));
    } catch (error) {
      this.app.failed(error);
    }
  }

  again() {
    if (this.query) this.ask(this.query);
  }

  // A query is a text, or an item to which others are to be like.
  async ask(query, minSeq = 0) {
    const { title, ...asked } = query;
    // Not when it is asked again: the next query may be half typed.
    if (query !== this.query) {
      this.text.value = query.text ?? title ?? query.item;
      this.marks.clear();
    }
    this.query = query;
    const body = { ...asked, k: 10, which: this.which.value, min_seq: minSeq };
    if (this.mix.checked) body.explore = 3;
    if (this.app.user) body.user = this.app.user;
    const began = performance.now();
    try {
      const answer = await this.app.ask("POST", "/compare", body);
      if (query !== this.query) return;
      this.took = performance.now() - began;
      this.answer = answer;
      const ids = new Set(answer.results.map((result) => result.id));
      for (const id of this.marks.keys()) if (!ids.has(id)) this.marks.delete(id);
      this.order = answer.results.map((result) => result.id);
      this.draw();
    } catch (error) {
      this.app.failed(error);
    }
  }

  // Drawing

  draw() {
    this.lists.hidden = false;
    this.lists.dataset.asked = this.query.text ?? this.query.item;
    this.nowTitle.textContent = this.which.value === "live" ? "What is being learned" : "What is served";
    this.start.replaceChildren(...this.answer.start.map((entry, i) => this.startRow(entry, i)));
    this.drawNow();
    this.app.state && this.app.search.onAnswer?.(this.answer);
  }

  drawNow() {
    const byId = new Map(this.answer.results.map((result) => [result.id, result]));
    const active = document.activeElement?.dataset?.key;
    this.now.replaceChildren(...this.order.map((id, i) => this.nowRow(byId.get(id), i)));
    if (active) this.now.querySelector(`[data-key="${CSS.escape(active)}"]`)?.focus();
    this.drawBar();
  }

  startRow(entry, i) {
    const other = entry.other_place;
    const moved = other === null ? ["gone", `below ${this.answer.depth}`] : moveOf(i, other);
    return h("li", { class: "result" }, h("span", { class: "place" }, i + 1),
      picture(entry.payload.image, entry.title),
      h("div", { class: "words" }, h("span", {}, said(entry.title)), h("span", { class: `moved ${moved[0]}` }, `now ${other === null ? moved[1] : `at ${other + 1}`}`)));
  }

  nowRow(entry, i) {
    const title = entry.title.slice(0, 60);
    const moved = entry.other_place === null ? ["up", `from below ${this.answer.depth}`] : moveOf(entry.other_place, this.answer.results.indexOf(entry));
    const mark = this.marks.get(entry.id);
    const act = (name, label, what, more = {}) => h("button", { type: "button", class: "act", "data-key": `${name} ${entry.id}`, title: label, "aria-label": `${label}: ${title}`, onclick: what, ...more }, more.text ?? icon(name));
    const acts = this.app.may("feedback") ? [
      act("up", "Good", () => this.mark(entry.id, 1), { "aria-pressed": String(mark === 1) }),
      act("down", "Not good", () => this.mark(entry.id, -1), { "aria-pressed": String(mark === -1) }),
      act("higher", "Move up", () => this.move(i, i - 1), { disabled: i === 0 }),
      act("lower", "Move down", () => this.move(i, i + 1), { disabled: i === this.order.length - 1 }),
      act("same", "Same as the query", () => this.teach({ type: "same", item: entry.id }, `same as the query: ${title}`), { text: "same" }),
    ] : [];
    const details = h("div", { class: "details", hidden: true });
    const open = h("button", { type: "button", class: "title", "aria-expanded": "false", "data-key": `title ${entry.id}`, onclick: () => this.open(entry, open, details) }, said(entry.title));
    const row = h("li", { class: "result", draggable: this.app.may("feedback") ? "true" : null, "data-id": entry.id },
      h("span", { class: "place" }, i + 1),
      picture(entry.payload.image, entry.title),
      h("div", { class: "words" }, open,
        h("span", { class: `moved ${moved[0]}` }, moved[1]),
        entry.why === "served" ? null : h("span", { class: "moved new" }, entry.why),
        h("span", { class: "score" }, fixed(entry.score)),
        h("div", { class: "acts" }, acts, act("why", "Why is it here", () => this.explain(entry, details), { text: "why?" })),
        details));
    this.draggable(row, i);
    return row;
  }

  draggable(row, i) {
    row.addEventListener("dragstart", (event) => {
      event.dataTransfer.setData("text/plain", String(i));
      event.dataTransfer.effectAllowed = "move";
      row.classList.add("dragged");
    });
    row.addEventListener("dragend", () => row.classList.remove("dragged"));
    row.addEventListener("dragover", (event) => { event.preventDefault(); row.classList.add("over"); });
    row.addEventListener("dragleave", () => row.classList.remove("over"));
    row.addEventListener("drop", (event) => {
      event.preventDefault();
      row.classList.remove("over");
      const from = Number.parseInt(event.dataTransfer.getData("text/plain"), 10);
      if (from >= 0 && from < this.order.length) this.move(from, i);
    });
  }

  drawBar() {
    const good = [...this.marks.values()].filter((mark) => mark > 0).length;
    const bad = this.marks.size - good;
    const moved = this.answer.results.some((result, i) => result.id !== this.order[i]);
    if (!this.app.may("feedback")) this.bar.replaceChildren();
    else this.bar.replaceChildren(
      button(this.marks.size ? `Teach: ${good} good, ${bad} not` : "Teach", () => this.teachMarks(), { class: "primary", id: "teach", disabled: this.marks.size === 0 }),
      button("Teach this order", () => this.teachOrder(), { id: "teach-order", disabled: !moved }),
      button("Undo last", () => this.undoLast(), { id: "undo", disabled: this.taughtHere().length === 0 }));
  }

  open(entry, opener, details) {
    const opens = opener.getAttribute("aria-expanded") !== "true";
    opener.setAttribute("aria-expanded", String(opens));
    details.hidden = !opens;
    if (!opens) return;
    details.replaceChildren(payloadList(entry));
    if (this.app.may("feedback") && this.clicks.checked) {
      this.teach({ type: "click", clicked: [entry.id] }, `clicked: ${entry.title.slice(0, 60)}`, false);
    }
  }

  async explain(entry, details) {
    if (!details.hidden && details.dataset.shows === "why") {
      details.hidden = true;
      return;
    }
    details.dataset.shows = "why";
    details.hidden = false;
    details.replaceChildren(h("p", {}, "looking"));
    try {
      const query = new URLSearchParams({ impression: this.answer.impression, item: entry.id });
      const found = await this.app.ask("GET", `/explain?${query}`);
      details.replaceChildren(why(found, this.which.value === "served" && entry.position === 0 ? "first" : this.which.value));
    } catch (error) {
      details.hidden = true;
      this.app.failed(error);
    }
  }

  // Teaching

  mark(id, value) {
    if (this.marks.get(id) === value) this.marks.delete(id);
    else this.marks.set(id, value);
    this.drawNow();
  }

  move(from, to) {
    if (to < 0 || to >= this.order.length || from === to) return;
    const [id] = this.order.splice(from, 1);
    this.order.splice(to, 0, id);
    this.drawNow();
    this.app.tell(`Moved to place ${to + 1}.`);
  }

  key(event) {
    const row = event.target.closest("li.result");
    if (!row) return;
    const rows = [...this.now.children];
    const i = rows.indexOf(row);
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && event.altKey && this.app.may("feedback")) {
      event.preventDefault();
      this.move(i, i + step);
      this.now.children[i + step]?.querySelector(".title")?.focus();
    } else if (step) {
      event.preventDefault();
      rows[i + step]?.querySelector(".title")?.focus();
    } else if ((event.key === "+" || event.key === "-") && this.app.may("feedback")) {
      event.preventDefault();
      this.mark(row.dataset.id, event.key === "+" ? 1 : -1);
      this.now.children[i]?.querySelector(".title")?.focus();
    }
  }

  teachMarks() {
    const ids = (value) => [...this.marks].filter(([, mark]) => mark === value).map(([id]) => id);
    const [liked, disliked] = [ids(1), ids(-1)];
    const what = `${liked.length} good, ${disliked.length} not`;
    // The next query may be asked before all of it is sent.
    const about = { answer: this.answer, query: this.query };
    this.marks.clear();
    this.drawNow();
    if (liked.length && disliked.length) return this.teach({ type: "judged", liked, disliked }, what, true, about);
    // A list of one kind compares nothing: each item is set against others that the service takes.
    const all = [...liked.map((item) => ({ type: "thumb", item, up: true })), ...disliked.map((item) => ({ type: "thumb", item, up: false }))];
    return all.reduce((before, event, i) => before.then(() => this.teach(event, `${event.up ? "good" : "not good"}: ${event.item}`, i === all.length - 1, about)), Promise.resolve());
  }

  teachOrder() {
    return this.teach({ type: "ranked", ranked: this.order }, "an order");
  }

  async teach(event, what, asksAgain = true, { answer, query } = this) {
    const { app } = this;
    const id = crypto.randomUUID?.() ?? [...crypto.getRandomValues(new Uint8Array(16))].map((b) => b.toString(16).padStart(2, "0")).join("");
    const whole = { ...event, event: id, impression: answer.impression };
    if (app.user) whole.user = app.user;
    const again = { query: answer.query };
    if (event.type !== "ranked") again.shown = answer.results.map((result) => result.id);
    const found = await outbox.send(app.collection, whole, again);
    if (found?.refused) return app.failed(found.refused);
    this.note({ event: id, collection: app.collection, what, asked: String(query.text ?? query.title ?? query.item).slice(0, 80) });
    app.showStatus();
    if (!found) {
      app.tell("Kept here; it is sent as soon as the service is back.");
    } else {
      app.tell(`Taught: ${what}.`);
      if (asksAgain && query === this.query) await this.ask(query, found.seq);
    }
    return found;
  }

  // What was taught here, and its undoing

  all() {
    return JSON.parse(sessionStorage.getItem(HISTORY) ?? "[]");
  }

  taughtHere() {
    return this.all().filter((one) => one.collection === this.app.collection);
  }

  note(one) {
    sessionStorage.setItem(HISTORY, JSON.stringify([...this.all(), one].slice(-200)));
    this.drawTaught();
  }

  drawTaught() {
    const list = this.taughtHere().reverse();
    this.taught.replaceChildren(...list.map((one) => h("li", {}, said(one.what, 100), " for ", said(one.asked, 80), " ",
      button("undo", () => this.undo(one), { class: "quiet", "aria-label": `Undo: ${one.what}` }))));
    if (!list.length) this.taught.replaceChildren(h("li", {}, "Nothing yet."));
    if (this.answer) this.drawBar();
  }

  undoLast() {
    const last = this.taughtHere().at(-1);
    if (last) this.undo(last);
  }

  async undo(one) {
    try {
      const { seq } = await this.app.ask("DELETE", `/events/${encodeURIComponent(one.event)}`);
      sessionStorage.setItem(HISTORY, JSON.stringify(this.all().filter((other) => other.event !== one.event)));
      this.drawTaught();
      this.app.tell("Undone: it is as if it had never been said.");
      if (this.query) await this.ask(this.query, seq);
    } catch (error) {
      this.app.failed(error);
    }
  }
}

function moveOf(before, now) {
  if (before > now) return ["up", `up ${places(before - now)}`];
  if (before < now) return ["downward", `down ${places(now - before)}`];
  return ["stays", "as before"];
}

function payloadList(entry) {
  const rows = Object.entries(entry.payload).filter(([name]) => name !== "image");
  return h("dl", {}, h("div", {}, h("dt", {}, "id"), h("dd", {}, said(entry.id))), ...rows.map(([name, value]) => h("div", {},
    h("dt", {}, said(name, 60)),
    h("dd", {}, name === "url" ? linked(value) : said(typeof value === "string" ? value : JSON.stringify(value), 2000)))));
}
