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
  /** @param {string} title @param {(value: number) => string} text a value as somebody reads it */
  constructor(title, text = round) {
    Object.assign(this, { title, text });
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
    this.element.setAttribute("aria-label", say("chart", this.title, this.text(least), this.text(most)));
  }
}

/** A number in as many digits as somebody wants to read. @param {number} value */
export const round = (value) =>
  `${Math.abs(value) >= 100 || Number.isInteger(value) ? Math.round(value) : +value.toPrecision(2)}`;

/** @typedef {{at: number, from: string, to: string, protocol: string, text: string, detail?: string}} Step */
const GATEWAY = "gateway", RIGHT = 60, HEAD = 34, STEP = 36;
/** Where the first lane is, how far the next one, and how many letters fit between them. */
const WIDE_LANES = { left: 110, lane: 230, longest: 36 }, NARROW_LANES = { left: 76, lane: 160, longest: 24 };

/** Arrows between those who take part in a call, the oldest on top, each as it happens. */
export class Ladder {
  /** @param {(at: number) => void} chosen is called with the number of a step that somebody presses */
  constructor(chosen) {
    this.chosen = chosen;
    this.sizes = matchMedia("(max-width: 46rem)").matches ? NARROW_LANES : WIDE_LANES;
    this.element = draw("svg", { class: "ladder", role: "img" });
    this.show([]);
  }

  /** @param {Step[]} steps */
  show(steps) {
    /** @type {Step[]} */
    this.steps = [];
    /** @type {string[]} */
    this.lanes = [];
    for (const step of steps) this.note(step);
    this.whole();
  }

  /** @param {Step} step */
  add(step) {
    const before = this.lanes.join("\n");
    this.note(step);
    if (this.lanes.join("\n") !== before) this.whole();
    else this.append(step, this.steps.length - 1);
    this.measure();
  }

  note(step) {
    this.steps.push(step);
    for (const lane of [step.from, step.to]) {
      if (lane && !this.lanes.includes(lane)) this.lanes.push(lane);
    }
    const others = this.lanes.filter((lane) => lane !== GATEWAY);
    if (others.length < this.lanes.length) others.splice(Math.ceil(others.length / 2), 0, GATEWAY);
    this.lanes = others;
  }

  whole() {
    this.lines = this.lanes.map((_, at) => draw("line", { class: "lane", x1: this.x(at), x2: this.x(at), y1: HEAD }));
    const heads = this.lanes.map((lane, at) => draw("text", { x: this.x(at), y: 20, class: "head", text: short(lane, 26) }));
    this.element.replaceChildren(...this.lines, ...heads);
    this.steps.forEach((step, at) => this.append(step, at));
    this.measure();
  }

  x(at) { return this.sizes.left + this.sizes.lane * at; }

  get width() { return this.x(Math.max(this.lanes.length - 1, 1)) + RIGHT; }

  measure() {
    const height = HEAD + STEP * this.steps.length + 12, { width } = this;
    for (const line of this.lines) line.setAttribute("y2", `${height}`);
    this.element.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.element.setAttribute("width", `${width}`);
    this.element.setAttribute("height", `${height}`);
    this.element.setAttribute("aria-label", say("ladder", this.steps.length));
  }

  append(step, at) {
    const y = HEAD + STEP * (at + 1) - 6;
    const a = this.x(Math.max(0, this.lanes.indexOf(step.from))), b = this.x(Math.max(0, this.lanes.indexOf(step.to || step.from)));
    const way = Math.sign(b - a), middle = (a + b) / 2;
    const drawn = draw("g", { class: `step ${kindOf(step.protocol)}` },
      draw("rect", { class: "touch", x: 0, y: y - STEP + 8, width: this.width, height: STEP }),
      draw("text", { x: 0, y: y + 4, class: "time", text: timeOf(step) }),
      draw("text", { x: middle, y: y - 7, class: "words", text: short(step.text, this.sizes.longest) }));
    if (way) {
      drawn.append(draw("line", { x1: a, x2: b - 6 * way, y1: y, y2: y }),
        draw("polygon", { points: `${b},${y} ${b - 9 * way},${y - 4.5} ${b - 9 * way},${y + 4.5}` }));
    } else drawn.append(draw("circle", { cx: a, cy: y, r: 4 }));
    drawn.addEventListener("click", () => this.chosen(at));
    this.element.append(drawn);
  }
}
const short = (text, most) => (`${text}`.length > most ? `${text}`.slice(0, most - 1) + "…" : `${text}`);
const kindOf = (protocol) => ({ SIP: "sip", RTMP: "rtmp", RTP: "media", RTCP: "media" })[protocol] ?? "key";
/** @param {Step} step */
export const timeOf = (step) => (typeof step.at === "number" ? step.at.toFixed(2) : "");

const WIDE = 420, HIGH = 170, EDGE = 44, FOOT = 22;

/** A figure of both ends over the time of a call. */
export class Plot {
  constructor() {
    this.element = draw("svg", { class: "plot", role: "img", viewBox: `0 0 ${WIDE} ${HIGH}` });
  }

  /**
   * @param {string} title @param {string} unit
   * @param {{name: string, points: Sample[]}[]} series one for each end
   */
  show(title, unit, series) {
    const all = series.flatMap((each) => each.points);
    const from = Math.min(...all.map((each) => each.at)), to = Math.max(...all.map((each) => each.at), from + 1);
    const top = Math.max(...all.map((each) => each.value), 1);
    const x = (at) => EDGE + (WIDE - EDGE - 8) * (at - from) / (to - from), y = (value) => 10 + (HIGH - FOOT - 10) * (1 - value / top);
    const inside = [0, top / 2, top].flatMap((value) => [
      draw("line", { class: "lane", x1: EDGE, x2: WIDE - 8, y1: y(value), y2: y(value) }),
      draw("text", { class: "scale", x: EDGE - 6, y: y(value) + 4, text: round(value) }),
    ]);
    if (all.length) {
      inside.push(draw("text", { class: "time", x: EDGE, y: HIGH - 4, text: say("seconds", round(from)) }),
        draw("text", { class: "scale", x: WIDE - 8, y: HIGH - 4, text: say("seconds", round(to)) }));
    }
    series.forEach(({ points }, at) => {
      const kind = at ? "b" : "a";
      if (points.length === 1) inside.push(draw("circle", { class: kind, cx: x(points[0].at), cy: y(points[0].value), r: 3 }));
      else if (points.length) inside.push(draw("path", { class: kind, d: `M${points.map((each) => `${x(each.at).toFixed(1)},${y(each.value).toFixed(1)}`).join("L")}` }));
    });
    this.element.replaceChildren(...inside);
    const last = series.filter((each) => each.points.length)
      .map(({ name, points }) => say("lastOf", name, round(points.at(-1).value), unit));
    this.element.setAttribute("aria-label", [title, ...last].join(". "));
    return last;
  }
}
