/**
 * The prompts that this page has sent and that are no events yet.
 *
 * Each has a name of its own. After a connection was lost, the gateway says which names run or wait, and the events say which have begun:
 * a prompt that never arrived is sent again, once; one that has begun is never sent again.
 */

import { signal } from "../../vendor/signals.js";
import { RpcError } from "../net/connection.js";

/** @typedef {import("../types.js").Block} Block */
/** @typedef {import("../types.js").OutgoingPrompt} OutgoingPrompt */
/** @typedef {import("../types.js").QueuedPrompt} QueuedPrompt */

/**
 * A prompt on its way.
 *
 * @typedef {object} Sent
 * @property {string} name
 * @property {Block[]} blocks
 * @property {"sending" | "lost" | "queued" | "begun" | "failed" | "kept"} state "kept": the gateway was about to stop; it is sent to the next one
 * @property {string | null} error
 * @property {boolean} repeated whether it was sent a second time
 * @property {string | null} turn
 * @property {boolean} onWire whether it was put on a connection
 */

/** @returns {string} a name that no other prompt has */
export function newName() {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** @param {Block[]} blocks @returns {string} */
export function textOf(blocks) {
  return blocks.map((block) => (block.type === "text" ? block.text : `[${block.name ?? block.resource?.uri ?? block.type}]`)).join("");
}

/** What a refusal says to do if the gateway takes the prompt as soon as there is a connection again. */
const ON_RETURN = new Set(["reconnect", "retry"]);

/** @param {any} error @returns {boolean} whether the same prompt is taken after the next connection was made */
function passesWithConnection(error) {
  return error?.data?.recoverable === true && ON_RETURN.has(error.data.action);
}

/** The prompts of one session. */
export class OutgoingPrompts {
  /** @param {(sent: Sent) => Promise<any>} send sends `session/prompt`; resolves or rejects with its response */
  constructor(send) {
    this._send = send;
    /** @type {Map<string, Sent>} */
    this._sent = new Map();
    /** @type {import("../types.js").Signal<OutgoingPrompt[]>} */
    this.shown = signal(/** @type {OutgoingPrompt[]} */ ([]));
  }

  /** Whether something is on its way, or needs a person. @returns {boolean} */
  get isBusy() {
    return this._sent.size > 0;
  }

  /** Send a prompt. @param {Block[]} blocks @returns {string} its name */
  add(blocks) {
    /** @type {Sent} */
    const sent = { name: newName(), blocks, state: "sending", error: null, repeated: false, turn: null, onWire: false };
    this._sent.set(sent.name, sent);
    this._run(sent);
    return sent.name;
  }

  /** Send a prompt that failed or is kept again, as a new one. @param {string} name */
  retry(name) {
    const sent = this._sent.get(name);
    if (sent?.state !== "failed" && sent?.state !== "kept") return;
    this._sent.delete(name);
    this.add(sent.blocks);
  }

  /** Forget a prompt that failed or is kept. @param {string} name @returns {Block[] | null} what it was */
  discard(name) {
    const sent = this._sent.get(name);
    if (sent?.state !== "failed" && sent?.state !== "kept") return null;
    this._sent.delete(name);
    this._show();
    return sent.blocks;
  }

  /** Whether a prompt is one of this page. @param {string} name @returns {boolean} */
  has(name) {
    return this._sent.has(name);
  }

  /** Forget the prompts that wait in the gateway, or are about to: they are being cancelled. @returns {Block[][]} what they were */
  takeWaiting() {
    const waiting = [...this._sent.values()].filter((sent) => sent.onWire && (sent.state === "queued" || sent.state === "sending"));
    for (const sent of waiting) this._sent.delete(sent.name);
    this._show();
    return waiting.map((sent) => sent.blocks);
  }

  /** A turn has begun with this prompt. @param {any} params of `turn_started` */
  begun(params) {
    const sent = this._sent.get(params.prompt);
    if (sent === undefined) return;
    sent.state = "begun";
    sent.turn = params.turn ?? null;
  }

  /** The message of this prompt is an event now. @param {string} name */
  arrived(name) {
    if (this._sent.delete(name)) this._show();
  }

  /** A turn has ended, or a prompt was answered before it began. @param {any} params of `turn_ended` */
  ended(params) {
    const sent = this._sent.get(params.prompt);
    if (sent === undefined) return;
    if (sent.state !== "begun" && params.error) this._refused(sent, params.error);
    else this.arrived(sent.name);
  }

  /** Which prompts wait in the gateway: they are shown as such. @param {QueuedPrompt[]} queue */
  queued(queue) {
    const names = new Set(queue.map((waiting) => waiting.prompt));
    for (const sent of this._sent.values()) {
      if (names.has(sent.name) && (sent.state === "sending" || sent.state === "lost")) sent.state = "queued";
      else if (!names.has(sent.name) && sent.state === "queued") sent.state = "sending"; // it begins now, or its response comes
    }
    this._show();
  }

  /** The connection was lost: what became of these prompts is known when the session is attached again. */
  lost() {
    for (const sent of this._sent.values()) {
      if (sent.onWire && (sent.state === "sending" || sent.state === "queued")) sent.state = "lost";
    }
    this._show();
  }

  /**
   * All events are there again.
   *
   * @param {string[]} names of the prompts that run or wait in the gateway
   */
  caughtUp(names) {
    for (const sent of [...this._sent.values()]) {
      if (sent.state === "begun") {
        this._sent.delete(sent.name);
      } else if (sent.state === "kept") {
        this.retry(sent.name);
      } else if (sent.state === "lost" && names.includes(sent.name)) {
        sent.state = "sending"; // its events come
      } else if (sent.state === "lost" && sent.repeated) {
        this._fail(sent, "The connection was lost before the gateway got this message");
      } else if (sent.state === "lost") {
        sent.repeated = true;
        sent.onWire = false;
        sent.state = "sending";
        this._run(sent);
      }
    }
    this._show();
  }

  /** @param {Sent} sent */
  async _run(sent) {
    this._show();
    try {
      await this._send(sent);
      if (sent.state !== "lost") this.arrived(sent.name);
    } catch (error) {
      if (sent.state === "begun" || !this._sent.has(sent.name)) return; // the end of its turn is an event
      const isLost = error instanceof RpcError && error.kind === "lost";
      if (isLost) sent.state = "lost";
      else this._refused(sent, error);
    }
    this._show();
  }

  /** @param {Sent} sent @param {any} error */
  _refused(sent, error) {
    this._fail(sent, typeof error?.message === "string" ? error.message : String(error));
    if (passesWithConnection(error)) sent.state = "kept";
    this._show();
  }

  /** @param {Sent} sent @param {string} why */
  _fail(sent, why) {
    sent.state = "failed";
    sent.error = why;
    this._show();
  }

  _show() {
    const shown = [];
    for (const { name, blocks, state, error } of this._sent.values()) {
      if (state === "queued") continue; // shown among those that wait
      const isOver = state === "failed" || state === "kept";
      shown.push({ name, blocks, text: textOf(blocks), state: /** @type {"sending" | "failed" | "kept"} */ (isOver ? state : "sending"), error });
    }
    this.shown.value = shown;
  }
}
