/**
 * The output of a command with its colours: the tail of a long one, and all of it on request.
 */

import { html, useMemo, useState } from "../../html.js";
import { MAX_CHARACTERS, terminalLines } from "../../present/terminal.js";
import { stripAnsi } from "../../present/text.js";
import { CopyButton } from "./code.js";
import { Icon } from "../icons.js";

/** Lines of the tail that is shown of a long output. */
const TAIL = 16;

/** An output with this many lines more than the tail is shown whole: a button for three lines helps nobody. */
const SPARE = 8;

/** Characters that are read for the tail: a line of a progress bar may be overwritten a thousand times. */
const TAIL_TEXT = 16_000;

/** Lines in one element: the browser lays out only those that are on the screen. */
const CHUNK = 200;

/**
 * The output of a command.
 *
 * @param {{text: string, whole?: boolean, onExpand?: () => void}} props
 *   `whole`: show all lines at once, as in the full-screen view; `onExpand`: opens that view
 */
export function TerminalOutput({ text, whole = false, onExpand }) {
  const [all, setAll] = useState(whole);
  const [wraps, setWraps] = useState(true);
  const { lines, isCut, hidden } = useMemo(() => read(text, all), [text, all]);
  if (!lines.length && !hidden) return html`<p class="term-empty">No output</p>`;
  return html`<div class="term" data-wraps=${wraps ? "" : undefined}>
    <div class="term-tools">
      <button type="button" class="t-action" aria-pressed=${wraps} aria-label="Wrap long lines" title="Wrap long lines" onClick=${() => setWraps(!wraps)}><${Icon} name="wrap" /></button>
      <${CopyButton} text=${() => stripAnsi(text)} label="Copy output" />
      ${onExpand && html`<button type="button" class="t-action" aria-label="Full screen" title="Full screen" onClick=${onExpand}><${Icon} name="expand" /></button>`}
    </div>
    ${hidden > 0 && !all && html`<button type="button" class="t-more" onClick=${() => setAll(true)}>Show all lines (${hidden.toLocaleString()}${isCut ? "+" : ""} more above)</button>`}
    ${all && isCut && html`<p class="term-empty">The beginning is left out here. Copy has all of it.</p>`}
    <pre class="term-lines" tabindex="0">${chunks(lines).map((chunk, place) => html`<div class="term-chunk" key=${place}>${chunk.map(line)}</div>`)}</pre>
  </div>`;
}

/**
 * Read the lines to show.
 *
 * @param {string} text
 * @param {boolean} all
 * @returns {{lines: any[][], isCut: boolean, hidden: number}}
 */
function read(text, all) {
  const most = all ? MAX_CHARACTERS : TAIL_TEXT;
  const isCut = text.length > most;
  const lines = terminalLines(isCut ? text.slice(text.indexOf("\n", text.length - most) + 1 || text.length - most) : text);
  while (lines.length && lines[lines.length - 1].every((/** @type {any} */ span) => !span.text.trim())) lines.pop();
  if (all || (!isCut && lines.length <= TAIL + SPARE)) return { lines, isCut, hidden: 0 };
  const before = isCut ? newlines(text) + 1 : lines.length;
  return { lines: lines.slice(-TAIL), isCut, hidden: Math.max(before - TAIL, 1) };
}

/** @param {string} text */
function newlines(text) {
  let found = 0;
  for (let place = text.indexOf("\n"); place >= 0; place = text.indexOf("\n", place + 1)) found += 1;
  return found;
}

/** @template T @param {T[]} lines @returns {T[][]} */
function chunks(lines) {
  const made = [];
  for (let place = 0; place < lines.length; place += CHUNK) made.push(lines.slice(place, place + CHUNK));
  return made;
}

/** @param {any[]} spans */
function line(spans) {
  return html`<div class="term-line">${spans.length ? spans.map(piece) : "\n"}</div>`;
}

/** @param {any} span */
function piece(span) {
  const classes = /** @type {string[]} */ ([]);
  /** @type {Record<string, string>} */
  const style = {};
  let { fg, bg } = span;
  if (span.inverse) [fg, bg] = [bg ?? "bg", fg ?? "fg"];
  paint(fg, "f", classes, style);
  paint(bg, "b", classes, style);
  for (const name of ["bold", "dim", "italic", "underline", "strike"]) if (span[name]) classes.push(`term-${name}`);
  if (!classes.length && !Object.keys(style).length) return span.text;
  return html`<span class=${classes.join(" ") || undefined} style=${style}>${span.text}</span>`;
}

/** @param {any} colour @param {"f" | "b"} side @param {string[]} classes @param {Record<string, string>} style */
function paint(colour, side, classes, style) {
  if (colour === null || colour === undefined) return;
  if (typeof colour === "number" || colour === "fg" || colour === "bg") classes.push(`term-${side}${colour}`);
  // Only what is a colour beyond doubt gets into a style.
  else if (/^#[0-9a-f]{6}$/i.test(colour)) {
    style[side === "f" ? "--true" : "--back"] = colour;
    classes.push(side === "f" ? "term-true" : "term-back");
  }
}
