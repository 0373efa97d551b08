/**
 * Changes of files as rows to draw: every line of both files, which were added and removed, and the words that changed in a line.
 *
 * A view draws `rows` one below the other, or `sideBySide(rows)` in two columns, and folds what did not change with `folded`.
 */

import { diffLines } from "../../vendor/diff/line.js";
import { diffWordsWithSpace } from "../../vendor/diff/word.js";
import { linesOf } from "../state/entries.js";

/** Lines of both files that are compared. Comparing longer files takes longer than a reader would look at the result. */
export const MAX_COMPARED = 20_000;
/** Milliseconds that one comparison may take: a page has to answer. */
const TIMEOUT = 400;
/** Characters of a line in which words are compared. */
const MAX_MARKED = 2_000;
/** Changed lines that stand opposite each other and are compared word by word; a larger block is another text, not an edit. */
const MAX_PAIRS = 200;
/** The share of a line that has to be the same for its words to be marked: else nearly all of it would be. */
const SIMILAR = 0.35;
/** Lines around a change that are shown. */
export const CONTEXT = 3;

/**
 * A line of a diff. `old` and `new` are its numbers in the two files, `marks` the parts that changed as [from, to).
 *
 * @typedef {{type: "same" | "add" | "del", old: number | null, new: number | null, text: string, marks: Array<[number, number]> | null}} DiffRow
 */

/** @typedef {{rows: DiffRow[], added: number, removed: number, tooLong: boolean, isNew: boolean}} DiffRows */

/** Rows that a reader may want to see, folded away. @typedef {{type: "fold", rows: DiffRow[], at: number}} Fold */

/**
 * Compare two files.
 *
 * @param {string | null} old null for a new file
 * @param {string} fresh
 * @returns {DiffRows} `tooLong`: they were not compared, and `added` and `removed` are all of their lines
 */
export function diffRows(old, fresh) {
  const [before, after] = [linesOf(old ?? ""), linesOf(fresh)];
  const none = { rows: [], added: after.length, removed: before.length, tooLong: true, isNew: old === null };
  if (before.length + after.length > MAX_COMPARED) return none;
  const parts = compare(before, after);
  if (parts === undefined) return none;
  /** @type {DiffRow[]} */
  const rows = [];
  const place = { old: 1, new: 1 };
  let [added, removed] = [0, 0];
  for (let index = 0; index < parts.length; index++) {
    const part = parts[index];
    const next = parts[index + 1];
    if (part.removed && next?.added) {
      rows.push(...changedRows(part.lines, next.lines, place));
      removed += part.lines.length;
      added += next.lines.length;
      index++;
    } else {
      const type = part.added ? "add" : part.removed ? "del" : "same";
      for (const text of part.lines) rows.push(row(type, text, place));
      if (part.added) added += part.lines.length;
      if (part.removed) removed += part.lines.length;
    }
  }
  return { rows, added, removed, tooLong: false, isNew: old === null };
}

/**
 * The head of a diff: the path, whether the file is new, and how many lines were added and removed.
 *
 * @param {string} shownPath
 * @param {DiffRows} diff
 * @returns {string}
 */
export function diffHead(shownPath, diff) {
  if (diff.tooLong) return `${shownPath}: ${diff.removed} → ${diff.added} lines`;
  return `${shownPath}${diff.isNew ? " (new)" : ""}  +${diff.added} -${diff.removed}`;
}

/**
 * The lines of a diff as text: `+`, `-` and ` ` before each, hunks with their places.
 *
 * @param {DiffRows} diff
 * @param {number} [context] lines around a change
 * @returns {string[]}
 */
export function diffText(diff, context = 2) {
  const lines = [];
  for (const hunk of hunksOf(diff.rows, context)) {
    lines.push(hunk.head);
    for (const { type, text } of hunk.rows) lines.push(`${type === "add" ? "+" : type === "del" ? "-" : " "}${text}`);
  }
  return lines;
}

/**
 * The changed parts of a diff with some lines around them.
 *
 * @param {DiffRow[]} rows
 * @param {number} [context]
 * @returns {Array<{head: string, rows: DiffRow[]}>} `head` as in a patch: `@@ -1,4 +1,5 @@`
 */
export function hunksOf(rows, context = CONTEXT) {
  return folded(rows, context, 0)
    .filter((part) => part.type === "rows")
    .map((part) => ({ head: hunkHead(part.rows, rows, part.at), rows: part.rows }));
}

/**
 * The rows with what did not change folded away, except for some lines around each change.
 *
 * @param {DiffRow[]} rows
 * @param {number} [context]
 * @param {number} [least] a fold hides more than this many rows
 * @returns {Array<{type: "rows", rows: DiffRow[], at: number} | Fold>} `at`: the index of its first row
 */
export function folded(rows, context = CONTEXT, least = 1) {
  /** @type {Array<{type: "rows", rows: DiffRow[], at: number} | Fold>} */
  const parts = [];
  const put = (/** @type {"rows" | "fold"} */ type, /** @type {number} */ from, /** @type {number} */ to) => {
    if (from >= to) return;
    const last = parts.at(-1);
    if (last?.type === "rows" && type === "rows") last.rows.push(...rows.slice(from, to));
    else parts.push({ type, rows: rows.slice(from, to), at: from });
  };
  let index = 0;
  while (index < rows.length) {
    let end = index;
    if (rows[index].type !== "same") {
      while (end < rows.length && rows[end].type !== "same") end++;
      put("rows", index, end);
    } else {
      while (end < rows.length && rows[end].type === "same") end++;
      const from = index === 0 ? index : index + context;
      const to = end === rows.length ? end : end - context;
      if (to - from <= least) {
        put("rows", index, end);
      } else {
        put("rows", index, from);
        put("fold", from, to);
        put("rows", to, end);
      }
    }
    index = end;
  }
  return parts;
}

/**
 * The rows in two columns: what was removed beside what came for it.
 *
 * @param {DiffRow[]} rows
 * @returns {Array<{left: DiffRow | null, right: DiffRow | null}>}
 */
export function sideBySide(rows) {
  const pairs = [];
  for (let index = 0; index < rows.length; ) {
    if (rows[index].type === "same") {
      pairs.push({ left: rows[index], right: rows[index] });
      index++;
      continue;
    }
    const [removed, added] = [/** @type {DiffRow[]} */ ([]), /** @type {DiffRow[]} */ ([])];
    while (index < rows.length && rows[index].type === "del") removed.push(rows[index++]);
    while (index < rows.length && rows[index].type === "add") added.push(rows[index++]);
    for (let at = 0; at < Math.max(removed.length, added.length); at++) {
      pairs.push({ left: removed[at] ?? null, right: added[at] ?? null });
    }
  }
  return pairs;
}

// How they are made.

/** @param {string[]} before @param {string[]} after @returns {Array<{added: boolean, removed: boolean, lines: string[]}> | undefined} */
function compare(before, after) {
  // Every line gets an end of the same kind: what ends a line is not what a reader compares.
  const [one, other] = [before, after].map((lines) => lines.map((line) => `${line}\n`).join(""));
  const parts = diffLines(one, other, { timeout: TIMEOUT });
  return parts?.map((/** @type {any} */ part) => ({
    added: part.added === true,
    removed: part.removed === true,
    lines: part.value.split("\n").slice(0, -1),
  }));
}

/** @param {"same" | "add" | "del"} type @param {string} text @param {{old: number, new: number}} place @returns {DiffRow} */
function row(type, text, place) {
  const old = type === "add" ? null : place.old++;
  const fresh = type === "del" ? null : place.new++;
  return { type, old, new: fresh, text, marks: null };
}

/** @param {string[]} removed @param {string[]} added @param {{old: number, new: number}} place @returns {DiffRow[]} */
function changedRows(removed, added, place) {
  const gone = removed.map((text) => row("del", text, place));
  const come = added.map((text) => row("add", text, place));
  const pairs = Math.min(gone.length, come.length);
  for (let index = 0; index < pairs && pairs <= MAX_PAIRS; index++) {
    const marks = wordMarks(gone[index].text, come[index].text);
    if (marks !== null) [gone[index].marks, come[index].marks] = marks;
  }
  return [...gone, ...come];
}

/**
 * The parts of two lines that differ.
 *
 * @param {string} old
 * @param {string} fresh
 * @returns {[Array<[number, number]>, Array<[number, number]>] | null} null if the lines have too little in common
 */
export function wordMarks(old, fresh) {
  if (old.length + fresh.length > MAX_MARKED) return null;
  const parts = diffWordsWithSpace(old, fresh, { timeout: 50 });
  if (parts === undefined) return null;
  /** @type {[Array<[number, number]>, Array<[number, number]>]} */
  const marks = [[], []];
  let [left, right, same] = [0, 0, 0];
  for (const { value, added, removed } of parts) {
    if (removed) mark(marks[0], left, (left += value.length));
    else if (added) mark(marks[1], right, (right += value.length));
    else {
      same += value.trim().length;
      left += value.length;
      right += value.length;
    }
  }
  const longer = Math.max(old.trim().length, fresh.trim().length);
  return longer > 0 && same / longer >= SIMILAR ? marks : null;
}

/** @param {Array<[number, number]>} marks @param {number} from @param {number} to */
function mark(marks, from, to) {
  const last = marks.at(-1);
  if (last !== undefined && last[1] === from) last[1] = to;
  else marks.push([from, to]);
}

/** @param {DiffRow[]} hunk @param {DiffRow[]} rows @param {number} at @returns {string} */
function hunkHead(hunk, rows, at) {
  const side = (/** @type {"old" | "new"} */ name) => {
    const count = hunk.filter((each) => each[name] !== null).length;
    const first = hunk.find((each) => each[name] !== null)?.[name];
    let before = 0;
    for (let index = at - 1; index >= 0 && before === 0; index--) before = rows[index][name] ?? 0;
    const start = first ?? before; // of an empty side: the line after which it stands
    return count === 1 ? `${start}` : `${start},${count}`;
  };
  return `@@ -${side("old")} +${side("new")} @@`;
}
