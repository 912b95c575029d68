// NetConnection and NetStream for pages, over RTWebSocket.  No plug-in and no build: import it.
//
//     import { NetConnection } from "http://gateway:8080/rtws.js";
//     const connection = new NetConnection();
//     connection.client.invited = (from, to) => connection.call("accept", "opus");
//     await connection.connect("ws://gateway:8080/sip/alice@example.com", "alice", "secret");
//
// Frames and flows are those of docs/4-protocols/rtws.md; messages, those of NetConnection over RTMFP.

const PING = 0x01, ACK_WINDOW = 0x0a, OPEN = 0x10, ABANDON = 0x1a, CLOSE = 0x1c, LAST = 0x1d;
const OPEN_RETURN = 0x30, MORE = 0x3d, PONG = 0x41, ACK = 0x5a, CLOSE_ACK = 0x5c, EXCEPTION = 0x5e;
const AUDIO = 8, VIDEO = 9, DATA = 18, COMMAND = 20, USER_CONTROL = 4, FLOW_SYNC = 34;
const WINDOW = 1 << 20; // bytes that the server may have on their way in one flow
const FIRST_WINDOW = 65536, PART = 1400, MIN_ACK_WINDOW = 2800; // bytes
const ACK_MS = 200;

/** A number in seven bits a byte. @param {number} value @returns {number[]} */
function vlu(value) {
	const out = [value % 128];
	for (let rest = Math.floor(value / 128); rest > 0; rest = Math.floor(rest / 128))
		out.unshift((rest % 128) | 128);
	return out;
}

/** Reads numbers and values from bytes. */
class Reader {
	/** @param {Uint8Array} bytes @param {number} at */
	constructor(bytes, at = 0) {
		this.bytes = bytes;
		this.at = at;
		this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
	}

	get left() {
		return this.bytes.length - this.at;
	}

	vlu() {
		let value = 0, byte;
		do {
			byte = this.bytes[this.at++];
			if (byte === undefined) throw new RangeError("a number is cut off");
			value = value * 128 + (byte & 127);
		} while (byte & 128);
		return value;
	}

	/** @param {number} count */
	skip(count) {
		const at = this.at;
		this.at += count;
		if (this.at > this.bytes.length) throw new RangeError("a value is cut off");
		return at;
	}

	/** @param {number} count */
	text(count) {
		const at = this.skip(count);
		return new TextDecoder().decode(this.bytes.subarray(at, at + count));
	}
}

/** Writes values as AMF 0. @param {unknown[]} values @returns {Uint8Array} */
export function encode(...values) {
	/** @type {number[]} */
	const out = [];
	const number = (/** @type {number} */ value) => {
		const bytes = new Uint8Array(8);
		new DataView(bytes.buffer).setFloat64(0, value);
		out.push(...bytes);
	};
	const text = (/** @type {Uint8Array} */ bytes, /** @type {number} */ width) => {
		for (let shift = 8 * (width - 1); shift >= 0; shift -= 8) out.push((bytes.length >> shift) & 255);
		for (const each of bytes) out.push(each);
	};
	const members = (/** @type {object} */ value) => {
		for (const [name, member] of Object.entries(value)) {
			text(new TextEncoder().encode(name), 2);
			write(member);
		}
		out.push(0, 0, 9);
	};
	const write = (/** @type {any} */ value) => {
		if (typeof value === "number") out.push(0), number(value);
		else if (typeof value === "boolean") out.push(1, value ? 1 : 0);
		else if (typeof value === "string") {
			const bytes = new TextEncoder().encode(value);
			out.push(bytes.length > 65535 ? 12 : 2);
			text(bytes, bytes.length > 65535 ? 4 : 2);
		} else if (value === null) out.push(5);
		else if (value === undefined) out.push(6);
		else if (value instanceof Date) out.push(11), number(value.getTime()), out.push(0, 0);
		else if (Array.isArray(value)) {
			out.push(10);
			for (let shift = 24; shift >= 0; shift -= 8) out.push((value.length >> shift) & 255);
			value.forEach(write);
		} else out.push(3), members(value);
	};
	values.forEach(write);
	return new Uint8Array(out);
}

/** Reads all values of AMF 0. @param {Uint8Array} bytes @returns {unknown[]} */
export function decode(bytes) {
	const reader = new Reader(bytes);
	/** @type {any[]} */
	const known = []; // objects and arrays, in order, for references
	const members = (/** @type {any} */ into) => {
		for (;;) {
			const name = reader.text(reader.view.getUint16(reader.skip(2)));
			if (name === "" && reader.bytes[reader.at] === 9) {
				reader.at++;
				return into;
			}
			Object.defineProperty(into, name, {
				value: read(), enumerable: true, writable: true, configurable: true,
			});
		}
	};
	const keep = (/** @type {any} */ value) => (known.push(value), value);
	const read = () => {
		const kind = reader.bytes[reader.skip(1)];
		switch (kind) {
			case 0: return reader.view.getFloat64(reader.skip(8));
			case 1: return reader.bytes[reader.skip(1)] !== 0;
			case 2: return reader.text(reader.view.getUint16(reader.skip(2)));
			case 3: return members(keep({}));
			case 5: return null;
			case 6: return undefined;
			case 7: return known[reader.view.getUint16(reader.skip(2))];
			case 8: return reader.skip(4), members(keep({}));
			case 10: {
				const count = reader.view.getUint32(reader.skip(4));
				if (count > reader.left) throw new RangeError("an array is cut off");
				const found = keep([]);
				for (let index = 0; index < count; index++) found.push(read());
				return found;
			}
			case 11: {
				const date = new Date(reader.view.getFloat64(reader.skip(8)));
				reader.skip(2);
				return date;
			}
			case 12: case 15: return reader.text(reader.view.getUint32(reader.skip(4)));
			case 16: return reader.text(reader.view.getUint16(reader.skip(2))), members(keep({}));
			default: throw new RangeError(`AMF 0 has no type ${kind}`);
		}
	};
	const out = [];
	while (reader.left) out.push(read());
	return out;
}

/** A flow to the server: messages in order, in parts, within the window that it gives. */
class Sending {
	/** @param {Session} session @param {number} id @param {number} stream @param {number} [answers] */
	constructor(session, id, stream, answers) {
		this.session = session;
		this.id = vlu(id);
		/** @type {{bytes: Uint8Array, at: number}[]} */
		this.waiting = [];
		this.sent = this.arrived = 0;
		this.allowed = FIRST_WINDOW;
		this.isClosing = this.hasEnded = false;
		const metadata = [0x54, 0x43, 0x04, ...vlu(stream)];
		if (answers === undefined) session.write(OPEN, this.id, metadata);
		else session.write(OPEN_RETURN, this.id, vlu(answers), metadata);
	}

	/** Bytes that have not arrived. */
	get queued() {
		return this.waiting.reduce((sum, each) => sum + each.bytes.length - each.at, 0)
			+ this.sent - this.arrived;
	}

	/** @param {number} type @param {number} time @param {Uint8Array} payload */
	send(type, time, payload) {
		if (this.isClosing) return;
		const bytes = new Uint8Array(5 + payload.length);
		bytes[0] = type;
		new DataView(bytes.buffer).setUint32(1, time >>> 0);
		bytes.set(payload, 5);
		this.waiting.push({ bytes, at: 0 });
		this.push();
	}

	close() {
		this.isClosing = true;
		this.push();
	}

	/** The server wants no more of it. */
	drop() {
		this.isClosing = true;
		if (this.waiting.length) this.session.write(ABANDON, this.id, vlu(this.waiting.length - 1));
		this.waiting = [];
		this.push();
	}

	/** Send what the window allows. */
	push() {
		while (this.waiting.length && this.sent < this.allowed) {
			const first = this.waiting[0];
			const end = Math.min(first.at + Math.min(PART, this.allowed - this.sent), first.bytes.length);
			const isLast = end === first.bytes.length;
			const part = first.bytes.subarray(first.at, end);
			this.sent += this.session.write(isLast ? LAST : MORE, this.id, part);
			first.at = end;
			if (isLast) this.waiting.shift();
		}
		if (this.isClosing && !this.waiting.length && !this.hasEnded) {
			this.hasEnded = true;
			this.session.write(CLOSE, this.id);
		}
	}
}

/** A flow from the server; `take` is called with each message, unless it waits at a barrier. */
class Receiving {
	/** @param {number} id @param {number} stream @param {(bytes: Uint8Array) => void} take */
	constructor(id, stream, take) {
		this.id = id;
		this.stream = stream;
		this.take = take;
		/** @type {Uint8Array[]} */
		this.parts = [];
		/** @type {Uint8Array[]} */
		this.messages = [];
		this.unacknowledged = 0;
		this.isWaiting = this.isRejected = false;
	}

	/** @param {Uint8Array} part @param {boolean} isLast */
	add(part, isLast) {
		this.parts.push(part);
		if (!isLast) return;
		const whole = new Uint8Array(this.parts.reduce((sum, each) => sum + each.length, 0));
		let at = 0;
		for (const each of this.parts) whole.set(each, at), (at += each.length);
		this.parts = [];
		this.messages.push(whole);
		this.deliver();
	}

	deliver() {
		while (this.messages.length && !this.isWaiting) {
			const message = /** @type {Uint8Array} */ (this.messages.shift());
			if (!this.isRejected) this.take(message);
		}
	}

	get window() {
		return Math.max(0, WINDOW - this.messages.reduce((sum, each) => sum + each.length, 0));
	}
}

/** The frames of one WebSocket. */
class Session {
	/** @param {WebSocket} socket @param {(flow: Receiving) => boolean} accepts */
	constructor(socket, accepts) {
		this.socket = socket;
		this.accepts = accepts;
		/** @type {Map<number, Sending>} */
		this.sending = new Map();
		/** @type {Map<number, Receiving>} */
		this.receiving = new Map();
		this.next = 0;
		this.since = 0;
		this.ackWindow = MIN_ACK_WINDOW;
		/** @type {Set<Receiving>} */
		this.due = new Set();
		this.timer = 0;
	}

	/** @param {number} stream @param {number} [answers] */
	open(stream, answers) {
		const id = this.next++;
		const flow = new Sending(this, id, stream, answers);
		this.sending.set(id, flow);
		return flow;
	}

	/** Give the bytes of the frame. @param {number} kind @param {...(number[]|Uint8Array)} fields */
	write(kind, ...fields) {
		const frame = new Uint8Array(1 + fields.reduce((sum, each) => sum + each.length, 0));
		frame[0] = kind;
		let at = 1;
		for (const each of fields) frame.set(each, at), (at += each.length);
		if (this.socket.readyState === 1) this.socket.send(frame);
		return frame.length;
	}

	/** @param {Uint8Array} frame */
	receive(frame) {
		const reader = new Reader(frame, 1);
		const kind = frame[0];
		if (kind === PING) this.write(PONG, frame.subarray(1));
		else if (kind === ACK_WINDOW) {
			this.ackWindow = Math.max(MIN_ACK_WINDOW, reader.vlu());
			this.since = 0;
		} else if (kind === OPEN || kind === OPEN_RETURN) this.opened(reader, kind === OPEN_RETURN);
		else if (kind === LAST || kind === MORE || kind === ABANDON || kind === CLOSE) {
			const flow = this.receiving.get(reader.vlu());
			if (!flow) throw new RangeError("no such flow");
			if (kind === ABANDON) flow.parts = [];
			else if (kind === CLOSE) this.closed(flow);
			else this.data(flow, frame, reader.at, kind === LAST);
		} else if (kind === ACK || kind === CLOSE_ACK || kind === EXCEPTION) {
			const id = reader.vlu(), flow = this.sending.get(id);
			if (!flow) throw new RangeError("no such flow");
			if (kind === EXCEPTION) flow.drop(), id || this.socket.close(); // flow 0 is the control flow
			else if (kind === CLOSE_ACK) this.sending.delete(id);
			else {
				flow.arrived += reader.vlu();
				flow.allowed = flow.arrived + reader.vlu();
				flow.push();
			}
		}
	}

	/** @param {Reader} reader @param {boolean} isReturn */
	opened(reader, isReturn) {
		const id = reader.vlu();
		if (isReturn) reader.vlu();
		const [t, c, flags] = reader.bytes.subarray(reader.at, reader.skip(3) + 3);
		const stream = t === 0x54 && c === 0x43 && flags & 4 ? reader.vlu() : -1;
		const flow = new Receiving(id, stream, () => {});
		this.receiving.set(id, flow);
		if (stream < 0 || !this.accepts(flow)) {
			flow.isRejected = true;
			this.write(EXCEPTION, vlu(id), [0]);
		}
		this.acknowledge(flow, true);
	}

	/** @param {Receiving} flow @param {Uint8Array} frame @param {number} at @param {boolean} isLast */
	data(flow, frame, at, isLast) {
		flow.unacknowledged += frame.length;
		this.since += frame.length;
		const isDue = this.since >= this.ackWindow || flow.unacknowledged >= WINDOW / 2;
		this.since %= this.ackWindow;
		this.acknowledge(flow, isDue);
		flow.add(frame.subarray(at), isLast);
	}

	/** @param {Receiving} flow */
	closed(flow) {
		this.receiving.delete(flow.id);
		this.due.add(flow);
		this.flush();
		this.write(CLOSE_ACK, vlu(flow.id));
	}

	/** @param {Receiving} flow @param {boolean} isDue */
	acknowledge(flow, isDue) {
		this.due.add(flow);
		if (isDue) this.flush();
		else if (!this.timer) this.timer = setTimeout(() => this.flush(), ACK_MS);
	}

	flush() {
		clearTimeout(this.timer);
		this.timer = 0;
		for (const flow of this.due) {
			this.write(ACK, vlu(flow.id), vlu(flow.unacknowledged), vlu(flow.window));
			flow.unacknowledged = 0;
		}
		this.due.clear();
	}
}

/**
 * A connection to an application of the gateway.  Its calls find their methods in `client`, by name;
 * `onStatus` hears what becomes of the connection.
 */
export class NetConnection {
	constructor() {
		/** @type {Record<string, (...args: any[]) => void>} */
		this.client = {};
		/** @type {(info: any) => void} */
		this.onStatus = () => {};
		this.isConnected = false;
		/** @type {Map<number, NetStream>} */
		this.streams = new Map();
		/** @type {Map<number, {resolve: (value: any) => void, reject: (reason: any) => void}>} */
		this.calls = new Map();
		/** @type {Map<number, Receiving[]>} */
		this.barriers = new Map();
		this.number = 0;
		/** @type {number|undefined} */
		this.answers = undefined;
	}

	/**
	 * Connect to `ws://HOST[:PORT]/APP[/...]`; the rest are arguments of connect.  Give what the server
	 * says of it; rejected with that if it refuses.
	 * @param {string} url @param {...any} args @returns {Promise<any>}
	 */
	connect(url, ...args) {
		const { protocol, host, pathname, search } = new URL(url);
		const app = decodeURIComponent(pathname.slice(1)) + search;
		const command = { app, tcUrl: `rtmp://${host}/${app}`, objectEncoding: 0, flashVer: "rtws.js" };
		const socket = new WebSocket(`${protocol}//${host}/rtws`);
		socket.binaryType = "arraybuffer";
		const session = (this.session = new Session(socket, (flow) => this.accepts(flow)));
		socket.onmessage = (event) => {
			try {
				session.receive(new Uint8Array(event.data));
			} catch (error) {
				console.error(error);
				socket.close();
			}
		};
		return new Promise((resolve, reject) => {
			socket.onopen = () => {
				this.control = session.open(0);
				this.invoke("connect", command, args).then((info) => {
					this.isConnected = true;
					this.onStatus(info);
					resolve(info);
				}, (info) => (this.onStatus(info), reject(info)));
			};
			socket.onclose = () => {
				const code = `NetConnection.Connect.${this.isConnected ? "Closed" : "Failed"}`;
				this.isConnected = false;
				clearTimeout(session.timer);
				for (const each of this.calls.values()) each.reject({ level: "error", code });
				this.calls.clear();
				this.onStatus({ level: this.control ? "status" : "error", code });
				if (!this.control) reject({ level: "error", code });
			};
		});
	}

	/** Call a method of the application. @param {string} name @param {...any} args */
	call(name, ...args) {
		return this.invoke(name, null, args);
	}

	/** Make a stream to publish or play. @returns {Promise<NetStream>} */
	async createStream() {
		const id = await this.invoke("createStream", null, []);
		const stream = new NetStream(this, id);
		this.streams.set(id, stream);
		return stream;
	}

	close() {
		this.control?.close();
		this.session?.socket.close();
	}

	/** @param {string} name @param {any} object @param {any[]} args @returns {Promise<any>} */
	invoke(name, object, args) {
		const number = ++this.number;
		this.control?.send(COMMAND, 0, encode(name, number, object, ...args));
		return new Promise((resolve, reject) => this.calls.set(number, { resolve, reject }));
	}

	/** @param {Receiving} flow */
	accepts(flow) {
		if (this.answers === undefined) this.answers = flow.id;
		if (flow.stream && !this.streams.has(flow.stream)) return false;
		flow.take = (bytes) => this.received(flow, bytes);
		return true;
	}

	/** @param {Receiving} flow @param {Uint8Array} bytes */
	received(flow, bytes) {
		const time = new DataView(bytes.buffer, bytes.byteOffset).getUint32(1);
		const payload = bytes.subarray(5), stream = this.streams.get(flow.stream);
		switch (bytes[0]) {
			case COMMAND: return this.commanded(stream, decode(payload));
			case USER_CONTROL: return this.controlled(flow, payload);
			case DATA: {
				const [name, ...values] = /** @type {[string, ...any]} */ (decode(payload));
				stream?.client[name]?.(...values);
				return stream?.onMessage(DATA, time, payload);
			}
			case AUDIO: case VIDEO: return stream?.onMessage(bytes[0], time, payload);
		}
	}

	/** @param {NetStream|undefined} stream @param {any[]} command */
	commanded(stream, [name, number, , ...args]) {
		if (name === "_result" || name === "_error") {
			const call = this.calls.get(number);
			this.calls.delete(number);
			if (name === "_result") call?.resolve(args[0]);
			else call?.reject(args[0]);
		} else if (name === "onStatus") (stream ?? this).onStatus(args[0]);
		else if (Object.hasOwn(this.client, name)) this.client[name](...args);
	}

	/** A flow waits at a barrier for all others. @param {Receiving} flow @param {Uint8Array} payload */
	controlled(flow, payload) {
		const view = new DataView(payload.buffer, payload.byteOffset, payload.byteLength);
		if (payload.length < 10 || view.getUint16(0) !== FLOW_SYNC) return;
		const id = view.getUint32(2), met = [...(this.barriers.get(id) ?? []), flow];
		flow.isWaiting = true;
		this.barriers.set(id, met);
		if (met.length < view.getUint32(6)) return;
		this.barriers.delete(id);
		for (const each of met) each.isWaiting = false;
		for (const each of met) each.deliver(), this.session?.acknowledge(each, false);
	}
}

/**
 * A stream that is published or played.  Media are the bytes of FLV tags: `onMessage(type, time,
 * bytes)` gets them, `send` takes them; type 8 is audio, 9 video, 18 data, time is in ms.  The calls of
 * data find their methods in `client`.
 */
export class NetStream {
	/** @param {NetConnection} connection @param {number} id */
	constructor(connection, id) {
		this.connection = connection;
		this.id = id;
		/** @type {Record<string, (...args: any[]) => void>} */
		this.client = {};
		/** @type {(info: any) => void} */
		this.onStatus = () => {};
		/** @type {(type: number, time: number, bytes: Uint8Array) => void} */
		this.onMessage = () => {};
		/** @type {Map<number, Sending>} */
		this.flows = new Map();
	}

	/** Bytes that have been sent and have not arrived: wait while there are many. */
	get queued() {
		return [...this.flows.values()].reduce((sum, each) => sum + each.queued, 0);
	}

	/** @param {string} name */
	play(name) {
		this.command("play", name);
	}

	/** @param {string} name */
	publish(name) {
		this.command("publish", name, "live");
	}

	/** Publish a tag. @param {number} type @param {number} time @param {Uint8Array} bytes */
	send(type, time, bytes) {
		this.flow(type).send(type, time, bytes);
	}

	/** Publish data: "@setDataFrame", "onMetaData", {...}. @param {...any} values */
	sendData(...values) {
		this.send(DATA, 0, encode(...values));
	}

	/** End it, behind all that was sent. */
	close() {
		const control = /** @type {Sending} */ (this.connection.control);
		const barrier = new Uint8Array(10), view = new DataView(barrier.buffer);
		view.setUint16(0, FLOW_SYNC);
		view.setUint32(2, ++this.connection.number);
		view.setUint32(6, this.flows.size + 1);
		for (const each of [control, ...this.flows.values()]) each.send(USER_CONTROL, 0, barrier);
		control.send(COMMAND, 0, encode("deleteStream", 0, null, this.id));
		for (const each of this.flows.values()) each.close();
		this.flows.clear();
		this.connection.streams.delete(this.id);
	}

	/** @param {string} name @param {...any} args */
	command(name, ...args) {
		this.flow(COMMAND).send(COMMAND, 0, encode(name, 0, null, ...args));
	}

	/** The flow of a kind of message: data go with the commands. @param {number} type */
	flow(type) {
		const key = type === AUDIO || type === VIDEO ? type : COMMAND;
		let flow = this.flows.get(key);
		if (!flow) {
			const session = /** @type {Session} */ (this.connection.session);
			flow = session.open(this.id, this.connection.answers);
			this.flows.set(key, flow);
		}
		return flow;
	}
}
