/**
 * What a person has typed and not sent, per session, kept in this browser until it is sent.
 *
 * Text is always kept. Attachments are kept as long as all drafts together fit into `LIMIT`; a draft says whether all of it is kept.
 */

import { effect, signal } from "../../vendor/signals.js";

/** @typedef {import("../types.js").Draft} Draft */

/** Characters of all drafts together: browsers keep 5 MB for a page, and preferences need some. */
export const LIMIT = 2_000_000;

const PREFIX = "antiphon.draft.";

/** @returns {Draft} */
function emptyDraft() {
  return { text: "", attachments: [], kept: true };
}

/**
 * A draft with messages put back in front of what is there: their texts, each followed by a blank line, and what was sent along.
 *
 * @param {Draft} draft
 * @param {import("../types.js").Block[][]} messages
 * @returns {Draft}
 */
export function withMessages(draft, messages) {
  const texts = messages.map((blocks) => blocks.map(wordsOf).join("").trim());
  const attachments = messages.flat().filter((block) => block.type !== "text" && block.type !== "resource_link").map(attachmentOfBlock);
  return { ...draft, text: [...texts, draft.text].filter((text) => text.trim()).join("\n\n"), attachments: [...attachments, ...draft.attachments] };
}

/** What stood in the field for a block. @param {import("../types.js").Block} block @returns {string} */
function wordsOf(block) {
  if (block.type === "text") return String(block.text ?? "");
  return block.type === "resource_link" ? `@${block.name ?? block.uri}` : "";
}

/** @param {import("../types.js").Block} block @returns {import("../types.js").Attachment} */
function attachmentOfBlock(block) {
  const { mimeType = block.mimeType ?? "", uri = "", text = "" } = block.resource ?? {};
  const data = String(block.data ?? "");
  const name = nameIn(String(uri)) || (block.type === "image" ? "picture" : block.type === "audio" ? "sound" : "file");
  return { name, mimeType, size: data ? Math.floor((data.length * 3) / 4) : String(text).length, block };
}

/** @param {string} uri @returns {string} the name of the file that an address ends with */
function nameIn(uri) {
  const name = uri.split("/").at(-1) ?? "";
  try {
    return decodeURIComponent(name);
  } catch {
    return name; // another client may have written anything
  }
}

/** The drafts of this browser. */
export class Drafts {
  /** @param {Storage | undefined} [storage] */
  constructor(storage = globalThis.localStorage) {
    this._storage = storage;
    /** @type {Map<string, {draft: import("../types.js").Signal<Draft>, stop: () => void}>} */
    this._open = new Map();
  }

  /**
   * The draft of a session, stored whenever it is set. The key of a session that is not begun yet is "new".
   *
   * @param {string} key
   * @returns {import("../types.js").Signal<Draft>}
   */
  of(key) {
    const known = this._open.get(key);
    if (known !== undefined) return known.draft;
    /** @type {import("../types.js").Signal<Draft>} */
    const draft = signal(this._read(key));
    let first = true;
    const stop = effect(() => {
      const value = draft.value;
      if (first) first = false;
      else this._store(key, draft, value);
    });
    this._open.set(key, { draft, stop });
    return draft;
  }

  /** Stop following a draft; it stays stored. @param {string} key */
  release(key) {
    this._open.get(key)?.stop();
    this._open.delete(key);
  }

  /** Remove the draft of a session that was deleted. @param {string} key */
  remove(key) {
    this.release(key);
    this._storage?.removeItem(PREFIX + key);
  }

  /** Store all of them again, before the page goes. */
  save() {
    for (const [key, { draft }] of this._open) this._store(key, draft, draft.peek());
  }

  /** @param {string} key @returns {Draft} */
  _read(key) {
    try {
      const stored = JSON.parse(this._storage?.getItem(PREFIX + key) ?? "null");
      if (typeof stored?.text !== "string") return emptyDraft();
      return { text: stored.text, attachments: Array.isArray(stored.attachments) ? stored.attachments : [], kept: true };
    } catch {
      return emptyDraft();
    }
  }

  /** @param {string} key @param {import("../types.js").Signal<Draft>} draft @param {Draft} value */
  _store(key, draft, value) {
    const kept = this._write(key, value.text, value.attachments) || (this._write(key, value.text, []) && value.attachments.length === 0);
    if (kept !== value.kept) draft.value = { ...value, kept };
  }

  /** @param {string} key @param {string} text @param {any[]} attachments @returns {boolean} whether it was stored */
  _write(key, text, attachments) {
    if (this._storage === undefined) return false;
    if (!text && attachments.length === 0) {
      this._storage.removeItem(PREFIX + key);
      return true;
    }
    const written = JSON.stringify({ text, attachments });
    if (attachments.length > 0 && written.length + this._othersSize(key) > LIMIT) return false;
    try {
      this._storage.setItem(PREFIX + key, written);
      return true;
    } catch {
      return false; // the browser has no more room, or keeps nothing
    }
  }

  /** @param {string} key @returns {number} */
  _othersSize(key) {
    let size = 0;
    for (let index = 0; index < (this._storage?.length ?? 0); index++) {
      const name = this._storage?.key(index) ?? "";
      if (name.startsWith(PREFIX) && name !== PREFIX + key) size += this._storage?.getItem(name)?.length ?? 0;
    }
    return size;
  }
}
