/**
 * JSON-RPC over one WebSocket that comes back by itself.
 *
 * A phone that sleeps, a network that changes and a gateway that is started again all look the same from here: the socket ends,
 * or nothing comes any more. Requests that were on their way are then rejected with an error of kind "lost", and their senders know
 * whether they may be sent again. There is never more than one socket: a late event of an earlier one is ignored.
 */

import { signal } from "../../vendor/signals.js";

/** @typedef {import("../types.js").ConnectionState} ConnectionState */
/** @typedef {import("../types.js").Frame} Frame */

/** Milliseconds between tries: doubled each time, with a jitter, so that many pages do not come back at the same moment. */
export const BACKOFF = { first: 500, most: 15_000 };
/** Milliseconds without a message after which a ping is sent. Proxies and mobile networks forget what is silent for 30 s or more. */
export const PING_EVERY = 25_000;
/** Milliseconds that the response to a ping may take. */
export const PING_TIMEOUT = 10_000;
/** The same when the page was just shown again: a person is looking, and a socket of before the sleep is most likely dead. */
export const WAKE_TIMEOUT = 4_000;
/** Milliseconds for a socket to open. */
export const OPEN_TIMEOUT = 20_000;

/** An error response, or a request that got none. */
export class RpcError extends Error {
  /**
   * @param {{code?: number, message: string, data?: any}} error
   * @param {"response" | "lost" | "timeout" | "closed"} [kind] "response": the other side sent it
   */
  constructor(error, kind = "response") {
    super(error.message);
    this.name = "RpcError";
    this.code = error.code ?? 0;
    this.data = error.data;
    this.kind = kind;
  }

  /** What to do about it, if the gateway knows. @returns {string | null} */
  get hint() {
    return typeof this.data?.hint === "string" ? this.data.hint : null;
  }
}

/**
 * @typedef {object} IncomingRequest
 * @property {number | string} id
 * @property {string} method
 * @property {any} params
 * @property {(result: any) => void} respond
 * @property {(error: {code: number, message: string}) => void} fail
 */

/**
 * @typedef {object} ConnectionOptions
 * @property {(message: Frame) => void} [onNotification]
 * @property {(request: IncomingRequest) => void} [onRequest]
 * @property {() => void} [onOpen] called for each new socket, before its state is "open"; it sends what comes first
 * @property {() => void} [onLost] called when a socket was lost
 * @property {() => Promise<boolean>} [isSignedIn] asked when a socket could not be opened: browsers do not tell why
 * @property {{method: string, params: any}} [ping] a cheap request; any response shows that the other side is there
 * @property {string} [token] sent as a subprotocol, for clients that have no cookie
 * @property {new (url: string, protocols?: string[]) => WebSocket} [WebSocket]
 */

/** A request that waits for its response. @typedef {{resolve(result: any): void, reject(error: RpcError): void, received?: (response: any) => void, timer: any}} Waiting */

/** One connection, over one socket at a time. */
export class Connection {
  /** @param {string} url @param {ConnectionOptions} [options] */
  constructor(url, options = {}) {
    this.url = url;
    this.options = options;
    /** @type {import("../types.js").Signal<ConnectionState>} */
    this.state = signal(/** @type {ConnectionState} */ ("connecting"));
    /** How many sockets in a row were not opened. @type {import("../types.js").Signal<number>} */
    this.failures = signal(0);
    /** How many sockets there were: what belongs to an earlier one is out of date. */
    this.epoch = 0;
    /** @type {WebSocket | null} */
    this._socket = null;
    /** @type {Map<number, Waiting>} */
    this._waiting = new Map();
    this._nextId = 1;
    this._delay = BACKOFF.first;
    this._lastReceived = 0;
    this._isPinging = false;
    /** When the socket that is to open was made. */
    this._began = 0;
    /** @type {any} */
    this._retryTimer = null;
    /** @type {any} */
    this._openTimer = null;
    /** @type {any} */
    this._pingTimer = null;
    this._wake = this._wake.bind(this);
    this._listen(true);
    this._connect();
  }

  /**
   * Send a request on the socket that is open now.
   *
   * @param {string} method
   * @param {any} params
   * @param {{timeout?: number, received?: (response: any) => void}} [options] `received` is called with the whole response before
   *   anything that came after it is handled: a promise would be later
   * @returns {Promise<any>} the result
   */
  request(method, params, { timeout, received } = {}) {
    return new Promise((resolve, reject) => {
      if (this._socket === null || this._socket.readyState !== 1) {
        const closed = this.state.peek() === "closed" || this.state.peek() === "signed-out";
        reject(new RpcError({ message: "there is no connection to the gateway" }, closed ? "closed" : "lost"));
        return;
      }
      const id = this._nextId++;
      const timer = timeout === undefined ? null : setTimeout(() => this._settle(id, new RpcError({ message: "no response came in time" }, "timeout")), timeout);
      this._waiting.set(id, { resolve, reject, received, timer });
      this._send({ jsonrpc: "2.0", id, method, params });
    });
  }

  /** Send a notification. @param {string} method @param {any} params @returns {boolean} whether there was a socket to send it on */
  notify(method, params) {
    return this._send({ jsonrpc: "2.0", method, params });
  }

  /** End the connection for good. */
  close() {
    this._end("closed");
  }

  /** Try again after `signed-out` or `closed`, or at once instead of later. */
  reconnect() {
    this._listen(true);
    this._delay = BACKOFF.first;
    this._drop("the connection was opened again");
    this._connect();
  }

  // The socket.

  _connect() {
    clearTimeout(this._retryTimer);
    this._retryTimer = null;
    const { WebSocket: Socket = WebSocket, token } = this.options;
    this.state.value = "connecting";
    const epoch = ++this.epoch;
    /** @type {WebSocket} */
    let socket;
    try {
      socket = token === undefined ? new Socket(this.url) : new Socket(this.url, [`acp.bearer.${token}`]);
    } catch (error) {
      this._retryLater(); // an address that no browser takes, or a browser that refuses for now
      return;
    }
    this._socket = socket;
    this._began = Date.now();
    const isCurrent = () => this._socket === socket && this.epoch === epoch;
    this._openTimer = setTimeout(() => isCurrent() && this._lost(false), OPEN_TIMEOUT);
    socket.onopen = () => isCurrent() && this._opened();
    socket.onmessage = (event) => isCurrent() && this._received(event.data);
    socket.onclose = () => isCurrent() && this._lost(this.state.peek() === "open");
    socket.onerror = () => {}; // a close follows
  }

  _opened() {
    clearTimeout(this._openTimer);
    this._lastReceived = Date.now();
    this._pingLater(PING_EVERY);
    this.options.onOpen?.();
    this.failures.value = 0;
    this.state.value = "open";
  }

  /** The socket is of no use any more. @param {boolean} wasOpen whether the gateway had let it in */
  async _lost(wasOpen) {
    const epoch = this.epoch;
    this._drop("the connection was lost");
    if (!wasOpen) this.failures.value += 1;
    this.state.value = "waiting";
    // Only a socket that was never open may have been refused for its cookie.
    if (!wasOpen && this.options.isSignedIn !== undefined) {
      const isSignedIn = await this.options.isSignedIn().catch(() => true);
      if (this.epoch !== epoch || this.state.peek() !== "waiting") return;
      if (!isSignedIn) {
        this._end("signed-out");
        return;
      }
    }
    this._retryLater();
  }

  _retryLater() {
    this.state.value = "waiting";
    clearTimeout(this._retryTimer);
    const delay = this._delay * (0.75 + Math.random() / 2);
    this._delay = Math.min(this._delay * 2, BACKOFF.most);
    this._retryTimer = setTimeout(() => this._connect(), delay);
  }

  /** Let go of the socket, and of all that waited on it. @param {string} why */
  _drop(why) {
    clearTimeout(this._openTimer);
    clearTimeout(this._pingTimer);
    const socket = this._socket;
    this._socket = null;
    if (socket !== null) {
      socket.onopen = socket.onmessage = socket.onclose = null;
      try {
        socket.close();
      } catch {
        // one that was never open may refuse
      }
    }
    for (const id of [...this._waiting.keys()]) this._settle(id, new RpcError({ message: why }, "lost"));
    if (socket !== null) this.options.onLost?.();
  }

  /** @param {"closed" | "signed-out"} state */
  _end(state) {
    this.epoch++;
    clearTimeout(this._retryTimer);
    this._listen(false);
    this._drop("the connection was closed");
    this.state.value = state;
  }

  // Messages.

  /** @param {any} message @returns {boolean} */
  _send(message) {
    if (this._socket === null || this._socket.readyState !== 1) return false;
    this._socket.send(JSON.stringify(message));
    return true;
  }

  /** @param {any} data */
  _received(data) {
    this._lastReceived = Date.now();
    this._delay = BACKOFF.first;
    let message;
    try {
      message = JSON.parse(data);
    } catch {
      return; // not ours to repair: the next event shows a gap, and the session attaches again
    }
    if (typeof message !== "object" || message === null) return;
    if (typeof message.method !== "string") {
      this._response(message);
    } else if (message.id === undefined || message.id === null) {
      this.options.onNotification?.(message);
    } else {
      this._request(message);
    }
  }

  /** @param {any} message */
  _response(message) {
    const waiting = this._waiting.get(message.id);
    if (waiting === undefined) return; // of a request that has timed out, or of another client's imagination
    waiting.received?.(message);
    if (message.error) this._settle(message.id, new RpcError(message.error));
    else this._settle(message.id, null, message.result);
  }

  /** @param {any} message */
  _request(message) {
    const epoch = this.epoch;
    const { id, method, params } = message;
    const send = (/** @type {any} */ answer) => this.epoch === epoch && this._send({ jsonrpc: "2.0", id, ...answer });
    const request = {
      id,
      method,
      params,
      respond: (/** @type {any} */ result) => void send({ result }),
      fail: (/** @type {any} */ error) => void send({ error }),
    };
    if (this.options.onRequest === undefined) request.fail({ code: -32601, message: "Method not found" });
    else this.options.onRequest(request);
  }

  /** @param {number} id @param {RpcError | null} error @param {any} [result] */
  _settle(id, error, result) {
    const waiting = this._waiting.get(id);
    if (waiting === undefined) return;
    this._waiting.delete(id);
    clearTimeout(waiting.timer);
    if (error === null) waiting.resolve(result);
    else waiting.reject(error);
  }

  // Signs of life.

  /** @param {number} delay */
  _pingLater(delay) {
    clearTimeout(this._pingTimer);
    this._pingTimer = setTimeout(() => this._ping(PING_TIMEOUT), delay);
  }

  /** @param {number} timeout */
  async _ping(timeout) {
    const epoch = this.epoch;
    const silent = Date.now() - this._lastReceived;
    if (this._socket === null || this._isPinging) return;
    if (timeout === PING_TIMEOUT && silent < PING_EVERY) {
      this._pingLater(PING_EVERY - silent);
      return;
    }
    this._isPinging = true;
    const { method, params } = this.options.ping ?? { method: "_antiphon/session/detach", params: { sessionId: "" } };
    const before = this._lastReceived;
    try {
      await this.request(method, params, { timeout }).finally(() => (this._isPinging = false));
    } catch (error) {
      if (this.epoch !== epoch || this._socket === null) return;
      const isSilent = this._lastReceived === before; // any message will do: a large one may be on its way before the response
      if (error instanceof RpcError && error.kind === "timeout" && isSilent) {
        this._lost(true);
        if (this.state.peek() === "waiting") this._connect();
        return;
      }
    }
    if (this.epoch === epoch) this._pingLater(PING_EVERY);
  }

  /** @param {boolean} on */
  _listen(on) {
    const page = /** @type {any} */ (globalThis);
    if (typeof page.addEventListener !== "function" || page.document === undefined) return; // no browser
    const change = on ? "addEventListener" : "removeEventListener";
    page[change]("online", this._wake);
    page[change]("pageshow", this._wake);
    page.document[change]("visibilitychange", this._wake);
    page.document[change]("resume", this._wake); // of a page that was frozen
  }

  /** Look at once whether the connection is there: the page is shown again, or the network is back. */
  _wake() {
    if (globalThis.document?.visibilityState === "hidden") return;
    const state = this.state.peek();
    if (state === "waiting" && this._retryTimer !== null) {
      this._delay = BACKOFF.first;
      this._connect();
    } else if (state === "open") {
      this._ping(WAKE_TIMEOUT);
    } else if (state === "connecting" && Date.now() - this._began > WAKE_TIMEOUT) {
      this.reconnect(); // begun in a network that is gone
    }
  }
}
