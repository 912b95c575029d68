/** The console: what the gateway does now, and what its operator may end. It uses `/tree` alone. */
import { Resources } from "/tree.js";
import { attempt, begin, button, field, here, learn, make, notice, proofOf, say, treeAddress, viewsOf } from "./parts.js";
import { CallParts } from "./call.js";
import { round, Sparkline } from "./charts.js";
import { TABLES } from "./words.js";

learn(TABLES);

const POLL_MS = 2000;
const LEVELS = ["debug", "info", "warning", "error"];
const SHOWN = 100; // rows of a list; the rest is a number
const DEPTH = 5; // of names below a branch: a stream's name may have slashes
const KEPT = 50; // ended calls

/** What a list of the tree is: its branch, and what the branch tells by itself. */
const LISTS = {
  call: { tells: "rows" },
  stream: { tells: "" },
  registration: { tells: "some" },
  login: { tells: "some" },
  room: { tells: "some" },
  recording: { tells: "some" },
  push: { tells: "some" },
  mix: { tells: "some" },
  capture: { tells: "some" },
  trunk: { tells: "some" },
  route: { tells: "" },
};
/** The lists that a view shows. */
const VIEWS = { now: ["call", "stream", "recording", "push"], call: ["call", "recording", "mix", "capture"], phones: ["registration", "login"], ways: ["room", "trunk", "route"] };
const COUNTED = { call: "calls", stream: "streams", registration: "registrations", room: "rooms" };
const FIGURES = [...Object.values(COUNTED), "sockets", "greenlets"];
const megabytes = (value) => `${round(value / 1e6)} MB`;
const SIZES = { cpu_percent: (value) => `${round(value)} %`, memory_bytes: megabytes };

/**
 * What the page knows: its tree, and the rows of each list by their paths. It tells of each change
 * by an event "change" with the part that has changed: user, gateway, figures, ended, audit, or a list.
 */
class Operator extends EventTarget {
  constructor() {
    super();
    Object.assign(this, { tree: null, isOpen: false, isAsked: false, user: "", ended: [] });
    /** @type {any} what `/gateway` holds; the user's role is in it */
    this.gateway = null;
    /** @type {any[]|null} who has changed what, for those who may know it */
    this.audit = null;
    /** @type {Record<string, Map<string, any>>} */
    this.lists = Object.fromEntries(Object.keys(LISTS).map((name) => [name, new Map()]));
    /** @type {Record<string, number>} how many there are, which may be more than are shown */
    this.counts = {};
  }

  get role() { return this.gateway?.role ?? "operator"; }

  get mayChange() { return this.role !== "viewer"; }

  changed(part) { this.dispatchEvent(new CustomEvent("change", { detail: part })); }

  /** Connect, with a password where the gateway asks for one. */
  async signIn(user, password) {
    this.signOut();
    const tree = new Resources(treeAddress(proofOf(user, password)));
    try {
      await opened(tree);
      await tree.get("/stream"); // which operators alone may read
      await this.hearGateway(tree);
      for (const [name, { tells }] of Object.entries(LISTS)) {
        if (tells) await optional(tree.subscribe(`/${name}`, (told) => this.hear(name, told)));
      }
    } catch (error) {
      tree.close();
      this.isAsked = true;
      this.changed("user");
      throw error;
    }
    Object.assign(this, { tree, user, isOpen: true });
    tree.addEventListener("lost", () => this.turn(false));
    tree.addEventListener("open", () => this.turn(true));
    this.changed("user");
    await this.poll(tree);
  }

  /** Hear the gateway's figures, and what was done and has ended before the page was opened. */
  async hearGateway(tree) {
    this.gateway = await optional(tree.get("/gateway"));
    this.audit = null;
    if (!this.gateway) return;
    await tree.subscribe("/gateway", ({ kind, entity }) => {
      if (kind !== "PUT") return;
      this.gateway = { ...this.gateway, ...entity, role: this.role };
      this.changed("gateway");
    });
    const ended = await optional(tree.get("/gateway/ended"));
    if (ended) this.ended = ended.calls.slice(0, KEPT);
    const audit = await optional(tree.get("/gateway/audit"));
    if (!audit) return;
    this.audit = audit.entries;
    await tree.subscribe("/gateway/audit", ({ kind, entity }) => {
      if (kind !== "NOTIFY") return;
      this.audit = [entity.entry, ...this.audit].slice(0, SHOWN);
      this.changed("audit");
    });
  }

  turn(isOpen) {
    this.isOpen = isOpen;
    this.changed("user");
  }

  signOut() {
    this.tree?.close();
    Object.assign(this, { tree: null, user: "", isAsked: true, gateway: null, audit: null });
    for (const list of Object.values(this.lists)) list.clear();
    this.changed("user");
  }

  /** What a branch tells: a call comes with its row, of others it is a reason to read again. */
  hear(name, { kind, child, entity }) {
    if (name !== "call" || kind === "MISSED") {
      this.read(name).catch(() => {});
      return;
    }
    const calls = this.lists.call;
    if (kind === "delete") this.end(child, entity ?? {});
    else if (child && entity) calls.set(child, entity);
    this.counts.call = calls.size;
    this.changed("call");
  }

  end(id, row) {
    const known = this.lists.call.get(id) ?? {};
    this.lists.call.delete(id);
    this.ended.unshift({ ...known, ...row, id, ended_at: Date.now() / 1000 });
    this.ended.length = Math.min(this.ended.length, KEPT);
    this.changed("ended");
  }

  /** Read again, as long as this tree is the page's: its figures, and the lists that are seen. */
  async poll(tree) {
    while (this.tree === tree) {
      if (this.isOpen) {
        const seen = document.hidden ? [] : VIEWS[here().view] ?? [];
        const counted = this.gateway ? [] : Object.keys(COUNTED);
        for (const name of new Set([...counted, ...seen])) {
          await this.read(name, seen.includes(name)).catch(() => {});
        }
        this.changed("figures");
      }
      await new Promise((later) => setTimeout(later, POLL_MS));
    }
  }

  /** Read a list: how many there are, and the rows if they are seen. */
  async read(name, rows = true) {
    const { tree } = this;
    const paths = await leaves(tree, `/${name}`, ["stream"].includes(name) ? DEPTH : 1);
    this.counts[name] = paths.length;
    if (!rows) return;
    const shown = paths.slice(0, SHOWN);
    const read = await Promise.all(shown.map((path) => tree.get(path).catch(() => null)));
    if (tree !== this.tree) return;
    const list = this.lists[name];
    const found = new Map(shown.map((path, at) => [path.slice(name.length + 2), read[at]]));
    for (const key of list.keys()) if (!found.get(key)) list.delete(key);
    for (const [key, row] of found) if (row) list.set(key, row);
    this.changed(name);
  }

  delete(name, key) { return this.change(name, this.tree.delete(`/${name}/${key}`)); }

  post(name, about) { return this.change(name, this.tree.post(`/${name}`, about)); }

  patch(name, key, part) { return this.change(name, this.tree.patch(`/${name}/${key}`, part)); }

  /** Do it, and read what has come of it: one's own changes are not told. */
  async change(name, done) {
    await done;
    await this.read(name);
  }
}

/** Wait until a tree answers; whoever is refused is told nothing but that. */
const opened = (tree) => new Promise((resolve, reject) => {
  tree.addEventListener("open", () => resolve(tree), { once: true });
  tree.addEventListener("lost", () => reject(new Error(say("noEntry"))), { once: true });
});
/** What is not there in every gateway, or not for every user: null then. */
const optional = (asked) => asked.catch((error) => {
  if ([401, 403, 404, 405].includes(error.status)) return null;
  throw error;
});
/** The paths below a branch with nothing below them. */
const leaves = async (tree, path, depth) => {
  const names = (await optional(tree.children(path))) ?? [];
  const paths = names.map((name) => `${path}/${name}`);
  if (depth === 1) return paths;
  const below = await Promise.all(paths.slice(0, SHOWN).map((each) => leaves(tree, each, depth - 1).catch(() => [])));
  return paths.flatMap((each, at) => (below[at]?.length ? below[at] : [each]));
};

const operator = new Operator();
const View = viewsOf(operator);

/** A time in seconds, as 1:02:03. @param {number|null} seconds */
const clock = (seconds) => {
  if (seconds === null || seconds === undefined) return "";
  const whole = Math.max(0, Math.floor(seconds)), two = (number) => `${number}`.padStart(2, "0");
  const hours = Math.floor(whole / 3600), rest = `${Math.floor(whole / 60) % 60}:${two(whole % 60)}`;
  return hours ? `${hours}:${rest.padStart(5, "0")}` : rest;
};
const bare = (address = "") => `${address ?? ""}`.replace(/^sips?:/, "");
const stateOf = (row) => {
  if (row.reason !== undefined && row.ended_at) return say("endedBy", row.reason);
  const more = [row.held && say("held"), row.muted && say("muted")].filter(Boolean);
  return [say(`state-${row.state}`), ...more].join(", ");
};
const between = (row) => say("between", bare(row.caller), bare(row.callee));
/** The lower score of the two directions. */
const score = (row) => {
  const known = [row.mos_from_phone, row.mos_to_phone].filter((each) => typeof each === "number");
  return known.length ? Math.min(...known).toFixed(1) : "";
};
/** A time of day, of seconds since 1970 or of a text. */
const whenOf = (at) => {
  const date = new Date(typeof at === "number" ? at * 1000 : at);
  const isToday = date.toDateString() === new Date().toDateString();
  return isToday ? date.toLocaleTimeString() : date.toLocaleString();
};
const textOf = (value) => (value === undefined || value === null ? "" : typeof value === "string" ? value : JSON.stringify(value));
const linkTo = (id, text) => make("a", { href: `#call?${new URLSearchParams({ id })}`, textContent: text });
const matched = ({ match: _, ...row }) => Object.entries(row).filter(([, value]) => value)
  .map(([key, value]) => (value === true ? key : `${key} ${value}`)).join(", ");

/** Ask before something ends. */
customElements.define("ask-first", class extends HTMLElement {
  connectedCallback() {
    this.text = make("p", { id: "asked" });
    this.act = button("hangUp", () => this.dialog.close("yes"), { className: "stop" });
    this.given = field("url", { type: "url" });
    this.dialog = make("dialog", { "aria-labelledby": "asked" }, this.text, this.given.box,
      make("div", { className: "row" }, this.act, button("leave", () => this.dialog.close(""))));
    this.append(this.dialog);
  }

  /** @param {string} text @param {string} word @param {(url: string) => unknown} run @param {boolean} wantsUrl */
  ask(text, word, run, wantsUrl = false) {
    const { input, box } = this.given;
    this.text.textContent = text;
    this.act.textContent = say(word);
    input.value = "";
    box.hidden = !wantsUrl;
    this.dialog.returnValue = "";
    this.dialog.onclose = () => this.dialog.returnValue === "yes" && run(input.value.trim());
    this.dialog.showModal();
  }
});
/** An action that ends something: [its word, what it is about, what it does, for which rows]. */
const ending = (word, about, run, fits = () => true) => ({
  label: () => word, about, fits, className: "",
  run: (key, row) => first().ask(say("sure", say(word), about(row)), word, attempt(() => run(key, row))),
});
const first = () => document.querySelector("ask-first");
const toggling = (part, on, off) => ({
  label: (row) => (row[part] ? off : on), about: between, fits: (row) => typeof row[part] === "boolean" && (part !== "held" || row.state === "up"),
  run: attempt((key, row) => operator.patch("call", key, { [part]: !row[part] })),
});

/** An action that begins a task about a call or a stream, or ends the one there is. */
const task = (kind, part, about, fits) => {
  const its = (row) => row[part === "call" ? "id" : "name"];
  const running = (row) => [...operator.lists[kind]].find(([, each]) => each[part] === its(row))?.[0];
  return {
    about, fits, label: (row) => (running(row) ? `${kind}-end` : kind),
    run: attempt((_, row) => (running(row) ? operator.delete(kind, running(row)) : operator.post(kind, { [part]: its(row) }))),
  };
};
const push = {
  label: () => "push", about: (row) => row.name, fits: (row) => row.seconds !== null,
  run: (_, row) => first().ask(say("pushTo", row.name), "push", attempt((url) => operator.post("push", { stream: row.name, url })), true),
};
const isUp = (row) => row.state === "up";
const CALL_ACTIONS = [
  toggling("held", "hold", "resume"), toggling("muted", "mute", "unmute"),
  ending("hangUp", between, (key) => operator.delete("call", key)),
];
/** Those that stand where a call is looked into. */
const MORE_ACTIONS = [...CALL_ACTIONS, task("recording", "call", between, isUp), task("mix", "call", between, isUp),
  task("capture", "call", between, (row) => isUp(row) && operator.role === "admin")];
const TABLES_OF = {
  call: {
    columns: [
      ["caller", (row, key) => linkTo(key, bare(row.caller))], ["callee", (row) => bare(row.callee)], ["state", stateOf],
      ["time", (row) => clock(row.seconds)], ["codec", (row) => [row.codec, row.video].filter(Boolean).join(", ")], ["score", score],
    ],
    actions: CALL_ACTIONS,
  },
  stream: {
    columns: [
      ["name", (row) => row.name], ["source", (row) => row.source], ["codec", (row) => row.codecs.join(", ")],
      ["players", (row) => row.players], ["time", (row) => clock(row.seconds)],
    ],
    actions: [
      task("recording", "stream", (row) => row.name, (row) => row.seconds !== null),
      push,
      ending("kick", (row) => row.name, (key) => operator.delete("stream", key), (row) => row.id),
    ],
  },
  recording: {
    isOptional: true,
    columns: [
      ["name", (row) => row.stream], ["file", (row) => row.file], ["state", (row) => say(`state-${row.state}`)], ["time", (row) => clock(row.seconds)],
      ["size", (row) => megabytes(row.octets)],
    ],
    actions: [ending("recording-end", (row) => row.stream, (key) => operator.delete("recording", key))],
  },
  push: {
    isOptional: true,
    columns: [["name", (row) => row.stream], ["goes", (row) => row.server], ["state", (row) => [row.state, row.reason].filter(Boolean).join(": ")]],
    actions: [ending("push-end", (row) => row.server, (key) => operator.delete("push", key))],
  },
  registration: {
    columns: [
      ["user", (row) => bare(row.user)], ["contact", (row) => row.contact], ["source", (row) => row.source], ["expires", (row) => clock(row.expires)],
    ],
    actions: [ending("forget", (row) => row.contact, (key) => operator.delete("registration", key))],
  },
  login: {
    columns: [["user", (_, key) => key], ["about", (row) => row.name ?? row.by]],
    actions: [ending("logOff", (row) => row.name ?? "", (key) => operator.delete("login", key), (row) => row.by !== "rtmp")],
  },
  room: { columns: [["name", (row) => row.name], ["members", (row) => row.members]], actions: [] },
  trunk: {
    columns: [
      ["name", (row) => row.name], ["address", (row) => bare(row.address)], ["state", (row) => [row.state, row.reason].filter(Boolean).join(": ")],
      ["calls", (row) => row.calls],
    ],
    actions: [],
  },
  route: { columns: [["match", (row) => row.match], ["goes", matched]], actions: [] },
  audit: {
    columns: [
      ["when", (row) => whenOf(row.at)], ["user", (row) => row.user ?? ""], ["method", (row) => row.method], ["resource", (row) => row.resource],
      ["what", (row) => textOf(row.entity ?? row.summary)], ["status", (row) => row.status],
    ],
    actions: [],
  },
  ended: {
    columns: [
      ["caller", (row) => linkTo(row.id, bare(row.caller))], ["callee", (row) => bare(row.callee)], ["reason", (row) => row.reason],
      ["when", (row) => whenOf(row.ended_at)],
    ],
    actions: [],
  },
};

/** A table whose rows stay the same elements while they change, so that nobody loses the focus. */
class KeptTable {
  /** @param {string} name of TABLES_OF */
  constructor(name) {
    this.name = name;
    Object.assign(this, TABLES_OF[name]);
    /** @type {Map<string, {element: HTMLElement, cells: HTMLElement[], buttons: HTMLButtonElement[], row: any}>} */
    this.kept = new Map();
    this.title = make("h2", { id: `title-${name}` });
    this.body = make("tbody", { role: "rowgroup" });
    const heads = this.columns.map(([word]) => make("th", { scope: "col", role: "columnheader" }, say(word)));
    if (this.actions.length) heads.push(make("th", { scope: "col", role: "columnheader", className: "acts" }, say("actions")));
    this.table = make("table", { role: "table", "aria-labelledby": this.title.id },
      make("thead", { role: "rowgroup" }, make("tr", { role: "row" }, ...heads)), this.body);
    this.none = make("p", { className: "state" }, say(`no-${name}`));
    this.more = make("p", { className: "state" });
    this.element = make("section", { className: "card", "aria-labelledby": this.title.id }, this.title, this.table, this.none, this.more);
  }

  /** @param {Iterable<[string, any]>} rows @param {number} count how many there are in all */
  update(rows, count) {
    const found = new Map(rows);
    for (const [key, { element }] of this.kept) {
      if (found.has(key)) continue;
      element.remove();
      this.kept.delete(key);
    }
    for (const [key, row] of found) this.fill(this.kept.get(key) ?? this.add(key), key, row);
    this.order([...found.keys()]);
    const all = Math.max(count, found.size);
    write(this.title, say("howMany", say(`list-${this.name}`), all));
    this.element.hidden = this.isOptional && !found.size;
    this.table.hidden = !found.size;
    this.none.hidden = found.size > 0;
    this.more.hidden = all === found.size;
    write(this.more, say("more", all - found.size));
  }

  /** Rows stand in the order of the list; the one that is right already is not touched. */
  order(keys) {
    keys.forEach((key, at) => {
      const { element } = this.kept.get(key);
      if (this.body.children[at] !== element) this.body.insertBefore(element, this.body.children[at] ?? null);
    });
  }

  add(key) {
    const cells = this.columns.map(([word]) => {
      const cell = make("td", { role: "cell" });
      cell.dataset.head = say(word);
      return cell;
    });
    const kept = { row: {}, cells, buttons: this.actions.map((action) => make("button", { type: "button", onclick: () => action.run(key, kept.row) })) };
    kept.element = make("tr", { role: "row" }, ...cells);
    if (this.actions.length) kept.element.append(make("td", { role: "cell", className: "acts" }, ...kept.buttons));
    this.kept.set(key, kept);
    return kept;
  }

  fill(kept, key, row) {
    kept.row = row;
    this.columns.forEach(([, show], at) => {
      const shown = show(row, key) ?? "";
      const text = shown instanceof Node ? shown.textContent : `${shown}`;
      if (kept.cells[at].textContent !== text) kept.cells[at].replaceChildren(shown instanceof Node ? shown : text);
    });
    this.actions.forEach((action, at) => dress(kept.buttons[at], action, row));
  }
}
/** Give a button what it says of a row. */
const dress = (shown, action, row) => {
  const word = say(action.label(row)), name = say("actOn", word, action.about(row));
  write(shown, word);
  if (shown.getAttribute("aria-label") !== name) shown.setAttribute("aria-label", name);
  shown.hidden = !operator.mayChange || !action.fits(row);
};
const write = (place, text) => {
  if (place.textContent !== text) place.textContent = text;
};

customElements.define("who-am-i", class extends View {
  static parts = ["user"];

  draw() {
    if (!operator.tree) {
      if (this.form || !operator.isAsked) return;
      const user = field("name", { autocomplete: "username" });
      const password = field("password", { type: "password", autocomplete: "current-password" });
      this.form = make("form", { className: "row", onsubmit: attempt(async (event) => {
        event.preventDefault();
        await operator.signIn(user.input.value.trim(), password.input.value);
      }) }, user.box, password.box, make("button", { className: "go" }, say("login")));
      this.replaceChildren(this.form);
      return;
    }
    this.form = null;
    const text = !operator.isOpen ? say("offline") : operator.user ? say("signedIn", operator.user) : say("local", say(`role-${operator.role}`));
    this.replaceChildren(make("div", { className: "row" }, make("span", { role: "status" }, text), button("logout", () => operator.signOut())));
  }
});

/** A view of lists. */
const listView = (view, names) => class extends View {
  static parts = ["user", ...names];

  draw() {
    this.hidden = here().view !== view || !operator.tree;
    if (!operator.tree) this.tables?.forEach((table) => table.update([], 0)); // of who has signed out
    if (this.hidden) return;
    if (!this.tables) {
      this.tables = names.map((name) => new KeptTable(name));
      this.append(...this.tables.map((each) => each.element));
    }
    for (const table of this.tables) {
      const rows = table.name === "ended" ? operator.ended.map((row) => [row.id, row]) : operator.lists[table.name];
      table.update(rows, operator.counts[table.name] ?? 0);
    }
  }
};
customElements.define("phones-view", listView("phones", VIEWS.phones));
customElements.define("ways-view", listView("ways", VIEWS.ways));
customElements.define("now-lists", listView("now", [...VIEWS.now, "ended"]));

customElements.define("now-view", class extends View {
  static parts = ["user", "gateway", "figures"];

  draw() {
    this.hidden = here().view !== "now" || !operator.tree;
    if (!this.tiles) {
      this.tiles = new Map();
      this.place = make("div", { className: "figures" });
      this.told = make("p", { className: "unseen", role: "status" });
      this.append(this.place, this.told, make("now-lists"));
    }
    if (operator.tree) this.figures();
    this.querySelector("now-lists").draw();
  }

  /** The gateway's own figures; where it has none, what the lists count. */
  figures() {
    const { counts, gateway } = operator;
    const known = gateway?.counts ?? Object.fromEntries(Object.entries(COUNTED).map(([name, word]) => [word, counts[name]]));
    for (const word of FIGURES) if (typeof known[word] === "number") this.show(word, known[word]);
    for (const [word, write] of Object.entries(SIZES)) if (gateway?.[word] != null) this.show(word, gateway[word], write);
    write(this.told, say("running", known.calls ?? 0, known.streams ?? 0));
  }

  show(word, value, text = String) {
    if (!this.tiles.has(word)) {
      const title = say(`figure-${word}`), chart = new Sparkline(title, text), number = make("p", { className: "number" });
      this.tiles.set(word, { chart, number });
      this.place.append(make("section", { className: "card", "aria-label": title }, make("h2", {}, title), number, chart.element));
    }
    const { chart, number } = this.tiles.get(word);
    write(number, text(value));
    chart.add(performance.now() / 1000, value);
  }
});

customElements.define("gateway-view", class extends View {
  static parts = ["user", "gateway", "audit"];

  draw() {
    const { gateway } = operator;
    document.querySelector("nav a[href='#gateway']").hidden = !gateway;
    this.hidden = here().view !== "gateway" || !gateway;
    if (this.hidden) return;
    if (!this.facts) this.build();
    const shown = [["version", gateway.version], ["build", gateway.build], ["started", whenOf(gateway.started)], ["workers", gateway.workers], ["role", say(`role-${gateway.role}`)]];
    listFacts(this.facts, shown.filter(([, value]) => value).map(([word, value]) => [say(word), `${value}`]));
    this.level.disabled = gateway.role !== "admin";
    if (document.activeElement !== this.level) this.level.value = gateway.log_level;
    this.audit.element.hidden = operator.audit === null;
    const { audit } = operator;
    if (audit) this.audit.update(audit.map((row, at) => [audit.length - at, row]), audit.length);
  }

  build() {
    this.facts = make("dl", {});
    this.level = make("select", { id: "log-level", onchange: attempt(async () => {
      await operator.tree.patch("/gateway", { log_level: this.level.value });
      notice(say("levelSet", this.level.value));
    }) }, ...LEVELS.map((each) => make("option", { value: each, textContent: each })));
    this.audit = new KeptTable("audit");
    this.append(make("section", { className: "card", "aria-labelledby": "title-gateway" }, make("h2", { id: "title-gateway" }, say("gateway")), this.facts,
      make("div", { className: "level" }, make("label", { for: "log-level" }, say("logLevel")), this.level)), this.audit.element);
  }
});

/** What is shown of one call, beside its parties, its state and its time. */
const FACTS = [
  ["source", "source"], ["trunk", "trunk"], ["codec", "codec"], ["video", "video"], ["srtp", "srtp"],
  ["transcoding", "transcoding"], ["sent", "sent"], ["received", "received"], ["lostFrom", "lost_from_phone", "%"],
  ["lostTo", "lost_to_phone", "%"], ["jitterFrom", "jitter_ms", "ms"], ["jitterTo", "jitter_to_phone_ms", "ms"],
  ["trip", "round_trip_ms", "ms"], ["scoreFrom", "mos_from_phone"], ["scoreTo", "mos_to_phone"],
];

const listFacts = (list, facts) => {
  if (list.told === JSON.stringify(facts)) return;
  list.told = JSON.stringify(facts);
  list.replaceChildren(...facts.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value))));
};

customElements.define("call-view", class extends View {
  static parts = ["user", ...VIEWS.call, "ended", "figures"];

  draw() {
    const { view, given } = here(), { tree } = operator;
    const id = view === "call" && tree ? given.get("id") ?? "" : "";
    this.hidden = !id;
    this.open(tree, id);
    if (this.hidden) return;
    const running = operator.lists.call.get(id);
    this.row = running ?? operator.ended.find((each) => each.id === id) ?? {};
    write(this.heading, this.row.caller ? between(this.row) : say("noSuchCall"));
    write(this.state, this.row.caller ? stateOf(this.row) : "");
    write(this.time, clock(this.row.seconds));
    this.buttons.hidden = !running;
    MORE_ACTIONS.forEach((action, at) => dress(this.buttons.children[at], action, this.row));
    const known = FACTS.filter(([, key]) => ![null, undefined, false].includes(this.row[key]) && `${this.row[key]}`);
    listFacts(this.facts, known.map(([word, key, unit = ""]) => [say(word), `${this.row[key]} ${unit}`.trim()]));
    this.more.refresh(stateOf(this.row));
  }

  /** Follow this call, and no longer the one before. */
  open(tree, id) {
    if (this.callId === id && this.tree === tree) return;
    this.more?.close();
    Object.assign(this, { callId: id, tree });
    if (!id) return;
    this.more = new CallParts(tree, id, optional);
    this.heading = make("h2", { id: "title-one" });
    this.state = make("span", { className: "state", role: "status" });
    this.time = make("span", { className: "state" });
    this.buttons = make("div", { className: "row" }, ...MORE_ACTIONS.map((action) =>
      make("button", { type: "button", onclick: () => action.run(this.callId, this.row) })));
    this.facts = make("dl", {});
    this.replaceChildren(make("p", {}, make("a", { href: "#now", textContent: say("back") })),
      make("section", { className: "card", "aria-labelledby": "title-one" }, this.heading,
        make("p", { className: "row" }, this.state, this.time), this.buttons, this.facts),
      ...this.more.elements);
  }
});

begin();
operator.signIn("", "").catch(() => notice(say("welcome")));
