/** Microphone, camera and peer connections: JSEP (RFC 9429), with offers made here. */

import { notice, say } from "./parts.js";

const GATHERING = 2000; // ms to wait for candidates; the gateway needs none of them
const CONNECTING = 20_000; // ms; before that the gateway has given up a session without media
const SILENCE = 10_000; // ms without an answer; the gateway waits longer
const TRIES = 3; // after the first
const OVER = ["failed", "closed"];

/** The devices that the user has chosen, kept in this browser. */
export const devices = {
  get(kind) { return localStorage.getItem(`device.${kind}`) ?? ""; },
  set(kind, id) { localStorage.setItem(`device.${kind}`, id); },
  async list() { return navigator.mediaDevices ? navigator.mediaDevices.enumerateDevices() : []; },
};

const exact = (kind) => devices.get(kind) ? { deviceId: { ideal: devices.get(kind) } } : {};

const ask = (picture) => navigator.mediaDevices.getUserMedia({
  audio: { echoCancellation: true, noiseSuppression: true, ...exact("audioinput") },
  video: picture && { width: { ideal: 1280 }, height: { ideal: 720 }, ...exact("videoinput") },
});

/**
 * Ask for microphone and, if wanted and there, camera.
 * @param {boolean} picture @returns {Promise<MediaStream>}
 */
export const capture = (picture) => ask(picture).catch((error) => {
  if (!picture || error.name !== "NotFoundError") throw error;
  return ask(false);
});

/** The codecs of a picture that this browser plays, such as VP8: some have no H264. @returns {string[]} */
export const playable = () =>
  [...new Set(RTCRtpReceiver.getCapabilities("video").codecs.map(({ mimeType }) => mimeType.replace("video/", "")))];

/**
 * Wait until a connection is there, somewhat longer than the gateway does.
 * @param {RTCPeerConnection} connection @param {{fail: () => void}} session
 */
const connected = (connection, session) => new Promise((done, failed) => {
  session.fail = () => failed(new Error(say("noWay")));
  connection.addEventListener("connectionstatechange", () => {
    const { connectionState } = connection;
    if (connectionState === "connected") done();
    if (OVER.includes(connectionState)) session.fail();
  });
  setTimeout(session.fail, CONNECTING);
});

/**
 * A way of media to the gateway: it sends the tracks of a stream, or receives, until `close`. When its
 * session is lost, it begins another one. The old session ends after that, since the gateway hangs up
 * when nobody publishes. An event "gone" tells that no other session could begin.
 */
export class Way extends EventTarget {
  /**
   * @param {(sdp: string) => Promise<{answer: string, end: () => void}>} exchange
   *     gives the offer to the gateway
   */
  constructor(exchange) {
    super();
    Object.assign(this, { exchange, lines: [], sessions: [], stream: new MediaStream(), before: null, isClosed: false });
    this.open();
  }

  /** Make the connection of the next session, with the same lines. */
  open() {
    const connection = this.connection = new RTCPeerConnection();
    this.sessions.push({ connection, fail() {}, end() {} });
    connection.ontrack = ({ track }) => {
      for (const old of this.stream.getTracks()) if (old.kind === track.kind) this.stream.removeTrack(old);
      this.stream.addTrack(track);
      this.dispatchEvent(new Event("track"));
    };
    for (const line of this.lines) this.write(line);
  }

  /** Send what the user says and shows. @param {MediaStream} stream @param {string} codec of its picture, "" for any */
  async send(stream, codec = "") {
    for (const track of stream.getTracks())
      this.add(track, { direction: "sendonly", streams: [stream] }, codec);
    return this.begin();
  }

  /** Receive what others say and show. @param {string} codec of their picture, "" for any */
  async receive(codec = "") {
    for (const kind of ["audio", "video"])
      this.add(kind, { direction: "recvonly" }, codec);
    return this.begin();
  }

  add(what, about, codec) {
    this.lines.push({ what, about, codec });
    this.write(this.lines.at(-1));
  }

  write({ what, about, codec }) {
    const line = this.connection.addTransceiver(what, about), wanted = [`video/${codec}`, "video/rtx"];
    if (!codec || line.receiver.track.kind === "audio") return;
    const known = RTCRtpReceiver.getCapabilities("video").codecs;
    line.setCodecPreferences(known.filter(({ mimeType }) => wanted.includes(mimeType)));
  }

  /** Connect: by a session, or by the next one if the gateway has given that up. */
  async begin(tries = TRIES) {
    const session = this.sessions.at(-1), { connection } = this;
    try {
      await connection.setLocalDescription();
      await this.gathered();
      const { answer, end } = await this.exchange(connection.localDescription.sdp);
      session.end = end;
      if (this.isClosed) return end();
      const isThere = connected(connection, session);
      isThere.catch(() => {}); // awaited below
      await connection.setRemoteDescription({ type: "answer", sdp: answer });
      await isThere;
    } catch (error) {
      if (this.isClosed) return undefined; // meanwhile
      if (error.status || !tries) throw error; // the gateway refuses, or never connects
      this.open();
      return this.begin(tries - 1);
    }
    this.leave(1);
    return this.watch(connection);
  }

  /** Begin another session when this one is lost. @param {RTCPeerConnection} connection */
  watch(connection) {
    let timer;
    const again = () => {
      connection.onconnectionstatechange = null;
      if (!this.isClosed) this.renew();
    };
    connection.onconnectionstatechange = () => {
      clearTimeout(timer);
      if (OVER.includes(connection.connectionState)) again();
      else if (connection.connectionState === "disconnected") timer = setTimeout(again, SILENCE);
    };
  }

  async renew() {
    notice(say("lost"), true);
    this.open();
    try {
      await this.begin();
      if (!this.isClosed) notice(say("back"));
    } catch (error) {
      notice(say("refused", error.reason ?? error.message), true);
      this.dispatchEvent(new Event("gone"));
    }
  }

  gathered() {
    const { connection } = this;
    if (connection.iceGatheringState === "complete") return Promise.resolve();
    return new Promise((done) => {
      const look = () => connection.iceGatheringState === "complete" && done();
      connection.addEventListener("icegatheringstatechange", look);
      setTimeout(done, GATHERING);
    });
  }

  /** Put another track in the place of the one of its kind. @param {MediaStreamTrack} track */
  replace(track) {
    for (const line of this.lines) if (line.what.kind === track.kind) line.what = track;
    const sender = this.connection.getSenders().find((each) => each.track?.kind === track.kind);
    return sender?.replaceTrack(track);
  }

  /** Kilobits a second, round trip and jitter in ms, loss in percent, since the last call. */
  async quality() {
    const now = { at: performance.now(), octets: 0, lost: 0, packets: 0 };
    let trip = 0, jitter = 0;
    for (const each of (await this.connection.getStats()).values()) {
      if (each.type === "inbound-rtp" || each.type === "outbound-rtp") {
        now.octets += each.bytesReceived ?? each.bytesSent ?? 0;
        now.packets += each.packetsReceived ?? 0;
        now.lost += each.packetsLost ?? 0;
        jitter = Math.max(jitter, 1000 * (each.jitter ?? 0));
      } else if (each.type === "candidate-pair" && each.nominated)
        trip = 1000 * (each.currentRoundTripTime ?? 0);
    }
    const last = this.before ?? now;
    this.before = now;
    const lost = now.lost - last.lost, all = lost + now.packets - last.packets;
    return {
      rate: 8 * (now.octets - last.octets) / Math.max(now.at - last.at, 1),
      loss: all > 0 ? 100 * Math.max(lost, 0) / all : 0, trip, jitter,
    };
  }

  close() {
    this.isClosed = true;
    this.leave(0);
  }

  /** End all sessions but this many of the latest. @param {number} kept */
  leave(kept) {
    for (const { connection, fail, end } of this.sessions.splice(0, this.sessions.length - kept)) {
      connection.close();
      fail();
      end();
    }
  }
}
