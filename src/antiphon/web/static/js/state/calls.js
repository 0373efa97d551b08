/**
 * A tool call among the entries: what is known of it, from whichever message. The twin of `CallEntry` in `src/antiphon/transcript/entries.py`.
 *
 * An announcement and a patch both are a set of fields that change. A call whose beginning may be in an older page keeps those sets, so that
 * they can be applied to that beginning when it comes.
 */

import { Shown, contentSize } from "./entries.js";

/** @typedef {import("./entries.js").Place} Place */
/** @typedef {"pending" | "in_progress" | "completed" | "failed"} CallStatus */
/** @typedef {"read" | "edit" | "delete" | "move" | "search" | "execute" | "think" | "fetch" | "switch_mode" | "other"} CallKind */

/** Characters of a terminal that are kept: its end. */
const TERMINAL = 256 * 1024;

/** Announcements of one call that are kept until its beginning was loaded. */
const LOG = 16;

const STATUSES = new Set(["pending", "in_progress", "completed", "failed"]);
const KINDS = new Set(["read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"]);
/** @type {Record<string, CallKind>} */
const KIND_ALIASES = { write: "edit", command: "execute" };

/** @typedef {{announce: boolean, fields: Record<string, any>, time: number | null}} LoggedChange */

/** A tool call in its current state, whichever message it came from: an announcement, a patch, a permission request. */
export class Call extends Shown {
  /** @param {Place} place @param {string} id */
  constructor(place, id) {
    super(place);
    this.type = /** @type {const} */ ("call");
    this.id = id;
    /** What happened to it here, while its beginning may be in an older page. @type {LoggedChange[] | null} */
    this.log = null;
    this.title = "";
    /** The kind as the agent wrote it. */
    this.kindWord = "other";
    /** The status as the agent wrote it. */
    this.statusWord = "pending";
    /** @type {string | null} */
    this.name = null;
    /** @type {any[]} */
    this.content = [];
    /** @type {Array<{path: string, line?: number | null}>} */
    this.locations = [];
    /** Undefined: the agent sent none. @type {any} */
    this.rawInput = undefined;
    /** @type {any} */
    this.rawOutput = undefined;
    /** Whether the agent reports that the call failed because it was not allowed. */
    this.denied = false;
    /** Whether a person rejected it when the agent asked. */
    this.rejected = false;
    /** Whether a `tool_call` came; before that it is known from a patch or a permission request alone. */
    this.announced = false;
    /** When its first event came, and the one that finished it. */
    this.started = this.time;
    /** @type {number | null} */
    this.ended = null;
    /** What its terminals have printed, where an agent sends that beside the call (`_meta.terminal_output`). @type {Map<string, string>} */
    this.terminals = new Map();
    /** How they ended. @type {Map<string, {code: number | null, signal: string | null}>} */
    this.exits = new Map();
  }

  /** About how many characters it holds. @returns {number} */
  get weight() {
    let weight = 300 + contentSize(this.content);
    for (const text of this.terminals.values()) weight += text.length;
    return weight;
  }

  /** How far it is: a word that the protocol has. @returns {CallStatus} */
  get status() {
    return statusOf(this.statusWord);
  }

  /** The sort of work, for its icon: a word that the protocol has. @returns {CallKind} */
  get kind() {
    return kindOf(this.kindWord);
  }

  /** Whether it completed or failed. @returns {boolean} */
  get finished() {
    const status = this.status;
    return status === "completed" || status === "failed";
  }

  /** A title to show in any case. @returns {string} */
  get label() {
    return this.title || this.name || this.kindWord;
  }

  /** Seconds that it took; null if that is not known. @returns {number | null} */
  get duration() {
    return this.started !== null && this.ended !== null ? Math.max(0, this.ended - this.started) : null;
  }

  /** Take a `tool_call`. A second one adds, never removes: a field at its default leaves what is known. @param {any} update @param {number | null} time */
  announce(update, time) {
    this._take({ announce: true, fields: announcedFields(update), time });
    this._noteTerminal(update._meta);
  }

  /** Take what changed: an absent field stays as it was, null clears it, lists are replaced whole. @param {any} update @param {number | null} time */
  patch(update, time) {
    this._take({ announce: false, fields: patchedFields(update), time });
    this._noteTerminal(update._meta);
  }

  /** Take the answer to its permission request. @param {boolean} rejected @param {number | null} time */
  answered(rejected, time) {
    this._take({ announce: false, fields: { rejected }, time });
  }

  /** @param {any} meta */
  _noteTerminal(meta) {
    const output = meta?.terminal_output;
    if (typeof output?.terminal_id === "string" && typeof output.data === "string") {
      const text = (this.terminals.get(output.terminal_id) ?? "") + output.data;
      this.terminals.set(output.terminal_id, text.length > TERMINAL ? text.slice(-TERMINAL) : text);
    }
    const exit = meta?.terminal_exit;
    if (typeof exit?.terminal_id === "string") {
      this.exits.set(exit.terminal_id, { code: exit.exit_code ?? null, signal: exit.signal ?? null });
    }
  }

  /**
   * Take what happened after the end of the page in which this call began.
   *
   * @param {LoggedChange[]} log
   * @returns {LoggedChange[]} the part of it that is about another call, which took the id again
   */
  takeLog(log) {
    for (const [index, change] of log.entries()) {
      if (change.announce && this.announced && this.finished) return log.slice(index);
      this._take(change);
    }
    return [];
  }

  /** Begin again with these changes alone. @param {LoggedChange[]} log */
  restart(log) {
    const { key, number, time } = this;
    Object.assign(this, new Call({ key, number, time }, this.id), { _version: this._version });
    this.started = log[0].time;
    for (const change of log) this._take(change);
  }

  /** @param {LoggedChange} change */
  _take(change) {
    const wasFinished = this.finished;
    Object.assign(this, change.fields);
    if (change.announce) this.announced = true;
    if (this.finished && !wasFinished) this.ended = change.time;
    if (this.log === null) return;
    const last = this.log.at(-1);
    if (last !== undefined && !change.announce) {
      Object.assign(last.fields, change.fields); // the later value of a field is all that counts
      if (this.finished && !wasFinished) last.time = change.time;
    } else if (this.log.length < LOG) {
      this.log.push({ ...change, fields: { ...change.fields } });
    }
  }

  /** @returns {string[]} */
  lines() {
    return [`[${this.statusWord}] ${this.label}`];
  }
}

/** @param {string} word @returns {CallStatus} */
export function statusOf(word) {
  if (STATUSES.has(word)) return /** @type {CallStatus} */ (word);
  return word === "cancelled" ? "failed" : "pending";
}

/** @param {string} word @returns {CallKind} */
export function kindOf(word) {
  return KINDS.has(word) ? /** @type {CallKind} */ (word) : (Object.hasOwn(KIND_ALIASES, word) ? KIND_ALIASES[word] : "other");
}

/** @param {any} call @returns {Record<string, any>} the fields that an announcement changes */
function announcedFields(call) {
  /** @type {Record<string, any>} */
  const fields = {};
  if (typeof call.title === "string" && call.title) fields.title = call.title;
  let kind = typeof call.kind === "string" ? call.kind : "other";
  if (kind === "other" && typeof call.toolKind === "string") kind = call.toolKind;
  if (kind !== "other") fields.kindWord = kind;
  if (typeof call.status === "string" && statusOf(call.status) !== "pending") fields.statusWord = call.status;
  if (typeof call.name === "string") fields.name = call.name;
  const content = itemsOf(call.content);
  if (content.length > 0) fields.content = content;
  const locations = placesOf(call.locations);
  if (locations.length > 0) fields.locations = locations;
  return withRest(fields, call);
}

/** @param {any} patch @returns {Record<string, any>} the fields that a patch changes */
function patchedFields(patch) {
  /** @type {Record<string, any>} */
  const fields = {};
  if (patch.title !== undefined) fields.title = typeof patch.title === "string" ? patch.title : "";
  const kind = patch.kind === undefined ? patch.toolKind : patch.kind;
  if (kind !== undefined) fields.kindWord = typeof kind === "string" ? kind : "other";
  // A call always has a status, so there is nothing to clear it to: a finished call must not seem to run again.
  if (typeof patch.status === "string") fields.statusWord = patch.status;
  if (patch.name !== undefined) fields.name = typeof patch.name === "string" ? patch.name : null;
  if (patch.content !== undefined) fields.content = itemsOf(patch.content);
  if (patch.locations !== undefined) fields.locations = placesOf(patch.locations);
  return withRest(fields, patch);
}

/** @param {Record<string, any>} fields @param {any} update @returns {Record<string, any>} */
function withRest(fields, update) {
  const rawInput = update.rawInput === undefined ? update.input : update.rawInput;
  if (rawInput !== undefined) fields.rawInput = rawInput;
  if (update.rawOutput !== undefined) {
    fields.rawOutput = update.rawOutput;
  } else if (update.output !== undefined) {
    // One dialect sends the content of a call as its `output`.
    const isContent = Array.isArray(update.output) && update.output.length > 0 && update.output.every((/** @type {any} */ each) => typeof each?.type === "string");
    if (isContent) fields.content = itemsOf(update.output);
    else fields.rawOutput = update.output;
  }
  if (update._meta?.antiphon?.denied === true) fields.denied = true;
  return fields;
}

/** @param {any} content @returns {any[]} */
function itemsOf(content) {
  return Array.isArray(content) ? content.filter((item) => typeof item?.type === "string") : [];
}

/** @param {any} locations @returns {Array<{path: string, line?: number | null}>} */
function placesOf(locations) {
  return Array.isArray(locations) ? locations.filter((place) => typeof place?.path === "string") : [];
}
