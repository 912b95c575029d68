/** Drawings as SVG, with texts for those who do not see them. */
import { say } from "./parts.js";

/** @param {string} name @param {Record<string, unknown>} about @param {...Node} inside */
export const draw = (name, about = {}, ...inside) => {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(about)) {
    if (key === "text") element.textContent = `${value}`;
    else element.setAttribute(key, `${value}`);
  }
  element.append(...inside);
  return element;
};

/** @typedef {{at: number, value: number}} Sample `at` in seconds */
const SECONDS = 120; // what a small chart shows

/** A small chart of a figure in the last two minutes. */
export class Sparkline {
  /** @param {string} title */
  constructor(title) {
    this.title = title;
    /** @type {Sample[]} */
    this.samples = [];
    this.area = draw("path", { class: "area" });
    this.line = draw("path", { class: "line", "vector-effect": "non-scaling-stroke" });
    this.element = draw("svg", { class: "spark", viewBox: "0 0 120 32", preserveAspectRatio: "none", role: "img" }, this.area, this.line);
  }

  /** @param {number} at @param {number} value */
  add(at, value) {
    this.samples.push({ at, value });
    while (this.samples[0].at < at - SECONDS) this.samples.shift();
    const values = this.samples.map((each) => each.value);
    const least = Math.min(...values), most = Math.max(...values);
    const top = Math.max(most, 1);
    const points = this.samples.map((each) =>
      `${(SECONDS + each.at - at).toFixed(1)},${(30 - 28 * each.value / top).toFixed(1)}`);
    const first = (SECONDS + this.samples[0].at - at).toFixed(1);
    this.line.setAttribute("d", `M${points.join("L")}`);
    this.area.setAttribute("d", `M${first},32L${points.join("L")}L120,32Z`);
    this.element.setAttribute("aria-label", say("chart", this.title, round(least), round(most)));
  }
}

/** A number in as many digits as somebody wants to read. @param {number} value */
export const round = (value) =>
  `${Math.abs(value) >= 100 || Number.isInteger(value) ? Math.round(value) : +value.toPrecision(2)}`;
