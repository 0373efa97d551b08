/**
 * The entries of a transcript in chunks, which are drawn and forgotten as a whole.
 *
 * A chunk keeps its identity when entries are added at either end or dropped at the beginning, so what is drawn stays drawn.
 */

import { signal } from "../../html.js";

/** Entries in a chunk: what can be drawn in a few milliseconds. */
const CHUNK = 16;

/** The height of an entry before it was ever drawn. */
const GUESS = 96;

/** Some entries that stand together. */
export class Chunk {
  /** @param {any[]} entries @param {boolean} isDrawn */
  constructor(entries, isDrawn) {
    this.id = Chunk.next++;
    this.entries = entries;
    this.version = signal(0);
    this.isDrawn = signal(isDrawn);
    this.height = entries.length * GUESS;
    this.isLast = false;
    /** @type {Chunk | null} */
    this.previous = null;
  }

  touch() {
    this.version.value += 1;
  }
}
Chunk.next = 0;

/** The chunks of a transcript. Entries are added at both ends and dropped at the beginning, never moved. */
export class Chunks {
  constructor() {
    /** @type {Chunk[]} */
    this.list = [];
    this.count = 0;
  }

  /** Take the entries as they are now. Returns whether something changed before the first entry that was there. @param {any[]} entries */
  sync(entries) {
    const known = this.list;
    const first = known[0]?.entries[0];
    const last = known.at(-1)?.entries.at(-1);
    const isSame = known.length > 0 && entries[0] === first && entries[this.count - 1] === last;
    let isMoved = false;
    if (!isSame) isMoved = this.match(entries);
    const added = entries.slice(this.count);
    if (added.length) this.append(added);
    return isMoved;
  }

  /** Drop what is gone and put in front what is older. @param {any[]} entries */
  match(entries) {
    const there = new Set(entries);
    const wasEmpty = this.list.length === 0;
    for (const chunk of this.list) {
      const kept = chunk.entries.filter((entry) => there.has(entry));
      if (kept.length !== chunk.entries.length) {
        chunk.entries = kept;
        chunk.touch();
      }
    }
    this.list = this.list.filter((chunk) => chunk.entries.length > 0);
    const first = this.list[0]?.entries[0];
    const older = first ? entries.slice(0, entries.indexOf(first)) : [];
    const made = [];
    // The chunk that touches what is on the screen is drawn at once, the others when they come near.
    for (let end = older.length; end > 0; end -= CHUNK) made.unshift(new Chunk(older.slice(Math.max(end - CHUNK, 0), end), end === older.length));
    this.list = [...made, ...this.list];
    this.link();
    this.count = this.list.reduce((sum, chunk) => sum + chunk.entries.length, 0);
    return !wasEmpty;
  }

  /** @param {any[]} added */
  append(added) {
    let rest = added;
    const last = this.list.at(-1);
    if (last && last.entries.length < CHUNK) {
      const room = CHUNK - last.entries.length;
      last.entries = [...last.entries, ...rest.slice(0, room)];
      rest = rest.slice(room);
    }
    last?.touch();
    for (let place = 0; place < rest.length; place += CHUNK) this.list.push(new Chunk(rest.slice(place, place + CHUNK), place + CHUNK * 2 >= rest.length));
    this.link();
    this.count += added.length;
  }

  link() {
    this.list.forEach((chunk, place) => {
      chunk.previous = this.list[place - 1] ?? null;
      chunk.isLast = place === this.list.length - 1;
    });
  }

  /** The chunk of an entry. @param {any} entry */
  chunkOf(entry) {
    return this.list.find((chunk) => chunk.entries.includes(entry)) ?? null;
  }
}
