// Charts by uPlot, in the colors of the page.

import { h } from "/page/dom.js";

const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
// Events are counted: no steps between two of them.
const STEPS = [1, 2, 5].flatMap((step) => [...Array(9).keys()].map((k) => step * 10 ** k)).sort((a, b) => a - b);
const dark = matchMedia("(prefers-color-scheme: dark)");

// A chart that is drawn again when the window or the color scheme changes.
export class Chart {
  // series: [{ label, color, dash, bars }]
  constructor(title, series, { height = 200, format = (v) => String(v), xFormat = (v) => String(v), range = null } = {}) {
    Object.assign(this, { series, height, format, xFormat, range, marks: [] });
    this.box = h("div", { class: "plot" });
    this.caption = h("figcaption", {}, title);
    this.summary = h("p", { class: "summary" });
    this.figure = h("figure", { class: "chart" }, this.caption, this.box, this.summary);
    this.data = [[], ...series.map(() => [])];
    new ResizeObserver(() => this.fit()).observe(this.box);
    dark.addEventListener("change", () => this.make());
  }

  make() {
    this.plot?.destroy();
    this.plot = null;
    const width = this.box.clientWidth;
    if (!width) return;
    const axis = { stroke: color("ink-soft"), grid: { stroke: color("line"), width: 1 }, ticks: { stroke: color("line"), width: 1 }, font: "12px system-ui, sans-serif" };
    this.width = width;
    this.plot = new uPlot({
      width,
      height: this.height,
      cursor: { drag: { x: false, y: false }, points: { size: 6 } },
      legend: { live: true },
      scales: { x: { time: false }, y: this.range ? { range: this.range } : {} },
      axes: [{ ...axis, incrs: STEPS, values: (_, ticks) => ticks.map(this.xFormat) }, { ...axis, size: 56, values: (_, ticks) => ticks.map(this.format) }],
      series: [
        { label: "at", value: (_, v) => (v === null ? "–" : this.xFormat(v)) },
        ...this.series.map((one) => ({
          label: one.label,
          stroke: color(one.color),
          width: one.dash ? 1.5 : 2,
          dash: one.dash,
          fill: one.bars ? color(one.color) : undefined,
          paths: one.bars ? uPlot.paths.bars({ size: [0.8, 20] }) : undefined,
          points: { show: this.data[0].length < 12 && !one.bars && !one.dash },
          value: (_, v) => (v === null || v === undefined ? "–" : this.format(v)),
        })),
      ],
      hooks: { draw: [(plot) => this.drawMarks(plot)] },
    }, this.data, this.box);
  }

  drawMarks(plot) {
    const { ctx, bbox } = plot;
    ctx.save();
    for (const mark of this.marks) {
      const x = plot.valToPos(mark.at, "x", true);
      if (x < bbox.left || x > bbox.left + bbox.width) continue;
      ctx.strokeStyle = ctx.fillStyle = color(mark.good ? "good" : "bad");
      ctx.lineWidth = devicePixelRatio;
      ctx.setLineDash([4, 3]);
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
      ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
      const right = x > bbox.left + bbox.width - 60 * devicePixelRatio;
      ctx.textAlign = right ? "right" : "left";
      ctx.fillText(mark.label, x + (right ? -4 : 4) * devicePixelRatio, bbox.top + 12 * devicePixelRatio);
    }
    ctx.restore();
  }

  fit() {
    const width = this.box.clientWidth;
    if (!width) return;
    if (!this.plot) this.make();
    else if (width !== this.width) {
      this.width = width;
      this.plot.setSize({ width, height: this.height });
    }
  }

  set(data, marks, summary) {
    // Points of a short curve are shown, of a long one not.
    const anew = (this.data[0].length < 12) !== (data[0].length < 12);
    this.data = data;
    this.marks = marks;
    this.summary.textContent = summary;
    this.box.setAttribute("role", "img");
    this.box.setAttribute("aria-label", `${this.caption.textContent}. ${summary}`);
    if (!this.plot || anew) this.make();
    else this.plot.setData(data);
  }
}

// Means over the newest `width` lists at each portion, weighted by the lists in it.
export function trailing(values, weights, width) {
  const found = [];
  let [sum, weight, first] = [0, 0, 0];
  for (let i = 0; i < values.length; i += 1) {
    if (values[i] !== null) {
      sum += values[i] * weights[i];
      weight += weights[i];
    }
    while (first < i && weight - (values[first] === null ? 0 : weights[first]) >= width) {
      if (values[first] !== null) {
        sum -= values[first] * weights[first];
        weight -= weights[first];
      }
      first += 1;
    }
    found.push(weight > 0 ? sum / weight : null);
  }
  return found;
}

export function qualityData(curve, measure) {
  const weights = measure === "auc" ? curve.orders : curve.lists;
  const lists = curve.lists.reduce((a, b) => a + b, 0);
  const width = Math.max(30, lists / 12);
  const columns = ["start", "served", "live"].map((form) => trailing(curve[`${measure}_${form}`], weights, width));
  return { data: [curve.events, ...columns], lists, width: Math.round(width) };
}

export const marksOf = (state) => state.marks.map((mark) => ({ at: mark.events, good: mark.why === "promote", label: mark.why === "promote" ? `v${mark.version}` : mark.why }));
