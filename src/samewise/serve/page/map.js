// A map of items: each dot is an item, placed where it is as a query. Dots glide when learning moves them.

import { h, said } from "/page/dom.js";

const STEP = 700;
const EVERY = 2500;
const calm = matchMedia("(prefers-reduced-motion: reduce)");

export function mapView(app, place) {
  const map = new ItemMap(app, place);
  addEventListener("resize", () => map.draw());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => map.draw());
  return map;
}

class ItemMap {
  constructor(app, place) {
    Object.assign(this, { app, place, found: null, from: null, to: null, moved: 0, hover: -1, chosen: new Set() });
    this.which = h("select", { onchange: () => this.load(true) }, h("option", { value: "served" }, "what is served"), h("option", { value: "live" }, "what is being learned"), h("option", { value: "start" }, "the start"));
    this.which.value = "live";
    this.color = h("select", { onchange: () => this.draw() });
    this.filter = h("input", { type: "search", placeholder: "Find in the map", "aria-label": "Find in the map", oninput: () => this.find() });
    this.canvas = h("canvas", { class: "map", tabindex: 0, role: "img", "aria-describedby": "map-text" });
    this.label = h("p", { id: "map-text", class: "soft" });
    this.hits = h("ul", { class: "picks", "aria-label": "Items found" });
    place.replaceChildren(h("h2", { id: "map-heading" }, "Map"),
      h("p", {}, "A sample of items, each where it stands as a query: the two leading directions of the mapped vectors. What belongs together for users moves together."),
      h("div", { class: "options" }, h("label", { class: "field" }, "Under ", this.which), h("label", { class: "field" }, "Color by ", this.color), this.filter),
      this.canvas, this.label, this.hits);
    this.canvas.addEventListener("pointermove", (event) => this.point(event));
    this.canvas.addEventListener("pointerleave", () => { this.hover = -1; this.draw(); });
    this.canvas.addEventListener("click", () => { if (this.hover >= 0) this.open(this.hover); });
    this.canvas.addEventListener("keydown", (event) => this.key(event));
  }

  reset() { this.found = this.from = this.to = null; this.seq = null; this.chosen.clear(); }

  shown() { this.load(false); }

  state(state) {
    if (this.place.hidden || state.seq === this.seq || this.waits) return;
    // Not at each event: the map is some work for the service.
    this.waits = setTimeout(() => { this.waits = null; this.load(false); }, this.found ? EVERY : 0);
  }

  async load(anew) {
    if (this.place.hidden || !this.app.collection || (!anew && this.app.state && this.app.state.seq === this.seq)) return;
    try {
      const which = this.which.value === "start" ? "served" : this.which.value;
      const found = await this.app.ask("GET", `/map?which=${which}&n=800`);
      const to = this.which.value === "start" ? found.start : found.now;
      const same = this.found && this.found.ids.length === found.ids.length;
      this.from = same ? this.current() : found.start;
      this.to = to;
      this.found = found;
      this.seq = found.seq;
      this.moved = calm.matches ? 1 : 0;
      this.fields();
      this.animate();
    } catch (error) {
      this.app.failed(error);
    }
  }

  fields() {
    const names = Object.keys(this.found.groups);
    if ([...this.color.options].map((o) => o.value).join() === ["", ...names].join()) return;
    const value = this.color.value;
    this.color.replaceChildren(h("option", { value: "" }, "nothing"), ...names.map((name) => h("option", { value: name }, name.slice(0, 40))));
    this.color.value = names.includes(value) ? value : names[0] ?? "";
  }

  current() {
    const t = this.moved;
    return this.to.map(([x, y], i) => [this.from[i][0] + t * (x - this.from[i][0]), this.from[i][1] + t * (y - this.from[i][1])]);
  }

  animate() {
    cancelAnimationFrame(this.frame);
    const began = performance.now();
    const step = (time) => {
      const t = Math.min(Math.max((time - began) / STEP, 0), 1);
      this.moved = calm.matches ? 1 : t * t * (3 - 2 * t);
      this.draw();
      if (this.moved < 1) this.frame = requestAnimationFrame(step);
    };
    this.frame = requestAnimationFrame(step);
  }

  draw() {
    if (!this.to || this.place.hidden) return;
    const { canvas } = this;
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    const ratio = devicePixelRatio;
    if (canvas.width !== Math.round(width * ratio)) canvas.width = Math.round(width * ratio);
    if (canvas.height !== Math.round(height * ratio)) canvas.height = Math.round(height * ratio);
    const style = getComputedStyle(document.documentElement);
    const ctx = canvas.getContext("2d");
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    ctx.clearRect(0, 0, width, height);
    const scale = Math.min(width, height) / 4.6;
    this.at = this.current().map(([x, y]) => [width / 2 + scale * Math.max(-2.25, Math.min(2.25, x)) * (width > height ? 1.35 : 1), height / 2 - scale * Math.max(-2.25, Math.min(2.25, y))]);
    const values = this.found.groups[this.color.value];
    const order = values ? [...new Set(values)].sort() : [];
    const light = style.getPropertyValue("--dot-light").trim();
    const one = style.getPropertyValue("--served").trim();
    const dim = this.chosen.size > 0;
    this.at.forEach(([x, y], i) => {
      ctx.globalAlpha = dim && !this.chosen.has(i) ? 0.15 : 0.85;
      ctx.fillStyle = values ? `hsl(${(order.indexOf(values[i]) * 137.5) % 360} 65% ${light})` : one;
      ctx.beginPath();
      ctx.arc(x, y, this.chosen.has(i) || i === this.hover ? 6 : 3.2, 0, 7);
      ctx.fill();
    });
    ctx.globalAlpha = 1;
    if (this.hover >= 0) {
      ctx.strokeStyle = style.getPropertyValue("--ink").trim();
      ctx.lineWidth = 2;
      ctx.stroke(new Path2D(circle(...this.at[this.hover])));
    }
    canvas.setAttribute("aria-label", `Map of ${this.found.ids.length} items. Arrow keys go through the items, Enter searches for what is like one.`);
  }

  point(event) {
    if (!this.at) return;
    const box = this.canvas.getBoundingClientRect();
    const [px, py] = [event.clientX - box.left, event.clientY - box.top];
    let [best, near] = [-1, 144];
    this.at.forEach(([x, y], i) => {
      const d = (x - px) ** 2 + (y - py) ** 2;
      if (d < near) [best, near] = [i, d];
    });
    if (best !== this.hover) this.choose(best);
  }

  choose(i) {
    this.hover = i;
    const group = this.found.groups[this.color.value];
    this.label.replaceChildren(...(i < 0 ? [] : [said(this.found.titles[i]), group ? h("span", {}, " — ", said(group[i], 60)) : ""]));
    this.canvas.style.cursor = i < 0 ? "default" : "pointer";
    this.draw();
  }

  key(event) {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (step && this.at) {
      event.preventDefault();
      const list = this.chosen.size ? [...this.chosen] : this.at.map((_, i) => i);
      const now = list.indexOf(this.hover);
      this.choose(list[(now + step + list.length) % list.length]);
      this.app.tell(this.found.titles[this.hover]);
    } else if (event.key === "Enter" && this.hover >= 0) this.open(this.hover);
  }

  open(i) {
    this.app.go("search");
    this.app.search.ask({ item: this.found.ids[i], title: this.found.titles[i] });
  }

  find() {
    const wanted = this.filter.value.trim().toLocaleLowerCase();
    this.chosen.clear();
    if (wanted && this.found) this.found.titles.forEach((title, i) => { if (title.toLocaleLowerCase().includes(wanted)) this.chosen.add(i); });
    this.hits.replaceChildren(...[...this.chosen].slice(0, 12).map((i) => h("li", {}, h("button", { type: "button", class: "pick", onclick: () => this.open(i) }, said(this.found.titles[i], 60)))));
    this.draw();
  }
}

const circle = (x, y) => `M${x - 8} ${y}a8 8 0 1 0 16 0a8 8 0 1 0 -16 0`;
