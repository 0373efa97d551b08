/**
 * The things a screen shows one below the other, except tool calls, which are in `calls.js`. They are changed in place as events come in;
 * `fold.js` decides how.
 *
 * An entry is the twin of the one in `src/antiphon/transcript/entries.py`. Its `key` never changes while it is shown and grows
 * from top to bottom. `version` is a signal for views: it is bumped at most once per frame, by `Transcript.publish`.
 */

import { signal } from "../../vendor/signals.js";

/** @typedef {import("../types.js").Block} Block */
/** @typedef {import("../types.js").Turn} Turn */
/** @typedef {{key: number, number: number, time: number | null}} Place where an entry stands: its key, its first event */
/** @typedef {Message | Thought | import("./calls.js").Call | Notice | Compaction | End} Entry */

/** Pieces of text that are joined at once: an array of a hundred thousand small strings would cost ten times their text. */
const PIECES = 256;

/** @param {any} block @returns {block is {type: "text", text: string, annotations?: any}} */
export function isText(block) {
  return typeof block === "object" && block !== null && block.type === "text" && typeof block.text === "string";
}

/**
 * Whether two JSON values are equal. A member that is null counts as absent, as the protocol reads it.
 *
 * @param {any} one
 * @param {any} other
 * @returns {boolean}
 */
export function sameValue(one, other) {
  if (one === other) return true;
  if (one == null || other == null) return one == null && other == null;
  if (typeof one !== "object" || typeof other !== "object" || Array.isArray(one) !== Array.isArray(other)) return false;
  const names = new Set([...Object.keys(one), ...Object.keys(other)]);
  for (const name of names) if (!sameValue(one[name], other[name])) return false;
  return true;
}

/**
 * About how many characters blocks or the content of a call hold.
 *
 * @param {any[]} content
 * @returns {number}
 */
export function contentSize(content) {
  let size = 0;
  for (const item of content) {
    const block = item.content ?? item;
    for (const name of ["text", "newText", "oldText", "data"]) if (typeof block[name] === "string") size += block[name].length;
    if (typeof block.resource?.text === "string") size += block.resource.text.length;
  }
  return size;
}

/** What every entry has. */
export class Shown {
  /** @param {Place} place */
  constructor(place) {
    this.key = place.key;
    /** The number of its first event, for links. */
    this.number = place.number;
    /** When that was, in seconds since 1970. */
    this.time = place.time;
    /** The engine that it comes from, where several answer. @type {string | null} */
    this.engine = null;
    this.isDropped = false;
    /** @type {import("../types.js").Signal<number> | null} */
    this._version = null;
  }

  /** Made when a view asks for it: of thousands of entries few are drawn. @returns {import("../types.js").Signal<number>} */
  get version() {
    this._version ??= /** @type {import("../types.js").Signal<number>} */ (signal(0));
    return this._version;
  }

  /** About how many characters it holds. @returns {number} */
  get weight() {
    return 100;
  }

  /** Let its view draw it again. */
  touch() {
    if (this._version !== null) this._version.value = this._version.peek() + 1;
  }
}

/** Content that comes in pieces. Text is joined when it is read, so that n pieces cost n steps and not n². */
class Writing extends Shown {
  /** @param {Place} place */
  constructor(place) {
    super(place);
    /** @type {Block[]} */
    this._blocks = [];
    /** The text after the last of the blocks: joined, and the pieces after that. */
    this._joined = /** @type {string[]} */ ([]);
    this._pieces = /** @type {string[]} */ ([]);
    /** The annotations that all of this text has. @type {any} */
    this.note = null;
    /** The kind of update that goes on with this text though it names no message. @type {string | null} */
    this.openTo = null;
    /** Characters of its text. */
    this.length = 0;
    /** Whether it goes on with the entry before, which had become very long. */
    this.continued = false;
    /** @type {Block[] | null} */
    this._shown = null;
  }

  /** Whether the next piece may come at any moment. @returns {boolean} */
  get open() {
    return this.openTo !== null;
  }

  /** About how many characters it holds. @returns {number} */
  get weight() {
    return this.length + contentSize(this._blocks);
  }

  /** Put a piece at the end. Text joins the text before it unless its annotations differ. @param {Block} block */
  add(block) {
    if (!isText(block)) {
      this._closeText();
      this._blocks.push(block);
      this._shown = null;
      return;
    }
    const note = block.annotations ?? null;
    if (!sameNote(this.note, note)) {
      this._closeText();
      this.note = note;
    }
    this.addText(block.text);
  }

  /** Put text at the end that has the annotations of the text before it. @param {string} text */
  addText(text) {
    this._shown = null;
    this.length += text.length;
    if (this._pieces.push(text) >= PIECES) this._join();
  }

  /** Forget what was written; this is all there is. @param {Block[] | null} blocks */
  replace(blocks) {
    this._blocks = [];
    this._joined = [];
    this._pieces = [];
    this._shown = null;
    this.length = 0;
    this.note = null;
    for (const block of blocks ?? []) if (typeof block?.type === "string") this.add(block);
  }

  /** The text alone, without the pictures and resources between. @returns {string} */
  get text() {
    const tail = this._tail();
    return this._blocks.length === 0 ? tail : this._blocks.map((block) => (isText(block) ? block.text : "")).join("") + tail;
  }

  /** Everything in order, text in as few blocks as possible. The same array until something is added. @returns {Block[]} */
  get blocks() {
    if (this._shown === null) {
      const tail = this._tail();
      const block = this.note === null ? { type: "text", text: tail } : { type: "text", text: tail, annotations: this.note };
      this._shown = tail ? [...this._blocks, block] : [...this._blocks];
    }
    return this._shown;
  }

  /** The text, and anything else as a word in brackets where it stands. @returns {string} */
  get words() {
    return this.blocks.map((block) => (isText(block) ? block.text : `[${block.type}]`)).join("");
  }

  _join() {
    if (this._pieces.length > 0) this._joined.push(this._pieces.join(""));
    this._pieces = [];
    if (this._joined.length >= PIECES) this._joined = [this._joined.join("")];
  }

  _tail() {
    this._join();
    if (this._joined.length > 1) this._joined = [this._joined.join("")];
    return this._joined[0] ?? "";
  }

  _closeText() {
    const tail = this._tail();
    if (tail) this._blocks.push(this.note === null ? { type: "text", text: tail } : { type: "text", text: tail, annotations: this.note });
    this._joined = [];
    this.note = null;
    this._shown = null;
  }
}

/** @param {any} one @param {any} other @returns {boolean} whether two annotations are equal; absent ones differ from empty ones */
function sameNote(one, other) {
  return one === null || other === null ? one === other : sameValue(one, other);
}

/** A message of the user or the agent. */
export class Message extends Writing {
  /** @param {Place} place @param {"user" | "agent"} speaker @param {string | null} messageId */
  constructor(place, speaker, messageId) {
    super(place);
    this.type = /** @type {const} */ ("message");
    this.speaker = speaker;
    this.messageId = messageId;
    /** The kind of update that it is made of. */
    this.kind = speaker === "agent" ? "agent_message_chunk" : "user_message_chunk";
    /** The name of its sender. @type {string | null} */
    this.from = null;
    /** The turn that it began. @type {string | null} */
    this.turn = null;
    /** The name that its sender gave to the prompt. @type {string | null} */
    this.prompt = null;
  }

  /** @returns {string[]} */
  lines() {
    const lines = linesOf(this.words);
    return this.speaker === "user" ? lines.map((line) => `> ${line}`) : lines;
  }
}

/** What the agent thought. */
export class Thought extends Writing {
  /** @param {Place} place @param {string | null} messageId */
  constructor(place, messageId) {
    super(place);
    this.type = /** @type {const} */ ("thought");
    this.messageId = messageId;
    this.kind = "agent_thought_chunk";
  }

  /** @returns {string[]} */
  lines() {
    return linesOf(this.words).map((line) => `… ${line}`);
  }
}

/** Something the user should know that belongs to no message. */
export class Notice extends Shown {
  /** @param {Place} place @param {any} notice */
  constructor(place, notice) {
    super(place);
    this.type = /** @type {const} */ ("notice");
    /** @type {"info" | "warning" | "error"} */
    this.severity = notice.severity === "warning" || notice.severity === "error" ? notice.severity : "info";
    this.severityWord = String(notice.severity ?? "info");
    this.title = String(notice.title ?? "");
    /** @type {string | null} */
    this.description = typeof notice.description === "string" ? notice.description : null;
  }

  /** @returns {string[]} */
  lines() {
    return [`! ${this.severityWord}: ${this.title}${this.description ? `: ${this.description}` : ""}`];
  }
}

/** The context was shortened; what is written is the summary. */
export class Compaction extends Writing {
  /** @param {Place} place @param {string} id */
  constructor(place, id) {
    super(place);
    this.type = /** @type {const} */ ("compaction");
    this.id = id;
    this.status = "in_progress";
    /** @type {string | null} */
    this.error = null;
    this._set = { status: false, summary: false, error: false };
  }

  /** Whether the next piece may come at any moment. @returns {boolean} */
  get open() {
    return this.status === "in_progress";
  }

  /** Take what changed: an absent field stays as it was, null clears it. @param {any} update @returns {Compaction} */
  patch(update) {
    if (typeof update.status === "string") {
      this.status = update.status;
      this._set.status = true;
    }
    if (update.summary !== undefined) {
      this.replace(Array.isArray(update.summary) ? update.summary : null);
      this._set.summary = true;
    }
    if (update.error !== undefined) {
      this.error = update.error;
      this._set.error = true;
    }
    return this;
  }

  /** Take what happened after the end of the page in which it began. @param {Compaction} rest */
  continueWith(rest) {
    if (rest._set.status) this.status = rest.status;
    if (rest._set.error) this.error = rest.error;
    if (rest._set.summary) this.replace(rest.blocks);
    else for (const block of rest.blocks) this.add(block);
  }

  /** @returns {string[]} */
  lines() {
    return [`~ compaction ${this.status}${this.error ? `: ${this.error}` : ""}`, ...linesOf(this.words).map((line) => `~ ${line}`)];
  }
}

/** The end of a turn: the page's own, no update says it. */
export class End extends Shown {
  /** @param {Place} place @param {any} params of `_antiphon/session/turn_ended`, or the like @param {Turn | null} turn */
  constructor(place, params, turn) {
    super(place);
    this.type = /** @type {const} */ ("end");
    /** @type {string} */
    this.turn = String(params.turn ?? turn?.id ?? "");
    /** @type {string | null} */
    this.stopReason = params.error ? null : (params.result?.stopReason ?? null);
    /** @type {{code: number, message: string, data?: any} | null} */
    this.error = params.error ?? null;
    this.interrupted = params.interrupted === true || params.error?.data?.antiphon?.interrupted === true;
    /** @type {string | null} */
    this.from = params.from ?? turn?.from ?? null;
    /** Tokens of the turn, if the agent reports them. @type {any} */
    this.usage = params.result?.usage ?? null;
    /** Seconds. @type {number | null} */
    this.duration = null;
    if (turn !== null) this.began(turn);
  }

  /** Take when the turn began. @param {Turn} turn */
  began(turn) {
    this.from ??= turn.from;
    if (turn.started !== null && this.time !== null) this.duration = Math.max(0, this.time - turn.started);
  }

  /** @returns {string[]} */
  lines() {
    return [];
  }
}

/** The lines of a text, as Python's `splitlines` sees them. @param {string} text @returns {string[]} */
export function linesOf(text) {
  const lines = text.split(/\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]/);
  if (lines.at(-1) === "") lines.pop();
  return lines;
}
