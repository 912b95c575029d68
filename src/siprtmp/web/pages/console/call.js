/** The parts of one call that come as they happen: its messages, its quality, advice, and its log. */
import { Ladder, Plot, round, timeOf } from "./charts.js";
import { button, make, press, say } from "./parts.js";

const METRICS = { loss: "%", jitter_ms: "ms", rtt_ms: "ms", kbps: "kbit/s" };
const KEPT = 240; // samples
const card = (title, ...inside) =>
  make("section", { className: "card", "aria-label": title, hidden: true }, make("h2", {}, title), ...inside);

/** What is below `/call/ID`.  What the gateway has not, or this user may not see, is not shown. */
export class CallParts {
  /** @param {any} tree @param {string} id @param {(asked: Promise<any>) => Promise<any>} optional */
  constructor(tree, id, optional) {
    Object.assign(this, { tree, optional, path: `/call/${id}`, isClosed: false, state: "", metric: "loss", samples: [], followed: [] });
    this.build();
    this.follow("ladder", (found) => this.messages(found), ({ step }) => this.message(step));
    this.follow("quality", (found) => this.measured(found.samples), ({ sample }) => this.measured([...this.samples, sample]));
  }

  get elements() { return [this.advice, make("div", { className: "halves" }, this.ladderCard, this.qualityCard), this.logCard]; }

  build() {
    this.advice = card(say("advice"), this.why = make("p", {}), this.cure = make("p", {}));
    this.advice.setAttribute("role", "status");
    this.advice.classList.add("advice");
    this.ladder = new Ladder((at) => this.unfold(at));
    this.steps = make("ol", { className: "plain" });
    this.all = make("details", {}, make("summary", {}, say("allSteps")), this.steps);
    this.cut = make("p", { className: "state", hidden: true }, say("truncated"));
    this.ladderCard = card(say("ladderTitle"), make("div", { className: "wide", tabIndex: 0, role: "group", "aria-label": say("ladderTitle") }, this.ladder.element), this.cut, this.all);
    this.plot = new Plot();
    this.legend = make("p", { className: "legend" });
    this.metrics = make("div", { className: "row" }, ...Object.keys(METRICS).map((metric) => button(`metric-${metric}`, () => this.choose(metric))));
    this.qualityCard = card(say("qualityTitle"), this.metrics, this.plot.element, this.legend);
    this.log = make("pre", { tabIndex: 0, role: "log", "aria-label": say("log") });
    this.logCard = make("details", { className: "card", hidden: true }, make("summary", {}, say("log")), this.log);
    this.choose("loss");
  }

  /** Read a part now and after each gap, and hear what comes to it. */
  async follow(name, read, hear) {
    const path = `${this.path}/${name}`;
    const whole = async () => {
      const found = await this.optional(this.tree.get(path));
      if (found && !this.isClosed) read(found);
      return found;
    };
    try {
      this.followed.push(path);
      await this.optional(this.tree.subscribe(path, ({ kind, entity }) => {
        if (kind === "MISSED") whole().catch(() => {});
        else if (kind === "NOTIFY") hear(entity);
      }));
      await whole();
    } catch { /* the connection has ended, and the page says so */ }
  }

  /** Read what tells nothing by itself: advice when the state is another one, the log while it is seen. */
  async refresh(state) {
    if (this.isBusy || this.isClosed) return;
    this.isBusy = true;
    try {
      const isOther = state !== this.state;
      this.state = state;
      if (isOther || this.turns++ % 5 === 0) await this.ask();
      if (isOther || this.logCard.open) await this.readLog();
    } catch { /* it is asked again */ } finally {
      this.isBusy = false;
    }
  }

  turns = 1;

  async ask() {
    const advice = await this.optional(this.tree.get(`${this.path}/advice`));
    this.advice.hidden = !advice?.why;
    if (!advice?.why || this.why.textContent === advice.why) return;
    this.why.textContent = advice.why;
    this.cure.textContent = advice.do ?? "";
  }

  async readLog() {
    const found = await this.optional(this.tree.get(`${this.path}/log`));
    this.logCard.hidden = !found;
    const text = (found?.lines ?? []).map((line) => (typeof line === "string" ? line : JSON.stringify(line))).join("\n");
    if (this.log.textContent !== text) this.log.textContent = text;
  }

  close() {
    this.isClosed = true;
    for (const path of this.followed) this.tree.unsubscribe(path).catch(() => {});
  }

  // -- messages

  messages({ steps, truncated }) {
    this.ladderCard.hidden = false;
    this.cut.hidden = !truncated;
    this.ladder.show(steps);
    this.steps.replaceChildren(...steps.map(listed));
  }

  message(step) {
    this.ladder.add(step);
    this.steps.append(listed(step));
  }

  unfold(at) {
    this.all.open = true;
    const item = this.steps.children[at].querySelector("details");
    if (!item) return;
    item.open = true;
    item.scrollIntoView({ block: "nearest" });
    item.querySelector("summary").focus();
  }

  // -- quality

  choose(metric) {
    this.metric = metric;
    Object.keys(METRICS).forEach((each, at) => press(this.metrics.children[at], each === metric));
    this.measured(this.samples);
  }

  measured(samples) {
    this.samples = samples.slice(-KEPT);
    this.qualityCard.hidden = !this.samples.length;
    const series = ["a", "b"].map((end) => ({
      name: say(`end-${end}`),
      points: this.samples.filter((each) => typeof each[end]?.[this.metric] === "number").map((each) => ({ at: each.at, value: each[end][this.metric] })),
    }));
    const unit = METRICS[this.metric];
    this.plot.show(say(`metric-${this.metric}`), unit, series);
    this.legend.replaceChildren(...series.flatMap(({ name, points }, at) => (points.length
      ? [make("span", { className: "ab"[at] }, say("lastOf", name, round(points.at(-1).value), unit))] : [])));
  }
}

const listed = (step) => {
  const line = [timeOf(step), step.protocol, step.from === step.to ? step.from : `${step.from} → ${step.to}`, step.text].join("  ");
  return make("li", {}, step.detail
    ? make("details", {}, make("summary", {}, line), make("pre", { tabIndex: 0 }, step.detail)) : line);
};
