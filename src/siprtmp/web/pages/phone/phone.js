/** The phone: views of the tree's calls, streams and logins. It uses `/tree` and nothing else. */
import { Resources } from "/tree.js";
import { capture, devices, playable, Way } from "./media.js";
import { attempt, begin, button, field, here, learn, make, nameOf, notice, press, proofOf, say, treeAddress, viewsOf } from "./parts.js";
import { Room } from "./room.js";
import { TABLES } from "./words.js";

const KEYS = "123456789*0#";
const QUALITY_MS = 2000;

/**
 * What the page knows and does: its tree, its user, and one call at a time. It tells of each
 * change by an event "change" with the part that has changed: user, call, people or streams.
 */
class Phone extends EventTarget {
  constructor() {
    super();
    Object.assign(this, {
      tree: null, isOpen: false, user: "", proof: "", call: null, isBeginning: false, incoming: null, people: [],
    });
  }

  changed(part) { this.dispatchEvent(new CustomEvent("change", { detail: part })); }

  /** The name of `call` whose calls are this user's. */
  get name() { return this.user.split("@")[0]; }

  /** Be there for others, with a password where the gateway asks for one. */
  async signIn(user, password) {
    const whole = user.includes("@") ? user : `${user}@${location.hostname}`;
    const name = whole.split("@")[0];
    this.signOut();
    const proof = proofOf(name, password);
    const tree = new Resources(treeAddress(proof));
    const enter = () => tree.put(`/login/${whole}`, { name, audio: true, video: true, plays: playable() });
    try {
      await enter();
      await tree.subscribe("/login", () => this.lookForPeople());
      await tree.subscribe("/call", (told) => this.hear(told));
    } catch (error) {
      tree.close();
      throw error;
    }
    Object.assign(this, { tree, user: whole, proof, isOpen: true });
    tree.addEventListener("lost", () => {
      this.finish(""); // its media end with the connection, and it with them
      this.turn(false);
    });
    tree.addEventListener("open", () => { // a login ends with its connection
      enter().then(() => this.lookForPeople(), () => {});
      this.turn(true);
    });
    await this.lookForPeople();
    this.changed("user");
  }

  turn(isOpen) {
    this.isOpen = isOpen;
    this.changed("user");
  }

  signOut() {
    this.finish("");
    this.tree?.close();
    Object.assign(this, { tree: null, user: "", incoming: null });
    this.people = [];
    this.changed("user");
  }

  async lookForPeople() {
    this.people = (await this.tree.children("/login")).filter((each) => each !== this.user);
    this.changed("people");
  }

  // -- calls

  /** What the tree tells of the calls that this user may see. */
  hear({ kind, child: id, entity }) {
    const row = entity ?? {};
    if (this.call && this.call.id === id) {
      if (kind === "delete") this.finish(row.reason ?? "");
      else this.show(row);
      return;
    }
    const isMine = row.direction === "in" && row.state === "ringing" &&
      this.name === nameOf(row.callee);
    if (kind !== "delete" && isMine && !this.call) this.incoming = { id, row };
    else if (this.incoming?.id === id) this.incoming = null;
    this.changed("call");
  }

  show(row) {
    this.call.row = { ...this.call.row, ...row };
    this.changed("call");
  }

  /** The address of somebody; a name alone is one of the user's own domain. */
  whole(to) { return /[@:]/.test(to) ? to : `${to}@${this.user.split("@")[1]}`; }

  /** Call somebody, or enter a room with tiles. @param {string} to @param {boolean} picture @param {Room|null} room */
  async dial(to, picture, room = null) {
    const address = this.whole(to);
    await this.begin({ callee: address, direction: "out", state: "ringing" }, picture, room);
    await this.follow(() => this.tree.post("/call", { from: this.name, to: address }));
  }

  /** Enter a room: its audio by a call, and the others' pictures as tiles. */
  async enter(name) {
    const room = new Room(nameOf(name), this.name, this.tree, (way, sdp, stream) => this.offer(way, sdp, stream));
    room.addEventListener("change", () => this.changed("room"));
    await this.dial(name, true, room);
    const { call } = this;
    if (call?.room !== room) return; // it was refused
    try {
      await room.enter(call.own, ({ from, text }) => this.heard(from, text));
    } catch (error) {
      if (this.call === call) await this.hangUp();
      throw error;
    }
  }

  /** Take the call that rings: what is published under the own name answers it. */
  async answer(picture) {
    const { id, row } = this.incoming;
    this.incoming = null;
    await this.begin(row, picture);
    await this.follow(() => id);
  }

  async decline() {
    const { id } = this.incoming;
    this.incoming = null;
    this.changed("call");
    await this.tree.delete(`/call/${id}`);
  }

  /** Have media both ways, under the own name; in a room with tiles, a picture of its own. */
  async begin(row, picture, room = null) {
    if (this.call || this.isBeginning) throw new Error(say("busy"));
    this.isBeginning = true;
    notice(say("asking"));
    const own = await capture(picture).finally(() => { this.isBeginning = false; });
    notice("");
    const way = { publish: new Way((sdp) => this.offer("publish", sdp)), play: new Way((sdp) => this.offer("play", sdp)) };
    this.call = { id: "", row, own, room, ways: way, chat: [], shared: null, isHeld: false };
    way.play.addEventListener("track", () => this.changed("call"));
    try {
      const codec = await this.codecFor(this.other);
      await way.play.receive(codec);
      await way.publish.send(room ? new MediaStream(own.getAudioTracks()) : own, codec);
    } catch (error) {
      this.finish("");
      throw error;
    }
    this.changed("call");
  }

  /** The codec for the pictures of a call: VP8 with a page that plays no H264, "" for any else. */
  async codecFor(address) {
    const [login] = address.replace(/^.*?(?:sips?|tel):/, "").split(/[:;>]/);
    const { plays } = await this.tree.get(`/login/${login}`).catch(() => ({}));
    return Array.isArray(plays) && !plays.includes("H264") ? "VP8" : "";
  }

  /** Give an offer to the gateway, for the stream of the own name. */
  offer(way, sdp, stream = `call/${this.name}`) {
    return exchange(this.tree, { way, stream, sdp, proof: this.proof });
  }

  /** Hear of the call that is made or found; its media end with it. @param {() => string|Promise<string>} find */
  async follow(find) {
    const { call } = this;
    if (!call) return; // it was hung up before it began
    try {
      const id = call.id = await find();
      await this.tree.subscribe(`/call/${id}`, (told) => this.event(told));
      this.show(await this.tree.get(`/call/${id}`));
    } catch (error) {
      if (this.call !== call) return; // it has ended, and the user knows why
      this.finish(""); // nobody is to hear the next caller unasked
      throw error;
    }
  }

  /** What happens within the call: keys and messages of the other. */
  event({ kind, entity: data }) {
    if (kind !== "NOTIFY" || !this.call) return;
    if (data.message) this.heard(nameOf(this.other), data.message);
    if (data.digits) notice(say("pressed", data.digits));
    if (data.event === "held" || data.event === "resumed") this.call.isHeld = data.event === "held";
    if (data.event === "transferred") this.transferred(data.reason);
    this.changed("chat");
  }

  heard(from, text) {
    this.call?.chat.push({ from, text });
    this.changed("chat");
  }

  async write(text) {
    const { room } = this.call;
    await (room ? room.write(text) : this.tell({ message: text }));
    this.heard(this.name, text);
  }

  /** Have the other call somebody else. */
  transfer(to) {
    const address = this.whole(to);
    return this.tell({ transfer: /^(sips?|tel):/i.test(address) ? address : `sip:${address}` });
  }

  /** What becomes of that, as a status and its reason: RFC 3515 §2.4.5. */
  transferred(said) {
    const status = parseInt(said, 10);
    if (status < 200) notice(say("transferring", said));
    else if (status >= 300) notice(say("notTransferred", said), true);
    else {
      this.hangUp().catch(() => {}); // the other may have hung up already
      notice(say("transferred"));
    }
  }

  get other() {
    const { direction, caller, callee } = this.call.row;
    return (direction === "in" ? caller : callee) ?? "";
  }

  tell(entity) { return this.tree.notify(`/call/${this.call.id}`, entity); }

  async change(part) { this.show((await this.tree.patch(`/call/${this.call.id}`, part)).entity); }

  async hangUp() {
    const { id } = this.call;
    const ended = id && this.tree.delete(`/call/${id}`);
    this.finish(""); // before the tree tells why it has ended
    await ended;
  }

  /** Show the screen instead of the camera, until it is asked for again. */
  async share() {
    const { call } = this, shown = call.room?.publish ?? call.ways.publish;
    if (call.shared) {
      call.shared.getTracks().forEach((track) => track.stop());
      call.shared = null;
      const [camera] = call.own.getVideoTracks();
      if (camera) await shown.replace(camera);
    } else {
      call.shared = await navigator.mediaDevices.getDisplayMedia({ video: true });
      const [screen] = call.shared.getVideoTracks();
      screen.onended = () => call.shared && this.share();
      await shown.replace(screen);
    }
    this.changed("call");
  }

  /** End the media of the call, and forget it. */
  finish(reason) {
    const { call } = this;
    this.call = null;
    if (!call) return;
    call.room?.leave();
    Object.values(call.ways).forEach((way) => way.close());
    for (const stream of [call.own, call.shared]) stream?.getTracks().forEach((track) => track.stop());
    if (reason) notice(say("ended", reason === "BYE" ? say("theyHungUp") : reason));
    this.changed("call");
  }
}

/** A session of `/media`: the answer to an offer, and how it ends. */
const exchange = async (tree, asked) => {
  const path = `/media/${await tree.post("/media", asked)}`;
  const { sdp } = await tree.get(path);
  return { answer: sdp, end: () => tree.delete(path).catch(() => {}) };
};

learn(TABLES);
const phone = new Phone();
const View = viewsOf(phone);

customElements.define("who-am-i", class extends View {
  static parts = ["user"];

  draw() {
    if (!phone.tree) {
      const user = field("name", { autocomplete: "username", required: true, value: here().given.get("name") ?? localStorage.getItem("user") ?? "" });
      const password = field("password", { type: "password", autocomplete: "current-password" });
      const form = make("form", { className: "row", onsubmit: attempt(async (event) => {
        event.preventDefault();
        await phone.signIn(user.input.value.trim(), password.input.value);
        localStorage.setItem("user", user.input.value.trim());
      }) }, user.box, password.box, make("button", { className: "go" }, say("login")));
      this.replaceChildren(form);
      return;
    }
    const text = phone.isOpen ? say("signedIn", phone.user) : say("offline");
    this.replaceChildren(make("div", { className: "row" }, make("span", {}, text), button("logout", () => phone.signOut())));
  }
});

customElements.define("dial-view", class extends View {
  static parts = ["user", "call"];

  draw() {
    if (!this.form) this.build();
    this.hidden = here().view !== "call" || !phone.tree || phone.call !== null;
  }

  build() {
    const to = field("address", { type: "text", required: true, inputMode: "tel", name: "to", value: here().given.get("to") ?? "" });
    const picture = make("input", { type: "checkbox", id: "picture", checked: true });
    const dial = attempt(async (event) => {
      event.preventDefault();
      await phone.dial(to.input.value.trim(), picture.checked);
    });
    const keys = make("div", { className: "keys", role: "group", "aria-label": say("keypad") },
      ...[...KEYS].map((key) => make("button", {
        type: "button", textContent: key, "aria-label": say("key", key), onclick: () => { to.input.value += key; },
      })));
    this.form = make("form", { className: "card", onsubmit: dial },
      make("h2", {}, say("dial")), make("div", { className: "row" }, to.box, make("button", { className: "go" }, say("call"))),
      make("p", { className: "check" }, picture, make("label", { for: "picture" }, say("picture"))), keys);
    this.replaceChildren(this.form);
  }
});

customElements.define("incoming-calls", class extends View {
  static parts = ["call", "user"];

  draw() {
    const { incoming } = phone;
    if (!incoming) {
      this.replaceChildren();
      return;
    }
    const from = nameOf(incoming.row.caller);
    this.replaceChildren(make("section", { className: "card", "aria-label": say("incoming", from) },
      make("h2", {}, say("incoming", from)), make("div", { className: "row" },
        button("answer", attempt(() => phone.answer(true)), { className: "go" }),
        button("answerSound", attempt(() => phone.answer(false))),
        button("decline", attempt(() => phone.decline()), { className: "stop" }))));
  }
});

customElements.define("active-calls", class extends View {
  static parts = ["call", "chat", "room"];

  draw() {
    const { call } = phone;
    if (!call) {
      clearInterval(this.timer);
      this.drawn = null;
      this.replaceChildren();
      return;
    }
    if (this.drawn !== call) this.build(call);
    const { row } = call;
    const isUp = row.state === "up";
    this.state.textContent = say(row.held ? "holding" : call.isHeld ? "held" : isUp ? "connected" : "ringing");
    for (const each of this.needsUp) each.disabled = !isUp;
    press(this.hold, row.held);
    press(this.screen, call.shared !== null);
    this.lines.replaceChildren(...call.chat.map(({ from, text }) => make("li", {}, `${from}: ${text}`)));
    this.lines.scrollTop = this.lines.scrollHeight;
    this.picture.hidden = call.room !== null || !call.ways.play.stream.getVideoTracks().length;
    this.drawTiles(call.room?.members ?? new Map());
  }

  /** A tile for each other member of a room, kept as long as it is there. */
  drawTiles(members) {
    for (const [name, tile] of this.members) {
      if (members.has(name)) continue;
      tile.remove();
      this.members.delete(name);
    }
    for (const [name, way] of members) {
      let tile = this.members.get(name);
      if (!tile) {
        tile = make("figure", {}, make("video", { autoplay: true, muted: true, playsInline: true, "aria-label": say("remote", name) }), make("figcaption", {}, name));
        this.members.set(name, tile);
        this.tiles.append(tile);
      }
      const [video] = tile.children;
      if (way && video.srcObject !== way.stream) video.srcObject = way.stream;
    }
  }

  build(call) {
    this.drawn = call;
    const other = nameOf(phone.other);
    this.picture = make("video", { autoplay: true, playsInline: true, srcObject: call.ways.play.stream, "aria-label": say("remote", other) });
    const own = make("video", { className: call.room ? "" : "self", autoplay: true, muted: true, playsInline: true, srcObject: call.own, "aria-label": say("self"), hidden: !call.own.getVideoTracks().length });
    listen(this.picture, call.ways.play);
    this.state = make("p", { className: "state", role: "status" });
    this.quality = make("p", { className: "quality" });
    const track = (kind) => call.own.getTracks().find((each) => each.kind === kind);
    const toggle = (word, kind) => {
      const it = track(kind);
      const shown = button(word, () => {
        it.enabled = !it.enabled;
        press(shown, it.enabled === (kind === "video"));
      }, { disabled: !it });
      press(shown, kind === "video" && Boolean(it));
      return shown;
    };
    this.hold = button("hold", attempt(() => phone.change({ held: !phone.call.row.held })));
    this.screen = button("screen", attempt(() => phone.share()), { disabled: !track("video") });
    press(this.screen, false);
    const keys = make("div", { className: "keys", role: "group", "aria-label": say("digits") },
      ...[...KEYS].map((key) => make("button", {
        type: "button", textContent: key, "aria-label": say("key", key), onclick: attempt(() => phone.tell({ digits: key })),
      })));
    const line = (word, act, run) => {
      const it = field(word, { required: true });
      const submit = make("button", {}, say(act));
      const form = make("form", { className: "row", onsubmit: attempt(async (event) => {
        event.preventDefault();
        await run(it.input.value.trim());
        it.input.value = "";
      }) }, it.box, submit);
      return { form, submit };
    };
    const chat = line("chat", "send", (text) => phone.write(text));
    const transfer = line("transfer", "transferNow", (to) => phone.transfer(to));
    this.lines = make("ul", { className: "plain chat" });
    this.needsUp = [this.hold, chat.submit, transfer.submit, ...keys.children];
    transfer.form.hidden = call.room !== null;
    const self = make("figure", {}, own, make("figcaption", { hidden: !call.room }, phone.name));
    this.tiles = make("div", { className: "tiles" }, this.picture, self);
    this.members = new Map();
    this.replaceChildren(make("section", { className: "card", "aria-label": say("callWith", other) },
      make("h2", {}, other), this.state, this.tiles,
      make("div", { className: "row" }, button("hangUp", attempt(() => phone.hangUp()), { className: "stop" }),
        toggle("mute", "audio"), toggle("camera", "video"), this.screen, this.hold),
      this.quality,
      make("details", {}, make("summary", {}, say("keypad")), keys), transfer.form, this.lines, chat.form));
    clearInterval(this.timer);
    this.timer = setInterval(() => this.measure(call), QUALITY_MS);
  }

  async measure(call) {
    const [heard, said] = await Promise.all([call.ways.play.quality(), call.ways.publish.quality()]);
    const { round } = Math;
    this.quality.textContent = say("quality", round(heard.rate), round(said.rate), round(heard.trip), heard.loss.toFixed(1), round(heard.jitter));
  }
});

customElements.define("watch-view", class extends View {
  static parts = ["user"];

  draw() {
    if (!this.tiles) this.build();
    this.hidden = here().view !== "watch" || !phone.tree;
  }

  build() {
    const name = field("stream", { required: true, name: "stream" });
    const room = field("room", { required: true, name: "room" });
    const enter = attempt(async (event) => {
      event.preventDefault();
      await phone.enter(room.input.value.trim());
    });
    this.tiles = make("div", { className: "tiles" });
    const play = attempt(async (event) => {
      event.preventDefault();
      await this.add("play", name.input.value.trim());
    });
    const publish = (take) => attempt(async () => {
      if (name.input.reportValidity()) await this.add("publish", name.input.value.trim(), await take());
    });
    const screen = () => navigator.mediaDevices.getDisplayMedia({ video: true, audio: true });
    this.replaceChildren(make("section", { className: "card" }, make("h2", {}, say("rooms")),
      make("form", { className: "row", onsubmit: enter }, room.box, make("button", { className: "go" }, say("enter")))),
    make("section", { className: "card" }, make("h2", {}, say("live")),
      make("form", { className: "row", onsubmit: play }, name.box, make("button", { className: "go" }, say("play")),
        button("publishCamera", publish(() => capture(true))), button("publishScreen", publish(screen)))),
    this.tiles);
  }

  /** A tile of what is watched or published. */
  async add(what, name, own = null) {
    const stream = name.includes("/") ? name : `live/${name}`;
    const way = new Way((sdp) => phone.offer(what, sdp, stream));
    try {
      await (own ? way.send(own) : way.receive());
    } catch (error) {
      way.close();
      own?.getTracks().forEach((track) => track.stop());
      throw error;
    }
    const picture = make("video", { autoplay: true, playsInline: true, muted: own !== null, controls: true, srcObject: own ?? way.stream, "aria-label": say("remote", stream) });
    if (!own) listen(picture, way);
    const tile = make("figure", { className: "card" }, picture, make("figcaption", { className: "row" },
      make("span", { className: "grow" }, stream), button("stop", () => {
        way.close();
        own?.getTracks().forEach((track) => track.stop());
        tile.remove();
      })));
    this.tiles.append(tile);
  }
});

customElements.define("people-view", class extends View {
  static parts = ["people", "user"];

  draw() {
    this.hidden = here().view !== "people" || !phone.tree;
    const { people } = phone;
    const rows = people.map((each) => make("li", {}, each, button("call", attempt(() => phone.dial(each, true)), { "aria-label": say("callTo", each) })));
    this.replaceChildren(make("section", { className: "card" }, make("h2", {}, say("people")),
      people.length ? make("ul", { className: "plain" }, ...rows) : make("p", { className: "state" }, say("nobody"))));
  }
});

customElements.define("devices-view", class extends View {
  async draw() {
    this.hidden = here().view !== "devices";
    const known = await devices.list();
    const choice = (word, kind) => {
      const id = `device-${kind}`;
      const options = known.filter((each) => each.kind === kind && each.deviceId)
        .map((each) => make("option", { value: each.deviceId, textContent: each.label || each.deviceId.slice(0, 8), selected: each.deviceId === devices.get(kind) }));
      return make("div", { className: "grow" }, make("label", { for: id }, say(word)),
        make("select", { id, onchange: ({ target }) => devices.set(kind, target.value) }, make("option", { value: "", textContent: say("choose") }), ...options));
    };
    this.replaceChildren(make("section", { className: "card" }, make("h2", {}, say("devices")), make("div", { className: "row" },
      choice("microphone", "audioinput"), choice("camera", "videoinput"), choice("speaker", "audiooutput"))));
  }
});

/** Play what comes at the loudspeaker that the user has chosen. */
const listen = (element, way) => {
  const speaker = devices.get("audiooutput");
  if (speaker && element.setSinkId) element.setSinkId(speaker).catch(() => {});
  way.addEventListener("track", () => element.play().catch(() => {}));
};

notice(say("welcome"));
begin();
