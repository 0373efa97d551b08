/**
 * One session as the page follows it: its transcript, its settings, what waits for a person, and what can be done with it.
 *
 * Events have numbers. Each is applied once and in order: one that was seen is dropped, a gap makes the session attach again after the last
 * one. Messages are collected and applied once per frame, so that a thousand updates a second cost one drawing each frame.
 */

import { batch, computed, effect, signal } from "../../vendor/signals.js";
import { RpcError } from "../net/connection.js";
import { withMessages } from "./drafts.js";
import { OutgoingPrompts } from "./prompts.js";
import { PendingRequests } from "./requests.js";
import { SessionSettings } from "./settings.js";
import { Transcript, antiphonMeta, placeOf } from "./transcript.js";

/** @typedef {import("../types.js").Block} Block */
/** @typedef {import("../types.js").Row} Row */
/** @typedef {import("../net/connection.js").IncomingRequest} IncomingRequest */
/** @template T @typedef {import("../types.js").Signal<T>} Signal */

/** Events that are loaded when a session is opened, and with each older page. */
export const PAGE = 400;
/** Entries and characters that are kept while the reader is at the end; older ones come back through `loadOlder`. */
export const ENTRIES_KEPT = 2000;
export const TEXT_KEPT = 4_000_000;
/** Milliseconds of one frame that may be spent on events: the rest is for drawing. */
const FRAME_BUDGET = 8;
/** Milliseconds between two batches while the page is hidden: no frames come then. */
const HIDDEN_INTERVAL = 100;
/** Milliseconds until the gateway is asked for the agent again. */
const RETRY = 2000;
/** Code of the error for what is not there. */
const NOT_FOUND = -32002;
const INVALID_PARAMS = -32602;

/**
 * What arrived, in its order: a notification, a request, the end of a request, or a response that belongs between the events.
 *
 * @typedef {{message?: any, request?: IncomingRequest, cancelled?: number | string, attached?: any, ended?: {response: any, sent: import("./prompts.js").Sent}}} Arrival
 */

/** One session. */
export class SessionState {
  /**
   * @param {import("../net/gateway.js").Gateway} gateway
   * @param {string} agent
   * @param {string} id
   * @param {{row?: Signal<Row | null>, draft?: Signal<import("../types.js").Draft>, open?: (agent: string, id: string) => SessionState}} [options]
   */
  constructor(gateway, agent, id, { row, draft, open } = {}) {
    this.gateway = gateway;
    this.agent = agent;
    this.id = id;
    /** @type {Signal<Row | null>} */
    this.row = row ?? signal(null);
    /** @type {Signal<import("../types.js").Draft>} */
    this.draft = draft ?? signal({ text: "", attachments: [], kept: true });
    this._open = open;
    /** @type {Signal<"attaching" | "live" | "reconnecting" | "gone">} */
    this.status = signal(/** @type {any} */ ("attaching"));
    /** Why it could not be attached. @type {Signal<RpcError | null>} */
    this.problem = signal(null);
    this.transcript = new Transcript();
    /** Bumped when all that was shown is out of date and `transcript` is another one. @type {Signal<number>} */
    this.renewed = signal(0);
    /** @type {Signal<import("../types.js").PlanStep[]>} */
    this.plan = signal(this.transcript.plan);
    /** @type {Signal<any>} */
    this.usage = signal(null);
    /** Tokens of the last turn, if the agent reports them. @type {Signal<any>} */
    this.tokens = signal(null);
    /** @type {Signal<import("../types.js").Command[]>} */
    this.commands = signal(this.transcript.commands);
    /** @type {Signal<string | null>} */
    this._title = signal(null);
    /** @type {Signal<string | null>} */
    this.title = computed(() => this.row.value?.title || this._title.value || null);
    /** @type {Signal<import("../types.js").Turn | null>} */
    this.turn = signal(null);
    /** @type {Signal<import("../types.js").QueuedPrompt[]>} */
    this.queue = signal(/** @type {any[]} */ ([]));
    this._requests = new PendingRequests();
    /** Requests that wait for this person. @type {Signal<import("../types.js").PendingRequest[]>} */
    this.requests = this._requests.shown;
    /** Requests that wait for others: this person may only watch. @type {Signal<Array<{id: string, method: string, params: any}>>} */
    this.waiting = this._requests.watched;
    /** @type {Signal<boolean>} */
    this.hasOlder = signal(false);
    /** @type {Signal<boolean>} */
    this.loadingOlder = signal(false);
    /** Whether the reader is at the end; the view sets it. While not, nothing is dropped. @type {Signal<boolean>} */
    this.following = signal(true);
    /** What the agent can do. @type {Signal<any>} */
    this.capabilities = signal({});
    this.settings = new SessionSettings((method, params) => this._request(method, params));
    this.mode = this.settings.mode;
    this.modes = this.settings.modes;
    this.model = this.settings.model;
    this.models = this.settings.models;
    this.options = this.settings.options;
    this._outgoing = new OutgoingPrompts((sent) => this._sendPrompt(sent));
    /** Prompts that were sent and are no events yet. @type {Signal<import("../types.js").OutgoingPrompt[]>} */
    this.outgoing = this._outgoing.shown;
    /** How many messages were put back into the field because the turn was stopped; the view tells it and sets 0. @type {Signal<number>} */
    this.returned = signal(0);
    /** Prompts that may be cancelled by the cancellation that was sent last, though an earlier page has sent them. @type {import("../types.js").QueuedPrompt[]} */
    this._cancelling = [];
    /** @type {Signal<boolean>} */
    this.canPrompt = computed(() => (gateway.info.value?.role ?? "drive") !== "watch" && this.status.value !== "gone");
    /** Number of the last event that was applied, and of the last one before those that are here. */
    this.last = -1;
    this._oldest = 0;
    /** Up to this number, settings of events are older than those that came with attach. */
    this._settled = 0;
    /** The number that a session which attaches is to reach, and the names that came with it. @type {{number: number, prompts: string[], turn: string | null} | null} */
    this._target = null;
    /** @type {Arrival[]} */
    this._arrivals = [];
    this._scheduled = false;
    this._attaching = 0;
    this._gap = -1;
    /** @type {import("../net/gateway.js").AgentConnection | null} */
    this._connection = null;
    this._isClosed = false;
    this._handler = {
      notification: (/** @type {any} */ message) => this._arrive({ message }),
      request: (/** @type {IncomingRequest} */ request) => this._arrive({ request }),
      requestCancelled: (/** @type {number | string} */ cancelled) => this._arrive({ cancelled }),
      opened: () => this._attach(),
      lost: () => this._lost(),
    };
    this._stopHidden = onShown(() => this.flush());
    this._start();
  }

  async _start() {
    try {
      const connection = await this.gateway.agent(this.agent);
      if (this._isClosed) return;
      this._connection = connection;
      this._stopCapabilities = effect(() => {
        this.capabilities.value = connection.initialized.value?.agentCapabilities ?? {};
      });
      connection.follow(this.id, this._handler);
    } catch (error) {
      this.problem.value = error instanceof RpcError ? error : new RpcError({ message: String(error) });
      if (error instanceof RpcError && error.code === NOT_FOUND) this.status.value = "gone";
      else if (!this._isClosed) setTimeout(() => this._start(), RETRY);
    }
  }

  /** Follow the session no more. */
  close() {
    if (this._isClosed) return;
    this._isClosed = true;
    this._stopHidden();
    this._stopCapabilities?.();
    const connection = this._connection;
    if (connection === null) return;
    connection.unfollow(this.id, this._handler);
    if (connection.state.peek() === "open") connection.connection.request("_antiphon/session/detach", { sessionId: this.id }).catch(() => {});
    this.gateway.release(connection);
  }

  /** Whether something would be lost if it were closed now. @returns {boolean} */
  get isBusy() {
    return this._outgoing.isBusy || this.requests.peek().length > 0;
  }

  // Attaching.

  _attach() {
    const connection = this._connection;
    if (connection === null || this._isClosed) return;
    this.flush(true); // what has arrived counts as seen
    const attempt = ++this._attaching;
    const merged = { _meta: { antiphon: { merged: true } } };
    const place = this.last >= 0 ? { after: this.last } : { last: PAGE };
    const received = (/** @type {any} */ response) => {
      if (attempt === this._attaching && response.result) this._arrive({ attached: response.result });
    };
    connection.connection.request("_antiphon/session/attach", { sessionId: this.id, ...place, ...merged }, { received }).catch((error) => {
      if (attempt === this._attaching) this._notAttached(error);
    });
  }

  /** @param {RpcError} error */
  _notAttached(error) {
    if (error.kind === "lost" || error.kind === "closed") return; // the next connection attaches
    if (error.code === INVALID_PARAMS && this.last >= 0) {
      this._renew(); // the gateway has fewer events than were seen here: its data are others
      this._attach();
      return;
    }
    batch(() => {
      this.problem.value = error;
      if (error.code === NOT_FOUND) this.status.value = "gone";
    });
    if (error.code !== NOT_FOUND) {
      setTimeout(() => {
        if (this._connection?.state.peek() === "open" && this.status.peek() !== "live") this._attach();
      }, RETRY);
    }
  }

  /** @param {any} result */
  _attached(result) {
    this._attaching = 0;
    if (this.last < 0) {
      const after = Number.isInteger(result.after) ? result.after : result.number;
      this.last = after;
      this._oldest = after;
      this.hasOlder.value = after > 0;
      this.transcript._last = after;
      this.transcript.takeState(result);
    }
    this.problem.value = null;
    this._settled = result.number;
    this.settings.opened(result.settings);
    this._setQueue(result.queue ?? []);
    this._requests.attached(result.requests ?? []);
    this._target = { number: result.number, prompts: result.prompts ?? [], turn: result.turn ?? null };
    this._checkTarget();
  }

  /** Go on when all events are there that the gateway had when the session was attached. */
  _checkTarget() {
    if (this._target === null || this.last < this._target.number) return;
    const { prompts, turn } = this._target;
    this._target = null;
    if (turn === null) this.transcript.turn = null;
    else if (this.transcript.turn?.id !== turn) this.transcript.turn = { id: turn, from: "", started: null, prompt: null };
    this.status.value = "live";
    this._outgoing.caughtUp(prompts);
  }

  _lost() {
    this._attaching++;
    this._target = null;
    batch(() => {
      if (this.status.peek() !== "gone") this.status.value = this.last < 0 ? "attaching" : "reconnecting";
      this._outgoing.lost();
      this._requests.lost();
    });
  }

  /** Forget everything, to attach as if the session was never seen. */
  _renew() {
    this.transcript = new Transcript();
    this.last = -1;
    this._arrivals = [];
    this.renewed.value = this.renewed.peek() + 1;
  }

  // What arrives.

  /** @param {Arrival} arrival */
  _arrive(arrival) {
    this._arrivals.push(arrival);
    if (this._scheduled) return;
    this._scheduled = true;
    nextFrame(() => {
      this._scheduled = false;
      this.flush();
    });
  }

  /** Apply what has arrived, as much as fits into a frame. @param {boolean} [all] */
  flush(all = isHidden()) {
    if (this._arrivals.length === 0) return;
    const arrivals = this._arrivals;
    this._arrivals = [];
    const end = performance.now() + FRAME_BUDGET;
    let done = 0;
    batch(() => {
      while (done < arrivals.length) {
        this._applySafely(arrivals[done++]);
        if (!all && done % 32 === 0 && performance.now() > end) break;
      }
      this._show();
    });
    if (done < arrivals.length) {
      this._arrivals = arrivals.slice(done).concat(this._arrivals);
      if (!this._scheduled) {
        this._scheduled = true;
        nextFrame(() => {
          this._scheduled = false;
          this.flush();
        });
      }
    }
  }

  /** @param {boolean} [mayTrim] */
  _show(mayTrim = this.following.peek()) {
    const { transcript } = this;
    if (mayTrim) {
      const first = transcript.trim(ENTRIES_KEPT, TEXT_KEPT);
      if (first > 0) {
        this._oldest = first - 1;
        this.hasOlder.value = true;
      }
    }
    transcript.publish();
    this.plan.value = transcript.plan;
    this.usage.value = transcript.usage;
    this.tokens.value = transcript.tokens;
    this.commands.value = transcript.commands;
    this._title.value = transcript.title;
    if (this._target === null) this.turn.value = transcript.turn;
  }

  /** One message that cannot be understood must not stop all that come after it. @param {Arrival} arrival */
  _applySafely(arrival) {
    try {
      this._apply(arrival);
    } catch (error) {
      console.error("a message of the gateway could not be applied", error);
    }
  }

  /** @param {Arrival} arrival */
  _apply(arrival) {
    if (arrival.attached !== undefined) this._attached(arrival.attached);
    else if (arrival.cancelled !== undefined) this._requests.cancelled(arrival.cancelled);
    else if (arrival.request !== undefined) this._requested(arrival.request);
    else if (arrival.ended !== undefined) this._promptAnswered(arrival.ended.response, arrival.ended.sent);
    else if (this._isNext(arrival.message)) this._applyMessage(arrival.message);
  }

  /**
   * Whether an event is the next one, and no gap is before it. A merged piece of text stands for all events since the number before.
   *
   * @param {any} message
   * @returns {boolean}
   */
  _isNext(message) {
    const { number } = placeOf(message);
    if (number === 0) return true; // no event: a notice of the gateway, the queue
    if (this.last < 0 || number <= this.last) return false;
    const kind = message.params?.update?.sessionUpdate;
    const mayBeMerged = kind === "agent_message_chunk" || kind === "agent_thought_chunk";
    if (number > this.last + 1 && !mayBeMerged) {
      if (this._attaching > 0) return false;
      if (this._gap !== this.last) {
        this._gap = this.last; // asked once: an event that this version does not know may be missing for ever
        this._attach();
        return false;
      }
    }
    this.last = number;
    return true;
  }

  /** @param {any} message */
  _applyMessage(message) {
    const { method, params } = message;
    const { number, time } = placeOf(message);
    if (time !== null && this._target === null) this.gateway.happened(time);
    if (method === "_antiphon/session/queue") {
      this._setQueue(params.queue ?? []);
      return;
    }
    if (method === "_antiphon/session/turn_started") this._outgoing.begun(params);
    else if (method === "_antiphon/session/turn_ended") this._outgoing.ended(params);
    else if (method === "_antiphon/session/resolved") this._requests.resolved(String(params.request));
    else if (method === "_antiphon/session/requested") this._requests.requested(params, this._target !== null);
    else if (method === "session/update") this._noteUpdate(params.update, number);
    this.transcript.applyFrame(message);
    this._checkTarget();
  }

  /** @param {any} update @param {number} number */
  _noteUpdate(update, number) {
    if (number === 0 || number > this._settled) this.settings.note(update);
    if (update?.sessionUpdate !== "user_message_chunk") return;
    const name = antiphonMeta(update).prompt;
    if (name) this._outgoing.arrived(name);
  }

  /** @param {import("../types.js").QueuedPrompt[]} queue */
  _setQueue(queue) {
    this.queue.value = queue;
    const gone = this._cancelling.filter((one) => !queue.some((other) => other.prompt === one.prompt));
    this._cancelling = [];
    this.putBack(gone.map((one) => [{ type: "text", text: one.text }]), true);
    this._outgoing.queued(queue);
  }

  /** @param {IncomingRequest} request */
  _requested(request) {
    const message = { method: request.method, params: request.params };
    const { number, time } = placeOf(message);
    const isUnknown = request.method === "session/request_permission" && this.transcript.call(request.params?.toolCall?.toolCallId) === null;
    // One without a number was an event before: it has nothing new of its call.
    if (number > 0 ? this._isNext(message) : isUnknown) this.transcript.applyFrame(message);
    this._requests.asked(request, String(antiphonMeta(request.params).request ?? request.id), time);
    this._checkTarget();
  }

  // What a person does.

  /** Send a prompt. It is shown at once, and what becomes of it is in `outgoing`. @param {Block[]} blocks @returns {Promise<string>} its name */
  async prompt(blocks) {
    return this._outgoing.add(blocks);
  }

  /** Send a failed prompt again. @param {string} name */
  retry(name) {
    this._outgoing.retry(name);
  }

  /** Forget a failed prompt. @param {string} name @returns {Block[] | null} what it was, to edit it */
  discard(name) {
    return this._outgoing.discard(name);
  }

  /** @param {import("./prompts.js").Sent} sent @returns {Promise<any>} */
  async _sendPrompt(sent) {
    await this.live();
    if (this._connection === null) throw new RpcError({ message: "the session is closed" }, "closed");
    await this._connection.introduced();
    sent.onWire = true;
    const params = { sessionId: this.id, prompt: sent.blocks, _meta: { antiphon: { prompt: sent.name } } };
    const received = (/** @type {any} */ response) => this._arrive({ ended: { response, sent } });
    return this._connection.connection.request("session/prompt", params, { received });
  }

  /** The end of a turn that this connection began is the response to its prompt. @param {any} response @param {import("./prompts.js").Sent} sent */
  _promptAnswered(response, sent) {
    const { number } = placeOf(response);
    if (number === 0 || number <= this.last) return; // an error: its turn has ended by a notification
    this.last = number;
    const turn = sent.turn ?? this.transcript.turn?.id;
    this.transcript.applyFrame({ method: "_antiphon/session/turn_ended", params: { ...antiphonMeta(response.result), turn, result: response.result } });
    this._outgoing.arrived(sent.name);
    this._checkTarget();
  }

  /**
   * Cancel the turn that runs. The gateway cancels the prompts of this page that wait, too, and those of one that is gone: their text is put
   * back into the field.
   *
   * @returns {Promise<void>}
   */
  async cancel() {
    const me = this.gateway.info.peek()?.name;
    this._cancelling = this.queue.peek().filter((one) => one.from === me && !this._outgoing.has(one.prompt));
    this.putBack(this._outgoing.takeWaiting(), true);
    if (this._cancelling.length === 0) {
      await this._connection?.notify("session/cancel", { sessionId: this.id });
      return;
    }
    try {
      await this._request("session/cancel", {}); // the gateway has told before its response which prompts wait no longer
    } finally {
      this.flush(true);
      this._cancelling = [];
    }
  }

  /** Put messages back into the field, in front of what is there. @param {Block[][]} messages @param {boolean} [isStopped] whether to tell it */
  putBack(messages, isStopped = false) {
    if (messages.length === 0) return;
    this.draft.value = withMessages(this.draft.peek(), messages);
    if (isStopped) this.returned.value = this.returned.peek() + messages.length;
  }

  /** Take a prompt back that waits. @param {string} name @returns {Promise<any>} */
  cancelPrompt(name) {
    return this._request("_antiphon/session/cancel_prompt", { prompt: name });
  }

  /** @param {string} id @returns {Promise<void>} */
  setMode(id) {
    return this.settings.setMode(id);
  }

  /** @param {string} id @returns {Promise<void>} */
  setModel(id) {
    return this.settings.setModel(id);
  }

  /** @param {string} id @param {string | boolean} value @returns {Promise<void>} */
  setOption(id, value) {
    return this.settings.setOption(id, value);
  }

  /** Load a page of older events, and put it in front. If that fails, `hasOlder` is still true and it can be tried again. @returns {Promise<void>} */
  async loadOlder() {
    if (!this.hasOlder.peek() || this.loadingOlder.peek()) return;
    this.loadingOlder.value = true;
    try {
      const { transcript } = this;
      const page = await this._request("_antiphon/session/read", { before: this._oldest + 1, limit: PAGE });
      if (transcript !== this.transcript) return; // renewed meanwhile
      batch(() => {
        this.transcript.prepend(page.events, page.after);
        this._oldest = page.after;
        this.hasOlder.value = page.after > 0 && page.events.length > 0;
        this._show(false);
      });
    } finally {
      this.loadingOlder.value = false;
    }
  }

  /** Give the session a title; an empty one gives it back to the agent. @param {string} title @returns {Promise<any>} */
  rename(title) {
    return this._request("_antiphon/session/rename", { title });
  }

  /** Open a new session that begins where this one is. @returns {Promise<SessionState>} */
  async fork() {
    const cwd = this.row.peek()?.cwd ?? "";
    const result = await this._request("session/fork", { cwd, mcpServers: [] });
    if (this._open === undefined) throw new Error("there is no page to open it in");
    return this._open(this.agent, result.sessionId);
  }

  /** All changes of files in this session. @returns {Promise<import("../types.js").ChangedFile[]>} */
  async changes() {
    return (await this._request("_antiphon/session/changes", {})).changes;
  }

  /** @param {"markdown" | "html" | "json"} format @returns {Promise<{name: string, mimeType: string, text: string}>} */
  export(format) {
    return this._request("_antiphon/session/export", { format });
  }

  /** Files of the workspace whose paths match. @param {string} query @param {number} [limit] @returns {Promise<Array<{path: string, directory: boolean}>>} */
  async files(query, limit = 20) {
    return (await this._request("_antiphon/session/files", { query, limit })).files;
  }

  /** Make a link to this session. @param {{role?: string, lifetime?: number, name?: string}} [options] @returns {Promise<any>} */
  share(options = {}) {
    return this._request("_antiphon/session/share", options);
  }

  /** @param {string} method @param {any} params @returns {Promise<any>} */
  async _request(method, params) {
    const connection = this._connection ?? (await this.gateway.agent(this.agent));
    return connection.request(method, { sessionId: this.id, ...params });
  }

  /** Wait until the session is attached. @returns {Promise<void>} */
  live() {
    return new Promise((resolve, reject) => {
      let over = false;
      /** @type {(() => void) | null} */
      let stop = null;
      stop = this.status.subscribe((status) => {
        if (over || (status !== "live" && status !== "gone")) return;
        over = true;
        queueMicrotask(() => stop?.());
        if (status === "live") resolve();
        else reject(new RpcError({ message: "this session is not there any more" }, "closed"));
      });
    });
  }
}

/** @returns {boolean} */
function isHidden() {
  return globalThis.document?.visibilityState === "hidden";
}

/** @param {() => void} work */
function nextFrame(work) {
  if (typeof globalThis.requestAnimationFrame !== "function" || isHidden()) {
    setTimeout(work, HIDDEN_INTERVAL);
    return;
  }
  let done = false;
  const once = () => {
    if (!done) {
      done = true;
      clearTimeout(timer);
      work();
    }
  };
  const timer = setTimeout(once, 5 * HIDDEN_INTERVAL); // a page that was hidden meanwhile gets no frame
  requestAnimationFrame(once);
}

/** @param {() => void} work @returns {() => void} ends it */
function onShown(work) {
  const page = globalThis.document;
  if (page === undefined) return () => {};
  const changed = () => {
    if (page.visibilityState === "visible") work();
  };
  page.addEventListener("visibilitychange", changed);
  return () => page.removeEventListener("visibilitychange", changed);
}
