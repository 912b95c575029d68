// A client of a tree of resources, for pages: one module, without a build.
// It follows docs/4-protocols/resources.md.

/**
 * @typedef {{status: number, entity?: any, etag?: string, resource?: string}} Answer
 * @typedef {{kind: string, resource: string, child: string, entity: any}} Notification
 * `kind` is PUT, DELETE, NOTIFY, create, update or delete, the last three with a `child`; or MISSED.
 * @typedef {{send(text: string): void, close(): void, onopen: any, onmessage: any, onclose: any}} Wire
 */

const FIRST_WAIT = 500; // ms until the first try to connect again ...
const LAST_WAIT = 15000; // ... and at most
const ENDED = [401, 403, 404]; // of a SUBSCRIBE to what has gone, or is not for this client now

/** A request that was refused; `status` is one of HTTP. */
export class ResourceError extends Error {
  /** @param {number} status @param {string} reason */
  constructor(status, reason) {
    super(reason);
    this.name = "ResourceError";
    this.status = status;
  }
}

/** A connection to the tree, made again whenever it is lost. */
export class Resources extends EventTarget {
  /**
   * @param {string} url such as wss://example.org/tree
   * @param {{token?: string, open?: (url: string, protocols: string[]) => Wire,
   *   later?: (action: () => void, ms: number) => any}} [options]
   */
  constructor(url, options = {}) {
    super();
    this._url = url;
    this._protocols = ["resource.v1"];
    if (options.token) this._protocols.push(`bearer.${options.token}`);
    this._open = options.open ?? ((to, protocols) => new WebSocket(to, protocols));
    this._later = options.later ?? ((action, ms) => setTimeout(action, ms)); // never as a method
    this._wait = FIRST_WAIT;
    this._lastId = 0;
    this._isOpen = false;
    this._isClosed = false;
    this._epoch = "";
    /** @type {Map<number, {resolve: (answer: any) => void, reject: (error: Error) => void}>} */
    this._waiting = new Map();
    /** @type {string[]} */
    this._unsent = [];
    /** @type {Map<string, (notification: Notification) => void>} */
    this._subscribed = new Map();
    /** @type {Map<string, number>} the number of the last event, by resource */
    this._heard = new Map();
    this._connect();
  }

  /** What a resource holds. @param {string} resource @returns {Promise<any>} */
  async get(resource) {
    return (await this.request("GET", resource)).entity;
  }

  /** The names below a resource. @param {string} resource @returns {Promise<string[]>} */
  async children(resource) {
    return (await this.request("GET", resource, { view: "children" })).entity;
  }

  /** Make or replace a resource. @param {string} resource @param {any} entity @param {object} [more] */
  put(resource, entity, more = {}) {
    return this.request("PUT", resource, { entity, ...more });
  }

  /**
   * Make a resource below this one; its name.
   * @param {string} resource @param {any} entity @param {object} [more] @returns {Promise<string>}
   */
  async post(resource, entity, more = {}) {
    return (await this.request("POST", resource, { entity, ...more })).entity.id;
  }

  /** Change what a resource holds. @param {string} resource @param {any} change @param {object} [more] */
  patch(resource, change, more = {}) {
    return this.request("PATCH", resource, { entity: change, ...more });
  }

  /** End a resource. @param {string} resource */
  delete(resource) {
    return this.request("DELETE", resource);
  }

  /** Send an event to all others who listen. @param {string} resource @param {any} data */
  notify(resource, data) {
    return this.request("NOTIFY", resource, { data });
  }

  /**
   * Listen to a resource, also after each reconnection.
   * @param {string} resource @param {(notification: Notification) => void} heard
   */
  subscribe(resource, heard) {
    this._subscribed.set(resource, heard);
    return this._subscribe(resource);
  }

  /** @param {string} resource */
  unsubscribe(resource) {
    this._subscribed.delete(resource);
    this._heard.delete(resource);
    return this.request("UNSUBSCRIBE", resource);
  }

  /**
   * Have notifications posted to a URL; the subscription, with the `secret` that signs them.
   * @param {string} resource @param {string} url @param {object} [more] @returns {Promise<any>}
   */
  async subscribeUrl(resource, url, more = {}) {
    const said = { url, persistent: true, ...more };
    return (await this.request("SUBSCRIBE", resource, said)).entity;
  }

  /** @param {string} resource @param {string} url */
  unsubscribeUrl(resource, url) {
    return this.request("UNSUBSCRIBE", resource, { url });
  }

  /**
   * @param {string} method @param {string} resource @param {object} [more]
   * @returns {Promise<Answer>} rejected by a ResourceError
   */
  request(method, resource, more = {}) {
    if (this._isClosed) return Promise.reject(new ResourceError(503, "The connection is closed"));
    const id = ++this._lastId;
    const text = JSON.stringify({ method, resource, ...more, id });
    const answer = new Promise((resolve, reject) => this._waiting.set(id, { resolve, reject }));
    if (this._isOpen) this._wire.send(text);
    else this._unsent.push(text);
    return answer;
  }

  /** Close the connection for good; transient resources end with it. */
  close() {
    this._isClosed = true;
    this._wire.close();
    this._fail();
  }

  _connect() {
    this._wire = this._open(this._url, this._protocols);
    this._wire.onopen = () => this._opened();
    this._wire.onmessage = (/** @type {{data: string}} */ event) => this._receive(JSON.parse(event.data));
    this._wire.onclose = () => this._lost();
  }

  _opened() {
    this._isOpen = true;
    this._wait = FIRST_WAIT;
    const unsent = this._unsent.splice(0);
    for (const text of unsent) this._wire.send(text);
    for (const resource of this._heard.keys()) this._subscribe(resource).catch((error) => this._refused(resource, error));
    this.dispatchEvent(new Event("open"));
  }

  _lost() {
    this._isOpen = false;
    this._fail();
    if (this._isClosed) return;
    this.dispatchEvent(new Event("lost"));
    this._later(() => this._isClosed || this._connect(), this._wait);
    this._wait = Math.min(2 * this._wait, LAST_WAIT);
  }

  /** The requests that wait fail. */
  _fail() {
    this._unsent.length = 0;
    for (const { reject } of this._waiting.values()) reject(new ResourceError(503, "The connection has ended"));
    this._waiting.clear();
  }

  /** @param {string} resource */
  async _subscribe(resource) {
    const since = this._heard.get(resource);
    const more = since === undefined ? {} : { since, epoch: this._epoch };
    /** @type {any} */
    const answer = await this.request("SUBSCRIBE", resource, more);
    this._epoch = answer.epoch;
    if (since === undefined || answer.missed) this._heard.set(resource, answer.seq);
    if (answer.missed) this._tell({ kind: "MISSED", resource, child: "", entity: null });
    return answer;
  }

  /** What is refused after a reconnection has ended meanwhile. @param {string} resource @param {ResourceError} error */
  _refused(resource, error) {
    if (ENDED.includes(error.status)) this._tell({ kind: "DELETE", resource, child: "", entity: null });
  }

  /** @param {any} said */
  _receive(said) {
    if (said.notify !== undefined) return this._hear(said);
    const waiting = this._waiting.get(said.id);
    this._waiting.delete(said.id);
    if (!waiting) return;
    if (said.status < 300) waiting.resolve(said);
    else waiting.reject(new ResourceError(said.status, said.reason));
  }

  /** @param {any} said */
  _hear(said) {
    if (said.notify === "MISSED") {
      for (const resource of this._subscribed.keys()) {
        this._heard.set(resource, said.seq);
        this._tell({ kind: "MISSED", resource, child: "", entity: null });
      }
      return;
    }
    const word = said.notify === "UPDATE" && ["create", "update", "delete"].find((each) => each in said);
    if (this._subscribed.has(said.resource)) this._heard.set(said.resource, said.seq);
    const entity = said.data ?? said.entity ?? null;
    this._tell({ kind: word || said.notify, resource: said.resource, child: word ? said[word] : "", entity });
  }

  /** @param {Notification} notification */
  _tell(notification) {
    const heard = this._subscribed.get(notification.resource);
    if (notification.kind === "DELETE") {
      this._subscribed.delete(notification.resource);
      this._heard.delete(notification.resource);
    }
    heard?.(notification);
  }
}
