/** Microphone, camera and peer connections: JSEP (RFC 9429), with offers made here. */

const GATHERING = 2000; // ms to wait for candidates; the gateway needs none of them

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

/** One connection to the gateway: it sends the tracks of a stream, or receives. */
export class Way extends EventTarget {
  /**
   * @param {(sdp: string) => Promise<{answer: string, end: () => void}>} exchange
   *     gives the offer to the gateway
   */
  constructor(exchange) {
    super();
    this.exchange = exchange;
    this.connection = new RTCPeerConnection();
    this.stream = new MediaStream();
    this.before = null;
    this.connection.ontrack = ({ track }) => {
      this.stream.addTrack(track);
      this.dispatchEvent(new Event("track"));
    };
    this.connection.onconnectionstatechange = () => this.dispatchEvent(new Event("state"));
  }

  get state() { return this.connection.connectionState; }

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
    const line = this.connection.addTransceiver(what, about), wanted = [`video/${codec}`, "video/rtx"];
    if (!codec || line.receiver.track.kind === "audio") return;
    const known = RTCRtpReceiver.getCapabilities("video").codecs;
    line.setCodecPreferences(known.filter(({ mimeType }) => wanted.includes(mimeType)));
  }

  async begin() {
    await this.connection.setLocalDescription();
    await this.gathered();
    const { answer, end } = await this.exchange(this.connection.localDescription.sdp);
    this.finish = end;
    if (this.state === "closed") return end(); // meanwhile
    return this.connection.setRemoteDescription({ type: "answer", sdp: answer });
  }

  gathered() {
    if (this.connection.iceGatheringState === "complete") return Promise.resolve();
    return new Promise((done) => {
      const look = () => this.connection.iceGatheringState === "complete" && done();
      this.connection.addEventListener("icegatheringstatechange", look);
      setTimeout(done, GATHERING);
    });
  }

  /** Put another track in the place of the one of its kind. @param {MediaStreamTrack} track */
  replace(track) {
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
    this.connection.close();
    this.finish?.();
  }
}
