/** A room with tiles: the pictures of its other members, and what they write to each other. */
import { Way } from "./media.js";

const AGAIN = 1000; // ms until a picture is asked for that has not begun
const NOTHING_YET = 409; // the status of a stream that is published and has brought nothing

/**
 * The members of a room who have a picture. Their audio is that of a call; each publishes its
 * camera as a stream of `live`, and tells of it below `/conference/ROOM`, as long as it is there.
 * It tells of each change by an event "change".
 */
export class Room extends EventTarget {
  /**
   * @param {string} name @param {string} member the user
   * @param {Resources} tree
   * @param {(what: string, sdp: string, stream: string) => Promise<object>} offer
   */
  constructor(name, member, tree, offer) {
    super();
    Object.assign(this, { name, member, tree, offer, publish: null, isLeft: false });
    this.place = `/conference/${name}`;
    /** @type {Map<string, Way|null>} the others; null until there is a picture */
    this.members = new Map();
  }

  /** Show the others a picture, and see theirs. @param {MediaStream} own @param {(said: object) => void} heard */
  async enter(own, heard) {
    for (const each of ["/conference", this.place]) // whoever comes first makes them
      await this.tree.put(each, {}, { persistent: true, "if-none-match": "*" }).catch(() => {});
    const stream = own.getVideoTracks().length ? `live/${this.name}-${this.member}` : "";
    if (stream && !this.isLeft) {
      this.publish = new Way((sdp) => this.offer("publish", sdp, stream));
      await this.publish.send(own, "VP8"); // which every browser has
    }
    if (this.isLeft) return;
    await this.tree.put(`${this.place}/${this.member}`, { stream });
    if (this.isLeft) return;
    await this.tree.subscribe(this.place, ({ kind, child, entity }) => {
      if (kind === "NOTIFY") return entity?.text && heard(entity);
      this.drop(child); // one who comes again publishes anew
      this.look().catch(() => {}); // the connection is lost: the next one looks again
    });
    await this.look();
  }

  /** Tell the others. */
  write(text) { return this.tree.notify(this.place, { from: this.member, text }); }

  leave() {
    this.isLeft = true;
    this.publish?.close();
    for (const name of [...this.members.keys()]) this.drop(name);
    this.tree.delete(`${this.place}/${this.member}`).catch(() => {});
    this.tree.unsubscribe(this.place).catch(() => {});
  }

  /** @param {string} name */
  drop(name) {
    this.members.get(name)?.close();
    this.members.delete(name);
  }

  /** Find out who is there now. */
  async look() {
    const there = (await this.tree.children(this.place)).filter((each) => each !== this.member);
    if (this.isLeft) return;
    for (const name of [...this.members.keys()].filter((each) => !there.includes(each))) this.drop(name);
    for (const name of there.filter((each) => !this.members.has(each))) {
      this.members.set(name, null);
      this.play(name).catch(() => {}); // no picture then: the audio is that of the room
    }
    this.dispatchEvent(new Event("change"));
  }

  /** Play the picture of a member, as soon as it comes; again when its way is gone. @param {string} name */
  async play(name) {
    const { stream } = await this.tree.get(`${this.place}/${name}`);
    while (stream && this.members.get(name) === null) {
      const way = new Way((sdp) => this.offer("play", sdp, stream));
      try {
        await way.receive();
      } catch (error) {
        way.close();
        if (error.status !== NOTHING_YET) throw error;
        await new Promise((done) => setTimeout(done, AGAIN));
        continue;
      }
      if (this.members.get(name) !== null) return way.close();
      this.members.set(name, way);
      way.addEventListener("gone", () => {
        if (this.members.get(name) !== way) return;
        this.drop(name);
        this.look().catch(() => {});
      });
      this.dispatchEvent(new Event("change"));
    }
  }
}
