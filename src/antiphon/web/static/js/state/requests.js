/**
 * The requests of an agent that wait for a person: permission requests and questions of one session.
 *
 * A request has an id of the gateway, the same on every connection and device, and one of the connection on which it was asked. When the
 * connection is lost it stays on the screen; the gateway asks again on the next one, and an answer that was given meanwhile is sent then.
 */

import { signal } from "../../vendor/signals.js";

/** @typedef {import("../types.js").PendingRequest} PendingRequest */
/** @typedef {import("../net/connection.js").IncomingRequest} IncomingRequest */
/** @typedef {PendingRequest & {wireId: number | string | null, send: ((result: any) => void) | null}} Asked */

/** The requests of one session. */
export class PendingRequests {
  constructor() {
    /** Those that this person may answer. @type {import("../types.js").Signal<PendingRequest[]>} */
    this.shown = signal(/** @type {PendingRequest[]} */ ([]));
    /** Those that wait for others, as this person may only watch. @type {import("../types.js").Signal<Array<{id: string, method: string, params: any}>>} */
    this.watched = signal(/** @type {any[]} */ ([]));
    /** @type {Map<string, Asked>} */
    this._asked = new Map();
    /** Answers that were given while there was no connection. @type {Map<string, any>} */
    this._answers = new Map();
    /** The ids that were open when the session was attached. @type {Set<string> | null} */
    this._open = null;
  }

  /** Take a request. @param {IncomingRequest} request @param {string} id @param {number | null} time */
  asked(request, id, time) {
    const answer = this._answers.get(id);
    if (answer !== undefined) {
      this._answers.delete(id);
      request.respond(answer);
      return;
    }
    const before = this._asked.get(id);
    this._asked.set(id, {
      id,
      method: request.method,
      params: request.params,
      stale: false,
      time: time ?? before?.time ?? null,
      wireId: request.id,
      send: request.respond,
      respond: (result) => this._respond(id, result),
    });
    this._show();
  }

  /** Note a request that others are asked, or that was answered. @param {any} params of `requested` @param {boolean} isHistory */
  requested(params, isHistory) {
    const id = String(params.request);
    if ((isHistory && this._open !== null && !this._open.has(id)) || this._asked.has(id)) return;
    this.watched.value = [...this.watched.peek(), { id, method: params.method, params: params.params ?? {} }];
  }

  /** A request was answered, here or elsewhere. @param {string} id */
  resolved(id) {
    this._answers.delete(id);
    if (this._asked.delete(id)) this._show();
    if (this.watched.peek().some((request) => request.id === id)) this.watched.value = this.watched.peek().filter((request) => request.id !== id);
  }

  /** A request was cancelled on this connection. @param {number | string} wireId */
  cancelled(wireId) {
    for (const [id, request] of this._asked) if (request.wireId === wireId) this._asked.delete(id);
    this._show();
  }

  /** The connection was lost. */
  lost() {
    for (const [id, request] of this._asked) this._asked.set(id, { ...request, stale: true, wireId: null, send: null });
    this._show();
  }

  /** The session is attached again. @param {string[]} open the ids of the requests that wait */
  attached(open) {
    this._open = new Set(open);
    for (const id of [...this._asked.keys(), ...this._answers.keys()]) if (!this._open.has(id)) this.resolved(id);
    this.watched.value = this.watched.peek().filter((request) => this._open?.has(request.id));
  }

  /** @param {string} id @param {any} result */
  _respond(id, result) {
    const request = this._asked.get(id);
    if (request === undefined) return; // answered already, or elsewhere
    this._asked.delete(id);
    if (request.send === null) this._answers.set(id, result);
    else request.send(result);
    this._show();
  }

  _show() {
    this.shown.value = [...this._asked.values()];
  }
}
