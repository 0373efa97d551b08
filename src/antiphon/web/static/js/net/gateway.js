/**
 * The gateway as the page sees it: who is signed in, what it offers, and a connection for each agent that is in use.
 *
 * Methods about the whole gateway go over the connection to its default agent. Messages about a session go to the handler that the
 * session has registered; the extension is described in `docs/remote-sessions.md`.
 */

import { computed, signal } from "../../vendor/signals.js";
import { Connection, RpcError } from "./connection.js";

/** @typedef {import("../types.js").GatewayInfo} GatewayInfo */
/** @typedef {import("../types.js").Role} Role */
/** @typedef {import("./connection.js").IncomingRequest} IncomingRequest */

/** Milliseconds that a call waits for a connection before it fails. */
const PATIENCE = 30_000;

/** Milliseconds for `initialize`: an agent may have to be installed first. */
const INITIALIZE_TIMEOUT = 120_000;

/** Milliseconds in which a service worker has to remove what it keeps. */
const FORGET_LIMIT = 5000;

/** Milliseconds after which a gateway is asked again that answered with an error. */
const AGAIN = 4000;

/** Methods that only read: sent again when their connection was lost. */
const READS = new Set([
  "_antiphon/gateway/info",
  "_antiphon/gateway/directories",
  "_antiphon/sessions/list",
  "_antiphon/sessions/search",
  "_antiphon/sessions/follow",
  "_antiphon/session/read",
  "_antiphon/session/changes",
  "_antiphon/session/export",
  "_antiphon/session/files",
]);

/** From the worst to the best. */
const STATES = /** @type {const} */ (["signed-out", "closed", "waiting", "connecting", "open"]);

/**
 * What a session does with the messages about it.
 *
 * @typedef {object} SessionHandler
 * @property {(message: import("../types.js").Frame) => void} notification
 * @property {(request: IncomingRequest) => void} request
 * @property {(id: number | string) => void} requestCancelled
 * @property {() => void} opened a connection is there (again)
 * @property {() => void} lost
 */

/** The connection to one agent: initialized, and with the sessions that follow it. */
export class AgentConnection {
  /** @param {Gateway} gateway @param {string} path */
  constructor(gateway, path) {
    this.gateway = gateway;
    this.path = path;
    /** The result of `initialize`, null before it came or if it failed. @type {import("../types.js").Signal<any>} */
    this.initialized = signal(null);
    /** Why the agent did not start: its sessions can be read all the same. @type {import("../types.js").Signal<RpcError | null>} */
    this.problem = signal(null);
    /** @type {Map<string, SessionHandler>} */
    this._sessions = new Map();
    /** @type {Promise<void>} */
    this._introduction = Promise.resolve();
    /** @type {Map<number | string, string>} */
    this._asked = new Map();
    this.connection = new Connection(gateway.socketUrl(path), {
      token: gateway.token,
      WebSocket: gateway.WebSocket,
      isSignedIn: async () => (await gateway.checkLogin()) !== null,
      onOpen: () => this._initialize(),
      onLost: () => this._lost(),
      onNotification: (message) => this._notified(message),
      onRequest: (request) => this._requested(request),
    });
    this.state = this.connection.state;
    this.state.subscribe((state) => {
      if (state === "open") for (const handler of [...this._sessions.values()]) handler.opened();
    });
  }

  /** What the agent can do. @returns {any} */
  get capabilities() {
    return this.initialized.value?.agentCapabilities ?? {};
  }

  /**
   * Wait until the connection is open.
   *
   * @param {number} [patience] milliseconds
   * @returns {Promise<void>} rejects with a RpcError
   */
  ready(patience = PATIENCE) {
    return new Promise((resolve, reject) => {
      /** @type {() => void} */
      let stop = () => {};
      const fail = (/** @type {string} */ why, /** @type {"closed" | "timeout"} */ kind) => {
        settle();
        reject(new RpcError({ message: why }, kind));
      };
      const timer = setTimeout(() => fail("there is no connection to the gateway", "timeout"), patience);
      const settle = () => {
        clearTimeout(timer);
        queueMicrotask(() => stop());
      };
      stop = this.state.subscribe((state) => {
        if (state === "open") {
          settle();
          resolve();
        } else if (state === "closed" || state === "signed-out") {
          fail(state === "closed" ? "the connection is closed" : "this browser is signed out", "closed");
        }
      });
    });
  }

  /**
   * Send a request when the connection is open. One that only reads is sent again if its connection was lost.
   *
   * @param {string} method
   * @param {any} params
   * @param {{timeout?: number, patience?: number, received?: (response: any) => void}} [options]
   * @returns {Promise<any>}
   */
  async request(method, params, { timeout, patience, received } = {}) {
    for (let tries = 1; ; tries++) {
      await this.ready(patience);
      if (!method.startsWith("_antiphon/")) await this.introduced();
      try {
        return await this.connection.request(method, params, { timeout, received });
      } catch (error) {
        const again = error instanceof RpcError && error.kind === "lost" && READS.has(method) && tries < 5;
        if (!again) throw error;
      }
    }
  }

  /** Send a notification when the connection is open. @param {string} method @param {any} params @returns {Promise<void>} */
  async notify(method, params) {
    await this.ready();
    this.connection.notify(method, params);
  }

  /** Take the messages of a session from now on. @param {string} sessionId @param {SessionHandler} handler */
  follow(sessionId, handler) {
    this._sessions.set(sessionId, handler);
    if (this.state.peek() === "open") handler.opened();
  }

  /** Take them no more. @param {string} sessionId @param {SessionHandler} handler */
  unfollow(sessionId, handler) {
    if (this._sessions.get(sessionId) === handler) this._sessions.delete(sessionId);
  }

  close() {
    this.connection.close();
  }

  /** Wait for the agent's answer to `initialize`. One that did not start is asked again: what it lacked may be there now. */
  async introduced() {
    await this._introduction;
    if (this.problem.peek() === null) return;
    this._initialize();
    await this._introduction;
    const problem = this.problem.peek();
    if (problem !== null) throw problem;
  }

  /** Send `initialize`. Nothing of the gateway's own waits for the answer, since an agent may have to be started first. */
  _initialize() {
    this._introduction = this._introduce();
  }

  async _introduce() {
    const params = {
      protocolVersion: 1,
      clientInfo: { name: "antiphon-page", title: "Antiphon", version: "1" },
      clientCapabilities: {
        fs: { readTextFile: false, writeTextFile: false },
        terminal: false,
        elicitation: { form: {}, url: {} },
        session: { configOptions: { boolean: {} } },
      },
      _meta: { antiphon: { numbers: true, merged: true } },
    };
    try {
      this.initialized.value = await this.connection.request("initialize", params, { timeout: INITIALIZE_TIMEOUT });
      this.problem.value = null;
    } catch (error) {
      if (!(error instanceof RpcError)) throw error;
      if (error.kind === "response" || error.kind === "timeout") this.problem.value = error; // lost: the next socket begins again
    }
  }

  _lost() {
    this._asked.clear();
    for (const handler of [...this._sessions.values()]) handler.lost();
    this.gateway.connectionLost(this);
  }

  /** @param {any} message */
  _notified(message) {
    const { method, params } = message;
    if (method === "$/cancel_request") {
      this._requestCancelled(params?.requestId);
      return;
    }
    const handler = this._sessions.get(params?.sessionId);
    if (method.startsWith("_antiphon/sessions/")) this.gateway.notified(message);
    else if (handler !== undefined) handler.notification(message);
  }

  /** @param {IncomingRequest} request */
  _requested(request) {
    const handler = this._sessions.get(request.params?.sessionId);
    if (request.method !== "session/request_permission" && request.method !== "elicitation/create") {
      request.fail({ code: -32601, message: "Method not found" });
    } else if (handler !== undefined) {
      this._asked.set(request.id, request.params.sessionId);
      handler.request(request);
    } else if (request.params?.sessionId === undefined || request.params.sessionId === null) {
      this.gateway.asked(this, request);
    }
    // A session that was just left: no answer, the request waits for others or until it is opened again.
  }

  /** @param {number | string} id */
  _requestCancelled(id) {
    const sessionId = this._asked.get(id);
    this._asked.delete(id);
    if (sessionId !== undefined) this._sessions.get(sessionId)?.requestCancelled(id);
    else this.gateway.requestCancelled(this, id);
  }
}

/**
 * @typedef {object} GatewayOptions
 * @property {string} [origin] such as `http://127.0.0.1:8080`; the page's own if it is not given
 * @property {string} [token] for clients that have no cookie
 * @property {typeof fetch} [fetch]
 * @property {any} [WebSocket]
 */

/** The gateway. */
export class Gateway {
  /** @param {GatewayOptions} [options] */
  constructor({ origin = globalThis.location?.origin, token, fetch = globalThis.fetch?.bind(globalThis), WebSocket } = {}) {
    this.origin = origin;
    this.token = token;
    this.fetch = fetch;
    this.WebSocket = WebSocket;
    /** @type {import("../types.js").Signal<GatewayInfo | null>} */
    this.info = signal(null);
    /** Who is signed in; undefined before that is known. @type {import("../types.js").Signal<{name: string, role: Role} | null | undefined>} */
    this.who = signal(undefined);
    /** @type {import("../types.js").Signal<AgentConnection[]>} */
    this._connections = signal(/** @type {AgentConnection[]} */ ([]));
    /** The worst state of the connections that are in use. @type {import("../types.js").Signal<import("../types.js").ConnectionState>} */
    this.connection = computed(() => this._worst());
    /** Whether the gateway did not answer the last try to connect. @type {import("../types.js").Signal<boolean>} */
    this.isSilent = computed(() => this._connections.value.some(({ connection }) => connection.failures.value > 0));
    /** The error that the gateway answered with in place of what the page begins with; empty if there is none. @type {import("../types.js").Signal<string>} */
    this.trouble = signal("");
    /** Questions that are about no session, such as a sign-in. @type {import("../types.js").Signal<import("../types.js").PendingRequest[]>} */
    this.requests = signal(/** @type {import("../types.js").PendingRequest[]} */ ([]));
    /** Called for `_antiphon/sessions/changed` and `removed`. @type {(message: import("../types.js").Frame) => void} */
    this.onSessions = () => {};
    /** Called when the default connection was opened again. @type {() => Promise<void> | void} */
    this.onOpened = () => {};
    /** @type {AgentConnection | null} */
    this._first = null;
    /** @type {Map<string, AgentConnection>} */
    this._agents = new Map();
    /** @type {Promise<GatewayInfo> | null} */
    this._informed = null;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this._asksAgain = undefined;
    /** Seconds by which the clock here is ahead, as far as that is known. @type {number | null} */
    this._skew = null;
  }

  /** @param {string} path @returns {string} */
  socketUrl(path) {
    return this.origin.replace(/^http/, "ws") + path;
  }

  // Signing in and out.

  /**
   * Ask who is signed in.
   *
   * @returns {Promise<{name: string, role: Role} | null>} null if nobody is; rejects if the gateway cannot be reached
   */
  async checkLogin() {
    const response = await this.fetch(`${this.origin}/api/login`, { headers: this._headers(), cache: "no-store" });
    if (response.status === 401) {
      this.who.value = null;
      return null;
    }
    if (!response.ok) throw new Error(`the gateway answered with status ${response.status}`);
    const who = await response.json();
    this.who.value = who;
    return who;
  }

  /**
   * Sign this browser in.
   *
   * @param {{code?: string, token?: string}} secret
   * @returns {Promise<{name: string, role: Role}>} rejects with the gateway's sentence
   */
  async signIn(secret) {
    const response = await this.fetch(`${this.origin}/api/login`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ ...secret, device: deviceName(globalThis.navigator?.userAgent ?? "") }),
    });
    if (!response.ok) throw new Error((await response.text()) || `the gateway answered with status ${response.status}`);
    const who = await response.json();
    this.who.value = who;
    for (const connection of this._all()) connection.connection.reconnect();
    return who;
  }

  /** Sign this browser out, and remove what it keeps of the gateway: drafts, preferences, caches, the service worker. */
  async signOut() {
    for (const connection of this._all()) connection.close();
    try {
      await this.fetch(`${this.origin}/api/login`, { method: "DELETE", headers: this._headers() });
    } finally {
      const page = /** @type {any} */ (globalThis);
      page.localStorage?.clear();
      page.sessionStorage?.clear();
      for (const registration of (await page.navigator?.serviceWorker?.getRegistrations?.()) ?? []) {
        await Promise.all([registration.installing, registration.waiting, registration.active].map(forget));
        await registration.unregister();
      }
      for (const name of (await page.caches?.keys()) ?? []) await page.caches.delete(name);
      this.who.value = null;
      this.info.value = null;
    }
  }

  // Time.

  /** Take the time of an event that has just happened. @param {number} time */
  happened(time) {
    // What it took to get here is never less than nothing, so the smallest difference is the best guess.
    this._skew = Math.min(Date.now() / 1000 - time, this._skew ?? Infinity);
  }

  /** The time at the gateway in seconds since 1970: the clock of a phone may be minutes away. @returns {number} */
  now() {
    return Date.now() / 1000 - (this._skew ?? 0);
  }

  /** @returns {Record<string, string>} */
  _headers() {
    return this.token === undefined ? {} : { authorization: `Bearer ${this.token}` };
  }

  // Connections.

  /** The connection for methods about the whole gateway. @returns {AgentConnection} */
  get first() {
    if (this._first === null) {
      const first = new AgentConnection(this, "/acp");
      this._first = first;
      this._connections.value = [first];
      first.state.subscribe((state) => {
        if (state === "open") this._opened();
      });
    }
    return this._first;
  }

  /**
   * Call a method of the gateway.
   *
   * @param {string} method
   * @param {any} [params]
   * @param {{timeout?: number, patience?: number}} [options]
   * @returns {Promise<any>} rejects with a RpcError
   */
  call(method, params = {}, options) {
    return this.first.request(method, params, options);
  }

  /** Ask again what the gateway offers; one request serves all who ask meanwhile. @returns {Promise<GatewayInfo>} */
  refresh() {
    this._informed ??= this.call("_antiphon/gateway/info")
      .then((info) => (this.info.value = info))
      .finally(() => (this._informed = null));
    return this._informed;
  }

  /**
   * The connection to an agent. The default agent has that of the gateway's own methods, so the info comes first.
   *
   * @param {string} name
   * @returns {Promise<AgentConnection>} rejects if the gateway has no such agent
   */
  async agent(name) {
    const isKnown = (/** @type {GatewayInfo | null} */ given) => given?.agents.some((agent) => agent.name === name) === true;
    const info = isKnown(this.info.peek()) ? this.info.peek() : await this.refresh();
    const known = this._agents.get(name);
    if (known !== undefined) return known;
    if (!isKnown(info)) throw new RpcError({ code: -32002, message: `there is no agent \`${name}\` here` });
    const isDefault = info?.agents.some((agent) => agent.name === name && agent.default);
    const connection = isDefault ? this.first : new AgentConnection(this, `/agents/${encodeURIComponent(name)}/acp`);
    this._agents.set(name, connection);
    if (!isDefault) this._connections.value = [...this._connections.peek(), connection];
    return connection;
  }

  /** Close the connection to an agent that no session uses any more; that of the gateway stays. @param {AgentConnection} connection */
  release(connection) {
    if (connection === this._first || connection._sessions.size > 0) return;
    for (const [name, known] of this._agents) if (known === connection) this._agents.delete(name);
    this._connections.value = this._connections.peek().filter((each) => each !== connection);
    connection.close();
  }

  /** Try all connections again now, and ask a gateway again that answered with an error. */
  reconnect() {
    if (this.trouble.peek()) this._opened();
    for (const connection of this._all()) if (connection.state.peek() !== "open") connection.connection.reconnect();
  }

  /** @returns {AgentConnection[]} */
  _all() {
    return this._connections.peek();
  }

  /** @returns {import("../types.js").ConnectionState} */
  _worst() {
    const states = this._connections.value.map((connection) => connection.state.value);
    if (states.length === 0) return "connecting";
    return STATES.find((state) => states.includes(state)) ?? "open";
  }

  async _opened() {
    clearTimeout(this._asksAgain);
    try {
      await this.refresh();
      await this.onOpened();
      this.trouble.value = "";
    } catch (error) {
      if (!(error instanceof RpcError)) throw error;
      if (error.kind !== "response" && error.kind !== "timeout") return; // lost again: the next socket asks again
      this.trouble.value = error.message;
      this._asksAgain = setTimeout(() => {
        if (this.first.state.peek() === "open") this._opened();
      }, AGAIN);
    }
  }

  // What the connections hand over.

  /** @param {import("../types.js").Frame} message */
  notified(message) {
    this.onSessions(message);
  }

  /** @param {AgentConnection} connection @param {IncomingRequest} request */
  asked(connection, request) {
    const pending = {
      id: `${connection.path} ${request.id}`,
      method: request.method,
      params: request.params,
      stale: false,
      time: null,
      respond: (/** @type {any} */ result) => {
        request.respond(result);
        this.requestCancelled(connection, request.id);
      },
    };
    this.requests.value = [...this.requests.peek(), pending];
  }

  /** @param {AgentConnection} connection @param {number | string} id */
  requestCancelled(connection, id) {
    this.requests.value = this.requests.peek().filter((pending) => pending.id !== `${connection.path} ${id}`);
  }

  /** @param {AgentConnection} connection */
  connectionLost(connection) {
    this.requests.value = this.requests.peek().filter((pending) => !pending.id.startsWith(`${connection.path} `));
  }
}

const BROWSERS = [["Firefox", /Firefox\//], ["Edge", /Edg/], ["Opera", /OPR\//], ["Chrome", /Chrom(e|ium)\//], ["Safari", /Safari\//]];
const SYSTEMS = [["Android", /Android/], ["iPhone", /iPhone/], ["iPad", /iPad/], ["Mac", /Mac OS/], ["Windows", /Windows/], ["Linux", /Linux/]];

/**
 * What this browser is called where others see who sent a message: `Chrome on Android`. Empty if it cannot be known.
 *
 * @param {string} agent the browser's `navigator.userAgent`
 * @returns {string}
 */
export function deviceName(agent) {
  const name = (/** @type {any[][]} */ table) => table.find(([, pattern]) => pattern.test(agent))?.[0] ?? "";
  const [browser, system] = [name(BROWSERS), name(SYSTEMS)];
  return browser && system ? `${browser} on ${system}` : browser || system;
}

/** Have a service worker keep nothing any more, and wait until it has removed what it kept. @param {any} worker @returns {Promise<void>} */
function forget(worker) {
  if (!worker) return Promise.resolve();
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => resolve();
    setTimeout(resolve, FORGET_LIMIT);
    worker.postMessage("forget", [port2]);
  });
}
