/**
 * What a screen shows: the events of a session, folded. The fold itself, update by update, is in `fold.js`.
 *
 * Here are the events of the gateway beside updates (turns, requests, engines), older pages that are put in front, and the limit
 * that drops the oldest entries of a long session.
 */

import { CHUNKS, Fold, antiphonMeta } from "./fold.js";
import { Call } from "./calls.js";
import { Compaction, End, Message, Thought } from "./entries.js";

export { Call } from "./calls.js";
export { Compaction, End, Message, Notice, Thought } from "./entries.js";
export { antiphonMeta, fold } from "./fold.js";

/** @typedef {import("./entries.js").Entry} Entry */
/** @typedef {Message | Thought} TextEntry */

/** Calls that are known by their ids though their entries were dropped, and that are not finished. */
const CALLS_KEPT = 1000;

/**
 * The number and time of the event that a message is; number 0 if it is no event.
 *
 * @param {any} message
 * @returns {{number: number, time: number | null}}
 */
export function placeOf(message) {
  const meta = antiphonMeta(message.params ?? message.result);
  const number = meta.number ?? message.params?.number;
  const time = meta.time ?? message.params?.time;
  return { number: Number.isInteger(number) ? number : 0, time: typeof time === "number" ? time : null };
}

/** The transcript of one session. */
export class Transcript extends Fold {
  /** @param {number} [after] the number after which its events begin, -1 if that is not known */
  constructor(after = -1) {
    super();
    /** The plan with which the last turn began: one of an earlier turn, unless it has changed since. @type {any} */
    this.earlierPlan = null;
    /** Tokens of the last turn, if the agent reports them. @type {any} */
    this.tokens = null;
    /** The number of the last event that was applied, -1 if that is not known. */
    this._last = after;
    /** The permission requests that wait for an answer: the id of the call, and which options reject it. @type {Map<string, {call: string, rejecting: Set<string>}>} */
    this._asked = new Map();
  }

  /**
   * Take the state that was set by events before those that are here, as the gateway knows it.
   *
   * @param {{commands?: any, plan?: any, usage?: any, title?: any}} state
   */
  takeState({ commands, plan, usage, title }) {
    if (Array.isArray(commands)) this._note("available_commands_update", { availableCommands: commands });
    if (Array.isArray(plan)) this._note("plan", { entries: plan });
    if (typeof usage === "object" && usage !== null) this._note("usage_update", usage);
    if (typeof title === "string" && title) this._note("session_info_update", { title });
  }

  /**
   * Take an event as the gateway sends it. Messages that are no events of a transcript change nothing.
   *
   * @param {any} message
   * @returns {Entry | null} the entry that it changed
   */
  applyFrame(message) {
    const { number, time } = placeOf(message);
    // A merged piece has the number of its last event. It stands for all since the one before, so it begins at the next number.
    if (number > 0) this._number = this._last >= 0 ? this._last + 1 : number;
    this._last = number || this._last;
    this._time = time ?? this._time;
    const params = message.params ?? {};
    switch (message.method) {
      case "session/update":
        return this._applyFromEngine(params.update);
      case "session/request_permission":
        this._noteAsked(antiphonMeta(params).request, params);
        return this.asked(params.toolCall);
      case "_antiphon/session/requested":
        if (params.method !== "session/request_permission") return null;
        this._noteAsked(params.request, params.params);
        return this.asked(params.params?.toolCall);
      case "_antiphon/session/resolved":
        return this._answered(params);
      case "_antiphon/session/turn_started":
        this.turnStarted(params);
        return null;
      case "_antiphon/session/turn_ended":
        return this.turnEnded(params);
      default:
        return null;
    }
  }

  /** @param {any} request its id @param {any} params */
  _noteAsked(request, params) {
    const call = params?.toolCall?.toolCallId;
    if (typeof request !== "string" || typeof call !== "string") return;
    const options = Array.isArray(params.options) ? params.options : [];
    const rejecting = options.filter((/** @type {any} */ option) => String(option?.kind).startsWith("reject"));
    this._asked.set(request, { call, rejecting: new Set(rejecting.map((/** @type {any} */ option) => option.optionId)) });
  }

  /** @param {any} params of `_antiphon/session/resolved` @returns {Call | null} the call whose request was answered */
  _answered(params) {
    const asked = this._asked.get(params.request);
    this._asked.delete(params.request);
    const outcome = params.result?.outcome;
    const call = asked && outcome?.outcome === "selected" ? this.call(asked.call) : null;
    if (!asked || !call) return null;
    call.answered(asked.rejecting.has(outcome.optionId), this._time);
    this._changed.add(call);
    return call;
  }

  /** @param {any} update @returns {Entry | null} */
  _applyFromEngine(update) {
    const { engine, label } = antiphonMeta(update);
    const name = typeof engine === "string" && engine ? engine : null;
    if (name !== null) {
      if (this._engine !== null && this._engine !== name) this._closeCurrent(); // engines do not continue each other's messages
      this._engine = name;
    }
    if (label === true) {
      this._closeCurrent(); // the piece is only the engine's name, which the entry has
      return null;
    }
    const entry = this.apply(update);
    if (entry !== null && name !== null) entry.engine ??= name;
    return entry;
  }

  /** Take the beginning of a turn. @param {any} params */
  turnStarted(params) {
    this.earlierPlan = this.plan;
    this.turn = {
      id: String(params.turn ?? ""),
      from: String(params.from ?? ""),
      started: this._time,
      prompt: params.prompt ?? null,
    };
  }

  /**
   * Take the end of a turn. What comes next continues no message, unless its id is the same.
   *
   * @param {any} params
   * @returns {End | null} null for a prompt that never began while another turn runs
   */
  turnEnded(params) {
    const turn = this.turn;
    const other = turn !== null && typeof params.turn === "string" && params.turn !== turn.id;
    if (other && !params.error) return null;
    const end = new End(this._place(), params, other ? null : turn);
    if (end.usage !== null) this.tokens = end.usage;
    this._closeCurrent();
    this._echo = null;
    if (!other) this.turn = null;
    this._enter(end);
    this._changed.add(end);
    if (this.dropped) this._forgetDroppedCalls();
    return end;
  }

  /** Let views draw what has changed since the last time. */
  publish() {
    for (const entry of this._changed) entry.touch();
    this._changed.clear();
    if (this._restructured) {
      this._restructured = false;
      this.structure.value = this.structure.peek() + 1;
    }
  }

  // Older pages, and the limit.

  /**
   * Put older events in front. A call, message or compaction that was cut between the two pages becomes one entry, in the
   * place where it began.
   *
   * @param {any[]} frames the events, oldest first, each as the gateway sends it
   * @param {number} [after] the number after which they begin, -1 if that is not known
   */
  prepend(frames, after = -1) {
    const older = new Transcript(after);
    for (const frame of frames) older.applyFrame(frame);
    const gone = new Set([...this._joinCalls(older), ...this._joinTexts(older), ...this._joinCompactions(older)]);
    this._joinEnds(older);
    for (const entry of older.entries.slice().reverse()) entry.key = --this._lowestKey;
    const kept = this._without(gone, older._current);
    if (older._engine !== null) this._engine ??= older._engine;
    this.entries = [...older.entries, ...kept];
    if (kept.length === 0) this._current ??= older._current;
    this._takeOlderState(older);
    this._restructured = true;
  }

  /**
   * The entries without some that are now part of older ones. Text that only they kept apart, or the border of the page, is one.
   *
   * @param {Set<Entry>} gone
   * @param {TextEntry | null} open the text that the older page ends with
   * @returns {Entry[]}
   */
  _without(gone, open) {
    /** @type {Entry[]} */
    const kept = [];
    let wasGone = open !== null;
    for (const entry of this.entries) {
      const last = kept.at(-1) ?? open;
      if (gone.has(entry)) {
        wasGone = true;
      } else if (wasGone && isTextOf(entry, last) && entry.messageId === null && !entry.continued) {
        this._continue(/** @type {TextEntry} */ (last), entry);
      } else {
        kept.push(entry);
        wasGone = false;
      }
    }
    return kept;
  }

  /** @param {Transcript} older @returns {Entry[]} entries that are now part of older ones */
  _joinCalls(older) {
    const gone = [];
    for (const [id, call] of this._firstCalls) {
      const began = older._calls.get(id);
      if (began === undefined || call.log === null) continue;
      const rest = began.takeLog(call.log);
      this._changed.add(began);
      if (rest.length > 0) {
        call.restart(rest); // announced after the older one had finished: another call
        this._changed.add(call);
        continue;
      }
      gone.push(call);
      began.ended ??= call.ended;
      began.engine ??= call.engine;
      if (this._calls.get(id) === call) this._calls.set(id, began);
    }
    for (const [id, call] of older._calls) if (!this._calls.has(id)) this._calls.set(id, call);
    for (const [id, call] of older._firstCalls) this._firstCalls.set(id, call);
    return gone;
  }

  /** @param {Transcript} older @returns {Entry[]} */
  _joinTexts(older) {
    const gone = [];
    for (const [name, began] of older._byMessageId) {
      const entry = this._byMessageId.get(name);
      if (entry?.continued) {
        const first = this.entries.find((each) => isTextOf(each, entry) && each.messageId === entry.messageId);
        if (first !== undefined) /** @type {TextEntry} */ (first).continued = true; // too long to be one entry
        continue;
      }
      if (entry !== undefined) {
        this._continue(began, entry);
        gone.push(entry);
      }
      this._byMessageId.set(name, began);
    }
    return gone;
  }

  /** @param {TextEntry} began @param {TextEntry} rest */
  _continue(began, rest) {
    for (const block of rest.blocks) began.add(block);
    began.engine ??= rest.engine;
    began.openTo = null;
    if (this._current === rest) {
      began.openTo = rest.openTo;
      this._current = began;
    }
    this._changed.add(began);
  }

  /** @param {Transcript} older @returns {Entry[]} */
  _joinCompactions(older) {
    const gone = [];
    for (const [id, began] of older._compactions) {
      const entry = this._compactions.get(id);
      if (entry !== undefined) {
        began.continueWith(entry);
        gone.push(entry);
        this._changed.add(began);
      }
      this._compactions.set(id, began);
    }
    return gone;
  }

  /** @param {Transcript} older */
  _joinEnds(older) {
    const turn = older.turn;
    if (turn === null) return;
    const end = this.entries.find((entry) => entry instanceof End);
    if (end instanceof End && end.turn === turn.id) {
      end.began(turn);
      this._changed.add(end);
    } else if (end === undefined && this.turn === null) {
      this.turn = turn;
    }
  }

  /** @param {Transcript} older */
  _takeOlderState(older) {
    this.unshown += older.unshown;
    for (const kind of older._known) {
      if (this._known.has(kind)) continue;
      this._known.add(kind);
      if (kind === "plan") this.plan = older.plan;
      else if (kind === "usage_update") this.usage = older.usage;
      else if (kind === "current_mode_update") this.mode = older.mode;
      else if (kind === "current_model_update") this.model = older.model;
      else if (kind === "available_commands_update") this.commands = older.commands;
      else if (kind === "config_option_update") this.configOptions = older.configOptions;
      else if (kind === "session_info_update") this.title = older.title;
    }
    for (const [id, plan] of older.plans) if (!this.plans.has(id) && !this._known.has("plan_removed")) this.plans.set(id, plan);
  }

  /**
   * Drop the oldest entries where there are too many, whole turns of them if that is possible. A call that runs is still known by its id.
   *
   * @param {number} limit entries
   * @param {number} [characters]
   * @returns {number} the number of the first event that is kept, 0 if nothing was dropped
   */
  trim(limit, characters = Infinity) {
    let kept = this.entries.length;
    if (kept > limit) kept = Math.ceil(limit / 2);
    if (this.added > characters / 8) kept = Math.min(kept, this._within(characters));
    if (kept >= this.entries.length) return 0;
    const last = this.entries.length - kept;
    let cut = last;
    while (cut > 0 && !isPrompt(this.entries[cut])) cut--;
    if (cut === 0) cut = last; // one turn, however long it is
    if (this.entries[cut].number === 0) return 0; // it could not be loaded again
    for (const entry of this.entries.splice(0, cut)) this._drop(entry);
    this.dropped += cut;
    this._restructured = true;
    return this.entries[0].number;
  }

  /** @param {number} characters @returns {number} how many of the last entries are within this size; all if all are, else within half of it */
  _within(characters) {
    this.added = 0;
    const total = this.entries.reduce((sum, entry) => sum + entry.weight, 0);
    if (total <= characters) return this.entries.length;
    let kept = 0;
    for (let sum = 0; kept < this.entries.length && sum < characters / 2; kept++) sum += this.entries[this.entries.length - 1 - kept].weight;
    return Math.max(kept - 1, 1);
  }

  /** @param {Entry} entry */
  _drop(entry) {
    entry.isDropped = true;
    this._changed.delete(entry);
    if (entry instanceof Compaction) this._compactions.delete(entry.id);
    else if (entry instanceof Call) this._dropCall(entry);
    else if (entry instanceof Message || entry instanceof Thought) {
      for (const kind of CHUNKS) {
        const name = `${kind} ${entry.messageId}`;
        if (this._byMessageId.get(name) === entry) this._byMessageId.delete(name);
      }
    }
  }

  /** @param {Call} call */
  _dropCall(call) {
    if (this._firstCalls.get(call.id) === call) this._firstCalls.delete(call.id);
    call.log = null;
    if (call.finished || this._calls.size > CALLS_KEPT) {
      this._forget(call);
    } else {
      call.log = []; // for the page that brings its beginning back
      this._firstCalls.set(call.id, call);
    }
  }

  _forgetDroppedCalls() {
    for (const call of this._calls.values()) if (call.isDropped) this._forget(call);
  }
}

/** @param {Entry} entry @returns {boolean} */
function isPrompt(entry) {
  return entry instanceof Message && entry.speaker === "user" && !entry.continued;
}

/**
 * @param {Entry} entry
 * @param {Entry | null} before
 * @returns {entry is TextEntry} whether it is text of the same kind and engine as the entry before
 */
function isTextOf(entry, before) {
  const isText = entry instanceof Message || entry instanceof Thought;
  return isText && (before instanceof Message || before instanceof Thought) && before.kind === entry.kind && (before.engine ?? entry.engine) === entry.engine;
}
