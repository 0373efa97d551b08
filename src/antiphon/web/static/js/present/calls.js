/**
 * Tool calls as a person is shown them. The twin of `call_line`, `written_lines` and `changes_of` in
 * `src/antiphon/transcript/presentation.py`.
 */

import { shownPath } from "./paths.js";
import { stripAnsi } from "./text.js";

/** @typedef {import("../state/calls.js").Call} Call */
/** @typedef {import("../types.js").ChangedFile} ChangedFile */

/** @type {Record<string, string>} */
const MARKS = { pending: "·", in_progress: "▸", completed: "✓", failed: "✗" };

/** Places of a call that are shown. */
const PLACES = 3;

/**
 * How a call stands, in one word for a style.
 *
 * @param {Call} call
 * @returns {"pending" | "running" | "done" | "failed" | "denied" | "rejected"}
 */
export function callState(call) {
  switch (call.status) {
    case "completed":
      return "done";
    case "failed":
      return call.rejected ? "rejected" : call.denied ? "denied" : "failed";
    case "in_progress":
      return "running";
    default:
      return "pending";
  }
}

/**
 * The places that a call works on and that its title does not name: the first few, and how many more there are.
 *
 * @param {Pick<Call, "label" | "locations">} call
 * @param {string} cwd
 * @returns {{places: string[], more: number}}
 */
export function callPlaces(call, cwd) {
  const places = call.locations.slice(0, PLACES).map((place) => shownPath(place.path, cwd));
  return { places: places.filter((place) => !call.label.includes(place)), more: Math.max(call.locations.length - PLACES, 0) };
}

/**
 * A tool call on one line. A failed call is marked by a word too.
 *
 * @param {Call} call
 * @param {string} cwd
 * @param {string} [failed]
 * @returns {string}
 */
export function callLine(call, cwd, failed = "failed") {
  const end = call.status === "failed" ? ` (${call.denied ? "denied" : failed})` : "";
  const { places, more } = callPlaces(call, cwd);
  const where = places.join(", ");
  return `${MARKS[call.status]} ${call.label}${where ? `  ${where}${more > 0 ? ` +${more}` : ""}` : ""}${end}`;
}

/**
 * What a command wrote as a terminal shows it in the end: without colours and without overwritten text.
 *
 * @param {string} output
 * @returns {string[]}
 */
export function writtenLines(output) {
  const whole = stripAnsi(output.replaceAll("\r\n", "\n")).replace(/^\n+|\n+$/g, "");
  if (whole.trim() === "") return [];
  return whole.split("\n").map((line) => line.replace(/\r+$/, "").split("\r").at(-1) ?? "");
}

/**
 * The changes among what a call shows.
 *
 * @param {any[]} content
 * @returns {Array<{path: string, oldText: string | null, newText: string}>}
 */
export function diffsIn(content) {
  return content
    .filter((item) => item.type === "diff" && typeof item.path === "string" && typeof item.newText === "string")
    .map((item) => ({ path: item.path, oldText: typeof item.oldText === "string" ? item.oldText : null, newText: item.newText }));
}

/**
 * Every change of a session, file by file. Changes that follow on each other become one.
 *
 * Some agents send whole files and some only the lines they changed; so changes that do not fit together stay apart.
 *
 * @param {Iterable<import("../state/entries.js").Entry>} entries
 * @returns {ChangedFile[]}
 */
export function changesOf(entries) {
  /** @type {Map<string, ChangedFile[]>} */
  const byPath = new Map();
  for (const entry of entries) {
    if (entry.type !== "call" || entry.status !== "completed") continue;
    for (const { path, oldText, newText } of diffsIn(entry.content)) {
      const known = byPath.get(path) ?? [];
      byPath.set(path, known);
      const last = known.at(-1);
      if (last !== undefined && last.new === oldText) last.new = newText;
      else if (last === undefined || last.new !== newText || last.old !== oldText) known.push({ path, old: oldText, new: newText });
    }
  }
  return [...byPath.values()].flat().filter((change) => change.old !== change.new);
}

/**
 * The words that a call shows, without diffs: its text content, else what its raw output has as text.
 *
 * @param {Call} call
 * @returns {string}
 */
export function callText(call) {
  const texts = call.content.filter((item) => item.type === "content" && item.content?.type === "text").map((item) => item.content.text);
  if (texts.length > 0) return texts.join("\n");
  return typeof call.rawOutput === "string" ? call.rawOutput : "";
}
