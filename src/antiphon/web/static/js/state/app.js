/**
 * The page as a whole: where it is, the list of sessions, the sessions that are open, and what a person prefers.
 *
 * `app` is the one object that views import. It does nothing before `app.start()`, so that tests can make others.
 */

import { batch, computed, effect, signal, untracked } from "../../vendor/signals.js";
import { Gateway } from "../net/gateway.js";
import { Drafts } from "./drafts.js";
import { SessionState } from "./session.js";

/** @typedef {import("../types.js").Row} Row */
/** @typedef {import("../types.js").Route} Route */
/** @typedef {import("../types.js").Preferences} Preferences */
/** @template T @typedef {import("../types.js").Signal<T>} Signal */

/** Sessions that stay attached though another one is shown: to go back and forth is to see them at once. */
export const SESSIONS_KEPT = 5;
/** Rows of the list that are loaded at once. */
const LIST_PAGE = 100;
const PREFERENCES = "antiphon.preferences";
const RELOADED = "antiphon.reloaded";
/** Set while this browser has a sign-in, so that an address cannot replace it unasked. */
const SIGNED_IN = "antiphon.signed-in";
/** What is stored there for a guest. */
const GUEST = "share";

/** Milliseconds without a connection after which the page says so. */
const LOST_AFTER = 1_000;

/** @type {Preferences} */
const DEFAULTS = { theme: "system", notifications: false, diffStyle: "unified", enterSends: true };

/** @param {string} agent @param {string} id @returns {string} */
export function keyOf(agent, id) {
  return `${agent}/${id}`;
}

/**
 * Read where a fragment leads.
 *
 * @param {string} fragment such as `#/session/claude/1/call/2`
 * @returns {Route}
 */
export function readRoute(fragment) {
  const [screen = "", agent, id, view, call] = fragment.replace(/^#?\/?/, "").split("/").map(decoded);
  if (screen === "session" && agent && id) {
    /** @type {Route} */
    const route = { screen, agent, id };
    if (view === "changes") route.view = view;
    if (view === "call" && call) route.call = call;
    return route;
  }
  return { screen: screen === "new" || screen === "admin" || screen === "settings" || screen === "about" ? screen : "list" };
}

/** @param {Route} route @returns {string} the fragment without `#` */
export function writeRoute({ screen, agent, id, view, call }) {
  if (screen === "list") return "/";
  const rest = screen === "session" ? [agent, id, ...(view ? [view] : []), ...(call ? ["call", call] : [])] : [];
  return `/${[screen, ...rest.map((part) => encodeURIComponent(part ?? ""))].join("/")}`;
}

/**
 * Read a secret from a fragment: `#code=…` of a launch, `#token=…` of a share, both with `&to=/session/…`.
 *
 * @param {string} fragment
 * @returns {{code?: string, token?: string, to: string} | null}
 */
export function readSecret(fragment) {
  if (!/^#(code|token)=/.test(fragment)) return null;
  const given = new URLSearchParams(fragment.slice(1));
  const to = given.get("to") ?? "/";
  const [code, token] = [given.get("code"), given.get("token")];
  return { ...(code ? { code } : {}), ...(token ? { token } : {}), to: to.startsWith("/") ? to : "/" };
}

/** @param {string} part @returns {string} */
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** The page. */
export class App {
  /** @param {{gateway?: Gateway, storage?: Storage, loadedHash?: string | null}} [options] */
  constructor({ gateway = new Gateway(), storage = storageOf(), loadedHash = hashOf(import.meta.url) } = {}) {
    this.gateway = gateway;
    this.info = gateway.info;
    this.who = gateway.who;
    this.connection = gateway.connection;
    this.questions = gateway.requests;
    this._storage = storage;
    this._loadedHash = loadedHash;
    /** @type {Signal<Map<string, Row>>} */
    this._rows = signal(new Map());
    /** Last used first. @type {Signal<Row[]>} */
    this.sessions = computed(() => [...this._rows.value.values()].sort((one, other) => other.updated - one.updated));
    /** Whether the list has more rows than are loaded. @type {Signal<boolean>} */
    this.hasMoreSessions = signal(false);
    /** Whether the list was loaded once. @type {Signal<boolean>} */
    this.listed = signal(false);
    /** Requests that wait for a person, in all sessions. @type {Signal<number>} */
    this.waitingCount = computed(() => {
      const waiting = this.sessions.value.reduce((sum, row) => sum + (row.waiting || 0), 0);
      return waiting + this.questions.value.length;
    });
    /** @type {Signal<Route>} */
    this.route = signal(readRoute(globalThis.location?.hash ?? ""));
    /** @type {Signal<boolean>} */
    this.online = signal(globalThis.navigator?.onLine ?? true);
    /** Whether there has been no connection for a while: what the page shows may be out of date. @type {Signal<boolean>} */
    this.lost = signal(false);
    /** Why signing in failed, to be shown. @type {Signal<string | null>} */
    this.signInProblem = signal(null);
    /**
     * Ask whether an address may replace the sign-in that this browser has; the view sets it. Whoever has a share or a code can send
     * a link with it: the reader would write to sessions of another without a sign of it.
     *
     * @type {(who: {name: string, role: string}) => Promise<boolean>}
     */
    this.mayReplace = async () => true;
    /** @type {Signal<Preferences>} */
    this.preferences = signal(this._readPreferences());
    this.drafts = new Drafts(storage);
    /** The session that the route names. @type {Signal<SessionState | null>} */
    this.current = signal(null);
    /** Open sessions, the last used one last. @type {Map<string, SessionState>} */
    this._open = new Map();
    /** @type {Set<(kind: "waiting" | "ended" | "failed", row: Row) => void>} */
    this._subscribers = new Set();
    /** @type {string | null} */
    this._cursor = null;
    gateway.onSessions = (message) => this._sessionsChanged(message);
    gateway.onOpened = () => this._opened();
  }

  /** Begin: sign in with the secret of the address if it has one, connect, follow the address. @returns {Promise<void>} */
  async start() {
    globalThis.addEventListener?.("hashchange", () => this._moved());
    globalThis.addEventListener?.("online", () => (this.online.value = true));
    globalThis.addEventListener?.("offline", () => (this.online.value = false));
    globalThis.addEventListener?.("pagehide", () => this.drafts.save());
    effect(() => this._noteConnection());
    effect(() => this._showTitle());
    effect(() => this._showCurrent());
    if (await this._useSecret()) return;
    await this.gateway.checkLogin().then(
      (who) => {
        if (who === null) return;
        if (!this.wasGuest) this._noteSignIn();
        this.gateway.first;
      },
      () => void this.gateway.first, // it cannot be reached: the connection tries on
    );
  }

  /** @returns {Promise<boolean>} whether the address had a secret */
  async _useSecret() {
    const secret = readSecret(globalThis.location?.hash ?? "");
    if (secret === null) return false;
    const { to, ...given } = secret;
    // At once: the address must not stay in the history, and a reload must not use the code again.
    globalThis.history.replaceState(null, "", `#${to}`);
    try {
      const before = this._storage?.getItem(SIGNED_IN) ? await this.gateway.checkLogin().catch(() => null) : null;
      if (before === null || (await this.mayReplace(before))) await this.signIn(given);
      else this.gateway.first;
    } catch (error) {
      this.signInProblem.value = error instanceof Error ? error.message : String(error);
      const who = await this.gateway.checkLogin().catch(() => null); // an older cookie may still do
      if (who !== null) this.gateway.first;
    }
    // Only now: a session that is shown is attached, and without a cookie the gateway refuses the connection.
    this.route.value = readRoute(`#${to}`);
    return true;
  }

  /** Sign this browser in, and connect. @param {{code?: string, token?: string}} secret @returns {Promise<void>} */
  async signIn(secret) {
    await this.gateway.signIn(secret);
    this.signInProblem.value = null;
    this._noteSignIn();
    this.gateway.first;
  }

  /** Whether this browser was signed in with a share, and has not signed out since. @returns {boolean} */
  get wasGuest() {
    return this._storage?.getItem(SIGNED_IN) === GUEST;
  }

  /** @param {string} [how] */
  _noteSignIn(how = "1") {
    try {
      this._storage?.setItem(SIGNED_IN, how);
    } catch {
      // the browser has no room: the next address signs in unasked
    }
  }

  /** Sign this browser out, and forget what it has. @returns {Promise<void>} */
  async signOut() {
    for (const key of [...this._open.keys()]) this._close(key);
    batch(() => {
      this._rows.value = new Map();
      this.current.value = null;
    });
    await this.gateway.signOut();
  }

  /** @returns {() => void} ends the wait when the state has changed */
  _noteConnection() {
    if (this.connection.value === "open" || this.who.value === null) {
      this.lost.value = false;
      return () => {};
    }
    const timer = setTimeout(() => (this.lost.value = true), LOST_AFTER);
    return () => clearTimeout(timer);
  }

  /** The time at the gateway in seconds since 1970, to compare with that of events. @returns {number} */
  now() {
    return this.gateway.now();
  }

  // Where the page is.

  /** Go somewhere. @param {string} path such as `/session/claude/1` */
  go(path) {
    if (globalThis.location === undefined) this.route.value = readRoute(path);
    else globalThis.location.hash = path;
  }

  _moved() {
    if (readSecret(globalThis.location.hash) !== null) void this._useSecret();
    else this.route.value = readRoute(globalThis.location.hash);
  }

  _showTitle() {
    const count = this.waitingCount.value;
    const route = this.route.value;
    const title = route.screen === "session" ? this.current.value?.title.value : null;
    const words = `${count > 0 ? `(${count}) ` : ""}${title ? `${title} · ` : ""}Antiphon`;
    if (globalThis.document !== undefined) globalThis.document.title = words;
  }

  _showCurrent() {
    const { screen, agent, id } = this.route.value;
    const session = screen === "session" && agent && id ? untracked(() => this.openSession(agent, id)) : null;
    if (this.current.peek() !== session) this.current.value = session;
  }

  // Sessions.

  /** The row of a session, as a signal. @param {string} agent @param {string} id @returns {Signal<Row | null>} */
  row(agent, id) {
    return computed(() => this._rows.value.get(keyOf(agent, id)) ?? null);
  }

  /** The state of a session; the same one as long as it is open. @param {string} agent @param {string} id @returns {SessionState} */
  openSession(agent, id) {
    const key = keyOf(agent, id);
    let session = this._open.get(key);
    if (session === undefined) {
      session = new SessionState(this.gateway, agent, id, {
        row: this.row(agent, id),
        draft: this.drafts.of(key),
        open: (forkAgent, forkId) => this.openSession(forkAgent, forkId),
      });
    }
    this._open.delete(key);
    this._open.set(key, session); // now the last used one
    this._closeOthers(key);
    return session;
  }

  /** Close sessions that were not used for long. @param {string} shown */
  _closeOthers(shown) {
    for (const [key, session] of [...this._open]) {
      if (this._open.size <= SESSIONS_KEPT) return;
      if (key !== shown && session !== this.current.peek() && !session.isBusy) this._close(key);
    }
  }

  /** @param {string} key */
  _close(key) {
    this._open.get(key)?.close();
    this._open.delete(key);
    this.drafts.release(key);
  }

  /**
   * Open a new session.
   *
   * @param {{agent: string, cwd: string, mode?: string | null, model?: string | null, options?: Record<string, string | boolean>}} choice
   * @returns {Promise<SessionState>} rejects if the agent refuses; a mode or model that it refuses is left as it is
   */
  async newSession({ agent, cwd, mode, model, options = {} }) {
    const connection = await this.gateway.agent(agent);
    const result = await connection.request("session/new", { cwd, mcpServers: [] });
    const session = this.openSession(agent, result.sessionId);
    session.settings.opened(result);
    const { settings } = session;
    // The settings that come with attach are those of now: what is set meanwhile would be shown as it was.
    if (mode || model || Object.keys(options).length) await session.live();
    if (mode && mode !== settings.mode.peek() && settings.modes.peek().some(({ id }) => id === mode)) await settings.setMode(mode).catch(() => {});
    if (model && model !== settings.model.peek() && settings.models.peek().some(({ id }) => id === model)) await settings.setModel(model).catch(() => {});
    for (const [id, value] of Object.entries(options)) await settings.setOption(id, value).catch(() => {});
    return session;
  }

  /** Delete a session for good. @param {Row} row @returns {Promise<void>} */
  async deleteSession(row) {
    const connection = await this.gateway.agent(row.agent);
    await connection.request("session/delete", { sessionId: row.sessionId });
    this._removed(row.agent, row.sessionId);
  }

  /** Search in the messages of all sessions. @param {string} query @param {number} [limit] @returns {Promise<any[]>} */
  async search(query, limit = 50) {
    return (await this.gateway.call("_antiphon/sessions/search", { query, limit })).matches;
  }

  /** Search in titles, directories and agents of all sessions. @param {string} query @returns {Promise<Row[]>} */
  async findSessions(query) {
    return (await this.gateway.call("_antiphon/sessions/list", { query, limit: LIST_PAGE })).sessions;
  }

  /** Load more rows of the list. @returns {Promise<void>} */
  async moreSessions() {
    if (this._cursor === null) return;
    await this._list(this._cursor, new Map(this._rows.peek()));
  }

  /** Get a call for each change of a session that a person may want to be told. @param {(kind: "waiting" | "ended" | "failed", row: Row) => void} callback @returns {() => void} ends it */
  subscribe(callback) {
    this._subscribers.add(callback);
    return () => this._subscribers.delete(callback);
  }

  /** A connection is there again: the list may be out of date, and so may this page. */
  async _opened() {
    this._reloadIfOld();
    this._noteSignIn(this.info.peek()?.share ? GUEST : "1");
    await this.gateway.call("_antiphon/sessions/follow");
    await this._list(null, new Map());
  }

  /** @param {string | null} cursor @param {Map<string, Row>} rows */
  async _list(cursor, rows) {
    const page = await this.gateway.call("_antiphon/sessions/list", { limit: LIST_PAGE, ...(cursor === null ? {} : { cursor }) });
    for (const row of page.sessions) rows.set(keyOf(row.agent, row.sessionId), row);
    batch(() => {
      this._cursor = page.nextCursor ?? null;
      this.hasMoreSessions.value = this._cursor !== null;
      this._rows.value = rows;
      this.listed.value = true;
    });
  }

  /** @param {any} message */
  _sessionsChanged({ method, params }) {
    if (method === "_antiphon/sessions/removed") {
      this._removed(params.agent, params.sessionId);
      return;
    }
    /** @type {Row} */
    const row = params.session;
    const key = keyOf(row.agent, row.sessionId);
    const before = this._rows.peek().get(key);
    const rows = new Map(this._rows.peek());
    rows.set(key, row);
    this._rows.value = rows;
    if (row.waiting > (before?.waiting ?? 0)) this._tell("waiting", row);
    else if (before !== undefined && before.state !== row.state && (before.state === "running" || before.state === "waiting")) {
      if (row.state === "idle") this._tell("ended", row);
      else if (row.state === "failed") this._tell("failed", row);
    }
  }

  /** @param {"waiting" | "ended" | "failed"} kind @param {Row} row */
  _tell(kind, row) {
    for (const callback of this._subscribers) callback(kind, row);
  }

  /** @param {string} agent @param {string} id */
  _removed(agent, id) {
    const key = keyOf(agent, id);
    const session = this._open.get(key);
    batch(() => {
      const rows = new Map(this._rows.peek());
      rows.delete(key);
      this._rows.value = rows;
      if (session !== undefined) session.status.value = "gone";
    });
    if (session !== this.current.peek()) this._close(key);
    this.drafts.remove(key);
  }

  // Preferences, and a new version of the page.

  /** @template {keyof Preferences} K @param {K} name @param {Preferences[K]} value */
  setPreference(name, value) {
    this.preferences.value = { ...this.preferences.peek(), [name]: value };
    try {
      this._storage?.setItem(PREFERENCES, JSON.stringify(this.preferences.peek()));
    } catch {
      // a browser that keeps nothing
    }
  }

  /** @returns {Preferences} */
  _readPreferences() {
    try {
      const stored = JSON.parse(this._storage?.getItem(PREFERENCES) ?? "null");
      return typeof stored === "object" && stored !== null ? { ...DEFAULTS, ...stored } : DEFAULTS;
    } catch {
      return DEFAULTS;
    }
  }

  /** Load the page again if the gateway has another one: once for each version, a proxy may keep serving the old one. */
  _reloadIfOld() {
    const current = this.info.peek()?.page;
    if (!current || !this._loadedHash || current === this._loadedHash || globalThis.location === undefined) return;
    if (this._storage?.getItem(RELOADED) === current) return;
    this.drafts.save();
    this._storage?.setItem(RELOADED, current);
    globalThis.location.reload();
  }
}

/** @param {string} url of a module of the page @returns {string | null} the hash of the files that this page was made of */
export function hashOf(url) {
  return /\/static\/([^/]+)\/js\//.exec(url)?.[1] ?? null;
}

/** @returns {Storage | undefined} */
function storageOf() {
  try {
    return globalThis.localStorage;
  } catch {
    return undefined; // a browser that keeps nothing
  }
}

/** The page that views show. */
export const app = new App();
