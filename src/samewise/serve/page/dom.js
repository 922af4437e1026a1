// Elements out of plain values. Texts become text nodes: nothing is ever read as HTML.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value" || name === "checked" || name === "disabled") element[name] = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export function h(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

// What a user wrote: cut, and apart from the direction of the text around it.
export function said(text, most = 400) {
  const all = String(text);
  return h("bdi", { dir: "auto" }, all.length > most ? `${all.slice(0, most)}…` : all);
}

// A link only if it leads to a page; all other addresses stay text.
export function linked(address) {
  let url = null;
  try {
    url = new URL(String(address));
  } catch {
    return said(address);
  }
  if (url.protocol !== "https:" && url.protocol !== "http:") return said(address);
  return h("a", { href: url.href, target: "_blank", rel: "noopener noreferrer nofollow" }, said(address, 100));
}

// Only pictures that are in the payload itself.
export function picture(address, title) {
  if (typeof address !== "string" || address.length > 65536) return null;
  if (!/^data:image\/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]+$/.test(address)) return null;
  return h("img", { src: address, alt: `Picture of ${String(title).slice(0, 80)}`, class: "picture" });
}

export const $ = (id) => document.getElementById(id);

let clearing = 0;
export function announce(text) {
  const place = $("said");
  place.textContent = text;
  clearTimeout(clearing);
  clearing = setTimeout(() => { place.textContent = ""; }, 6000);
}

const number = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
export const count = (value) => number.format(value);
export const fixed = (value, digits = 3) => (value === null || value === undefined ? "–" : Number(value).toFixed(digits));
export const when = (seconds) => new Date(seconds * 1000).toLocaleString();

export function button(text, onclick, attributes = {}) {
  return h("button", { type: "button", onclick, ...attributes }, text);
}

const THUMB = "M2 11h4v9H2zM8 20V10l4-7c1.6 0 2.4 1 2.4 2.6 0 1.3-.5 2.4-.9 3.4H19c1.2 0 2 .9 2 2l-1.6 7.3c-.3 1-1 1.7-2.1 1.7z";
const SHAPES = { up: [THUMB, ""], down: [THUMB, "rotate(180 12 12)"], higher: ["M12 5l7 8h-4v6H9v-6H5z", ""], lower: ["M12 5l7 8h-4v6H9v-6H5z", "rotate(180 12 12)"] };
export function icon(name) {
  const [d, transform] = SHAPES[name];
  return svg("svg", { viewBox: "0 0 24 24", class: "icon", "aria-hidden": "true" }, svg("path", { d, transform }));
}
