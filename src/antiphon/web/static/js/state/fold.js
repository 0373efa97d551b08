/**
 * The fold: updates become entries, by the rules at the top of `src/antiphon/transcript/transcript.py`. A test compares both.
 *
 * Pure: no I/O, no clock; equal updates give equal entries. What the page adds to the rules: the number and time of each entry, who
 * sent a message, and that a message which grows very long goes on in another entry, so that a view never parses all of it again.
 */

import { signal } from "../../vendor/signals.js";
import { Call } from "./calls.js";
import { Compaction, Message, Notice, Thought, contentSize, isText, sameValue } from "./entries.js";

/** @typedef {import("./entries.js").Entry} Entry */
/** @typedef {Message | Thought} TextEntry */

/** Characters after which a message goes on in another entry, at the next line end. */
export const LONG = 256 * 1024;

/** The kinds of update that are pieces of a message or thought. */
export const CHUNKS = new Set(["user_message_chunk", "agent_message_chunk", "agent_thought_chunk"]);

/** @param {any} value @returns {any} what our own agent and the gateway add to a message */
export function antiphonMeta(value) {
  const found = value?._meta?.antiphon;
  return typeof found === "object" && found !== null ? found : {};
}

/** Entries made of updates, and the state beside them. */
export class Fold {
  constructor() {
    /** @type {Entry[]} */
    this.entries = [];
    /** Bumped by `publish` when entries were added, removed or put in front. @type {import("../types.js").Signal<number>} */
    this.structure = signal(0);
    /** Entries that `trim` has dropped. */
    this.dropped = 0;
    /** @type {import("../types.js").PlanStep[]} */
    this.plan = [];
    /** Plans by id, for agents that have several. @type {Map<string, any>} */
    this.plans = new Map();
    /** @type {any} */
    this.usage = null;
    /** Characters of what was added since `trim` last weighed the entries. */
    this.added = 0;
    /** @type {string | null} */
    this.mode = null;
    /** @type {string | null} */
    this.model = null;
    /** @type {import("../types.js").Command[]} */
    this.commands = [];
    /** @type {import("../types.js").ConfigOption[]} */
    this.configOptions = [];
    /** @type {string | null} */
    this.title = null;
    /** @type {string | null} */
    this.updatedAt = null;
    /** Updates that have no place on the screen. */
    this.unshown = 0;
    /** The turn that runs, as far as the events say. @type {import("../types.js").Turn | null} */
    this.turn = null;
    /** The kinds of state that an update has set; what is not among them may come from an older page. @type {Set<string>} */
    this._known = new Set();
    /** @type {Map<string, TextEntry>} */
    this._byMessageId = new Map();
    /** @type {Map<string, Call>} */
    this._calls = new Map();
    /** The first entry of each call here: an older page may begin it. @type {Map<string, Call>} */
    this._firstCalls = new Map();
    /** @type {Map<string, Compaction>} */
    this._compactions = new Map();
    /** Where the next piece may go. @type {TextEntry | null} */
    this._current = null;
    /** @type {{message: Message, rest: any[]} | null} */
    this._echo = null;
    /** @type {string | null} */
    this._engine = null;
    /** @type {Set<Entry>} */
    this._changed = new Set();
    this._restructured = false;
    this._nextKey = 0;
    this._lowestKey = 0;
    this._number = 0;
    /** @type {number | null} */
    this._time = null;
  }

  /**
   * Take one update.
   *
   * @param {any} update
   * @returns {Entry | null} the entry to draw again, or null if it changed no entry (but perhaps the state)
   */
  apply(update) {
    if (typeof update !== "object" || update === null) return null;
    const kind = update.sessionUpdate;
    const current = this._current;
    // The fast road: the next piece of plain text. Nearly every update of a turn is one.
    if (current !== null && kind === current.openTo && current.note === null) {
      const { content, messageId } = update;
      const mayRepeat = this._echo !== null && kind === "user_message_chunk";
      if (!mayRepeat && isText(content) && content.annotations == null && (messageId == null || messageId === current.messageId) && current.length < LONG) {
        current.addText(content.text);
        this.added += content.text.length;
        this._changed.add(current);
        return current;
      }
    }
    const entry = this._applySlowly(kind, update);
    if (entry !== null) {
      this._changed.add(entry);
      this.added += sizeOf(update);
    }
    return entry;
  }

  /** @param {string} kind @param {any} update @returns {Entry | null} */
  _applySlowly(kind, update) {
    if (CHUNKS.has(kind)) return isBlock(update.content) ? this._addChunk(kind, update) : null;
    switch (kind) {
      case "tool_call":
        return typeof update.toolCallId === "string" ? this._announced(update) : null;
      case "tool_call_update":
        return typeof update.toolCallId === "string" ? this._patched(update) : null;
      case "notice":
        return this._enter(new Notice(this._place(), update));
      case "compaction_update":
        return this._compaction(update.compactionId).patch(update);
      case "compaction_summary_chunk": {
        const compaction = this._compaction(update.compactionId);
        if (isBlock(update.content)) compaction.add(update.content);
        return compaction;
      }
      default:
        this._note(kind, update);
        return null;
    }
  }

  /**
   * Take the call that a permission request is about; it may be the first message about it.
   *
   * @param {any} patch
   * @returns {Call | null}
   */
  asked(patch) {
    if (typeof patch?.toolCallId !== "string") return null;
    const call = this._patched(patch);
    this._changed.add(call);
    return call;
  }

  /** The call of this id; if there were several, the last. @param {string} id @returns {Call | null} */
  call(id) {
    return this._calls.get(id) ?? null;
  }

  /** Everything in plain lines, for tests. @returns {string} */
  plain() {
    return this.entries.flatMap((entry) => entry.lines()).join("\n");
  }

  // Entries.

  /** @returns {import("./entries.js").Place} */
  _place() {
    return { key: this._nextKey++, number: this._number, time: this._time };
  }

  /** @template {Entry} T @param {T} entry @returns {T} */
  _enter(entry) {
    this.entries.push(entry);
    this._restructured = true;
    this._closeCurrent();
    return entry;
  }

  _closeCurrent() {
    if (this._current === null) return;
    this._current.openTo = null;
    this._changed.add(this._current);
    this._current = null;
  }

  /** @param {string} kind @param {any} chunk @returns {Entry} */
  _addChunk(kind, chunk) {
    const about = kind === "user_message_chunk" ? antiphonMeta(chunk) : {};
    const messageId = typeof chunk.messageId === "string" ? chunk.messageId : null;
    const isPrompt = typeof about.turn === "string";
    if (kind === "user_message_chunk" && !isPrompt) {
      const message = this._echoed(chunk, messageId);
      if (message !== null) return message;
    }
    let entry = null;
    if (messageId !== null) entry = this._byMessageId.get(`${kind} ${messageId}`) ?? null;
    else if (this._current !== null && this._current.openTo === kind) entry = this._current;
    entry ??= this._started(kind, messageId);
    if (entry.length >= LONG && entry === this._current && isText(chunk.content)) return this._continued(entry, kind, chunk.content);
    entry.add(chunk.content);
    if (isPrompt && entry instanceof Message) this._notePrompt(entry, about, chunk.content);
    return entry;
  }

  /** @param {Message} message @param {any} about @param {any} block */
  _notePrompt(message, about, block) {
    message.from = typeof about.from === "string" ? about.from : message.from;
    message.turn = about.turn;
    message.prompt = about.prompt ?? null;
    const rest = this._echo?.message === message ? this._echo.rest : [];
    rest.push(block);
    this._echo = { message, rest };
  }

  /** @param {string} kind @param {string | null} messageId @returns {TextEntry} */
  _started(kind, messageId) {
    const place = this._place();
    const entry =
      kind === "agent_thought_chunk"
        ? new Thought(place, messageId)
        : new Message(place, kind === "agent_message_chunk" ? "agent" : "user", messageId);
    this._enter(entry);
    this._current = entry;
    entry.openTo = kind;
    if (messageId !== null) this._byMessageId.set(`${kind} ${messageId}`, entry);
    return entry;
  }

  /**
   * Go on with a long message in another entry, at a line end if one comes soon.
   *
   * @param {TextEntry} entry
   * @param {string} kind
   * @param {{type: "text", text: string, annotations?: any}} content
   * @returns {TextEntry}
   */
  _continued(entry, kind, content) {
    const end = content.text.indexOf("\n") + 1;
    if (end === 0 && entry.length < 2 * LONG) {
      entry.add(content);
      return entry;
    }
    if (end > 0) entry.add({ ...content, text: content.text.slice(0, end) });
    const next = this._started(kind, entry.messageId);
    next.continued = true;
    next.engine = entry.engine;
    if (next instanceof Message && entry instanceof Message) next.from = entry.from;
    const rest = content.text.slice(end);
    if (rest) next.add({ ...content, text: rest });
    return next;
  }

  /**
   * The message that a chunk repeats, if it repeats the next part of the prompt: some agents send it back.
   *
   * @param {any} chunk
   * @param {string | null} messageId
   * @returns {Message | null}
   */
  _echoed(chunk, messageId) {
    if (this._echo === null) return null;
    const { message, rest } = this._echo;
    const [head] = rest;
    const content = chunk.content;
    if (isText(head) && isText(content) && head.text.startsWith(content.text)) {
      const left = head.text.slice(content.text.length);
      rest.splice(0, 1, ...(left ? [{ type: "text", text: left }] : []));
    } else if (head !== undefined && sameValue(head, content)) {
      rest.shift();
    } else {
      this._echo = null;
      return null;
    }
    if (messageId !== null) this._byMessageId.set(`user_message_chunk ${messageId}`, message);
    return message;
  }

  /** @param {any} update @returns {Call} */
  _announced(update) {
    let call = this._calls.get(update.toolCallId) ?? null;
    if (call !== null && call.announced && call.finished) call = null;
    call ??= this._newCall(update.toolCallId);
    call.announce(update, this._time);
    return call;
  }

  /** @param {any} patch @returns {Call} */
  _patched(patch) {
    const call = this._calls.get(patch.toolCallId) ?? this._newCall(patch.toolCallId);
    call.patch(patch, this._time);
    if (call.isDropped && call.finished) this._forget(call);
    return call;
  }

  /** @param {string} id @returns {Call} */
  _newCall(id) {
    const call = new Call(this._place(), id);
    this._calls.set(id, call);
    if (!this._firstCalls.has(id)) {
      this._firstCalls.set(id, call);
      call.log = [];
    }
    return this._enter(call);
  }

  /** @param {Call} call */
  _forget(call) {
    if (this._calls.get(call.id) === call) this._calls.delete(call.id);
  }

  /** @param {any} id @returns {Compaction} */
  _compaction(id) {
    let entry = this._compactions.get(id);
    if (entry === undefined) {
      entry = new Compaction(this._place(), id);
      this._compactions.set(id, entry);
      this._enter(entry);
    }
    return entry;
  }

  // State.

  /** @param {string} kind @param {any} update */
  _note(kind, update) {
    switch (kind) {
      case "plan":
        this.plan = Array.isArray(update.entries) ? update.entries.filter(isPlanStep) : [];
        break;
      case "plan_update":
        if (typeof update.plan === "object" && update.plan !== null) this.plans.set(update.plan.planId ?? update.plan.type, update.plan);
        break;
      case "plan_removed":
        this.plans.delete(update.planId);
        break;
      case "usage_update":
        this.usage = update;
        break;
      case "current_mode_update":
        this.mode = update.currentModeId;
        break;
      case "current_model_update":
        this.model = update.currentModelId;
        break;
      case "available_commands_update":
        this.commands = Array.isArray(update.availableCommands) ? update.availableCommands.filter(isCommand) : [];
        break;
      case "config_option_update":
        this.configOptions = Array.isArray(update.configOptions) ? update.configOptions : [];
        break;
      case "session_info_update":
        if (update.title !== undefined) this.title = update.title;
        if (update.updatedAt !== undefined) this.updatedAt = update.updatedAt;
        if (update.title === undefined) return; // an older page may have it
        break;
      default:
        this.unshown += 1;
        return;
    }
    this._known.add(kind);
  }
}

/** @param {any} value @returns {boolean} */
function isBlock(value) {
  return typeof value === "object" && value !== null && typeof value.type === "string" && (value.type !== "text" || isText(value));
}

/** @param {any} update @returns {number} about how many characters an update brings */
function sizeOf(update) {
  if (typeof update.content?.text === "string") return update.content.text.length;
  return Array.isArray(update.content) ? contentSize(update.content) : 100;
}

/** @param {any} step @returns {boolean} */
function isPlanStep(step) {
  return typeof step?.content === "string";
}

/** @param {any} command @returns {boolean} */
function isCommand(command) {
  return typeof command?.name === "string";
}

/**
 * The transcript of these updates.
 *
 * @param {Iterable<any>} updates
 * @returns {Fold}
 */
export function fold(updates) {
  const transcript = new Fold();
  for (const update of updates) transcript.apply(update);
  return transcript;
}
