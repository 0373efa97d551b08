/**
 * A change of a file as a table: unified, or side by side where there is room. Long stretches without a change are folded.
 *
 * A line that was added or removed has its sign as text, so colour is never the only mark.
 */

import { html, useLayoutEffect, useMemo, useRef, useState } from "../../html.js";
import { diffRows, folded, sideBySide } from "../../present/diffs.js";
import { shownPath } from "../../present/paths.js";
import { exact, prose } from "../../present/text.js";
import { app } from "../../state/app.js";
import { CopyButton } from "./code.js";
import { Icon } from "../icons.js";

/** Rows above which a change is folded to its first rows. */
const LONG = 400;

/** Rows that are shown of a long change. */
const FIRST = 80;

/** Rows that "show more" adds: about what a browser lays out in a frame or two. */
const STEP = 1_000;

/** Pixels from which two columns are readable, and below which two numbers per line take too much of it. */
const WIDE = 660;
const NARROW = 440;

/** @typedef {import("../../present/diffs.js").DiffRow} DiffRow */

/**
 * A change of one file.
 *
 * @param {{path: string, old: string | null, new: string, cwd?: string, style?: "unified" | "split", head?: boolean}} props
 *   `style`: that of the preferences if it is left out; `head`: whether the file is named above the change
 */
export function Diff({ path, old, new: text, cwd = "", style, head = true }) {
  const { rows, added, removed, tooLong } = useMemo(() => diffRows(old ?? null, text ?? ""), [old, text]);
  const frame = useRef(/** @type {HTMLElement | null} */ (null));
  const width = useWidth(frame);
  const wide = width === "wide";
  const wanted = style ?? app.preferences.value?.diffStyle ?? "unified";
  // A new file has nothing to be beside.
  const split = wanted === "split" && wide && removed > 0 && added > 0;
  const name = exact(shownPath(path, cwd));
  const said = `${added} ${added === 1 ? "line" : "lines"} added, ${removed} removed`;
  return html`<figure class="diff" ref=${frame}>
    ${head &&
    html`<figcaption class="diff-head">
      <${Icon} name="file" />
      <span class="diff-path" title=${exact(path)}><bdi>${name}</bdi></span>
      ${old === null || old === undefined ? html`<span class="badge ok">new</span>` : null}
      <span class="diff-count"><span class="diff-added">+${added}</span> <span class="diff-removed">−${removed}</span></span>
      <span class="diff-tools">
        ${wide && removed > 0 && added > 0 && !style && html`<${StyleButton} split=${split} />`}
        <${CopyButton} text=${text ?? ""} label="Copy the new text" />
      </span>
    </figcaption>`}
    ${tooLong
      ? html`<p class="diff-note">This file is too long to be compared here: ${lineCount(old)} → ${lineCount(text)} lines.</p>`
      : rows.length === 0 || (!added && !removed)
        ? html`<p class="diff-note">${text ? "No line differs." : "The file is empty."}</p>`
        : html`<${Rows} rows=${rows} split=${split} narrow=${width === "narrow"} caption=${`Changes of ${name}: ${said}`} />`}
  </figure>`;
}

/** @param {{split: boolean}} props */
function StyleButton({ split }) {
  const label = split ? "Show as one column" : "Show side by side";
  return html`<button type="button" class="t-action" aria-label=${label} title=${label} onClick=${() => app.setPreference("diffStyle", split ? "unified" : "split")}>
    <${Icon} name=${split ? "rows" : "columns"} />
  </button>`;
}

/** How wide an element is, in words. @param {number} pixels @returns {"narrow" | "normal" | "wide"} */
function inWords(pixels) {
  return pixels >= WIDE ? "wide" : pixels && pixels < NARROW ? "narrow" : "normal";
}

/** How wide an element is, also after it has changed. @param {{current: HTMLElement | null}} frame */
function useWidth(frame) {
  const [width, setWidth] = useState(/** @type {"narrow" | "normal" | "wide"} */ ("normal"));
  useLayoutEffect(() => {
    const element = frame.current;
    if (!element) return undefined;
    setWidth(inWords(element.clientWidth));
    const observer = new ResizeObserver(([entry]) => setWidth(inWords(entry.contentRect.width)));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return width;
}

/**
 * The rows of a change, with folded stretches.
 *
 * @param {{rows: DiffRow[], split: boolean, narrow: boolean, caption: string}} props
 */
function Rows({ rows, split, narrow, caption }) {
  const [shown, setShown] = useState(/** @type {Set<number>} */ (new Set()));
  const parts = useMemo(() => folded(rows), [rows]);
  const isFolded = (/** @type {{type: string, at: number}} */ part) => part.type === "fold" && !shown.has(part.at);
  const total = parts.reduce((sum, part) => sum + (isFolded(part) ? 1 : part.rows.length), 0);
  const [limit, setLimit] = useState(total > LONG ? FIRST : Infinity);
  const columns = split ? SPLIT : narrow ? NARROW_COLUMNS : UNIFIED;
  const body = [];
  let left = limit;
  for (const part of parts) {
    if (left <= 0) break;
    if (isFolded(part)) {
      const label = `Show ${part.rows.length === 1 ? "1 line" : `${part.rows.length.toLocaleString()} lines`}`;
      body.push(html`<tbody key=${part.at}><tr class="diff-gap"><td colspan=${columns.length}><button type="button" onClick=${() => setShown(new Set(shown).add(part.at))}><${Icon} name="more" />${label}</button></td></tr></tbody>`);
      left -= 1;
    } else {
      const cut = part.rows.length > left ? part.rows.slice(0, left) : part.rows;
      body.push(html`<tbody key=${part.at}>${split ? sideBySide(cut).map(splitRow) : cut.map(narrow ? narrowRow : unifiedRow)}</tbody>`);
      left -= cut.length;
    }
  }
  return html`<div class="diff-scroll">
    <table class="diff-table" data-style=${split ? "split" : "unified"}>
      <caption class="visually-hidden">${caption}</caption>
      <colgroup>${columns.map(([, kind]) => html`<col class=${kind} />`)}</colgroup>
      <thead class="visually-hidden"><tr>${columns.map(([name]) => html`<th scope="col">${name}</th>`)}</tr></thead>
      ${body}
    </table>
    ${total > limit && html`<button type="button" class="t-more" onClick=${() => setLimit(limit + STEP)}>Show ${Math.min(total - limit, STEP).toLocaleString()} more of ${total.toLocaleString()} lines</button>`}
  </div>`;
}

/** Names and classes of the columns of each style. */
const SPLIT = [["Old line", "diff-no"], ["Old text", ""], ["New line", "diff-no"], ["New text", ""]];
const UNIFIED = [["Old line", "diff-no"], ["New line", "diff-no"], ["Change", "diff-sign"], ["Text", ""]];
const NARROW_COLUMNS = [["Line", "diff-no"], ["Change", "diff-sign"], ["Text", ""]];

const SIGNS = { same: " ", add: "+", del: "−" };

/** @param {DiffRow} row */
function unifiedRow(row) {
  return html`<tr class="diff-${row.type}">
    <td class="diff-no">${row.old}</td><td class="diff-no">${row.new}</td>
    <td class="diff-sign">${SIGNS[row.type]}</td><td class="diff-text">${marked(row)}</td>
  </tr>`;
}

/** @param {DiffRow} row */
function narrowRow(row) {
  return html`<tr class="diff-${row.type}"><td class="diff-no">${row.new ?? row.old}</td><td class="diff-sign">${SIGNS[row.type]}</td><td class="diff-text">${marked(row)}</td></tr>`;
}

/** @param {{left: DiffRow | null, right: DiffRow | null}} pair */
function splitRow({ left, right }) {
  return html`<tr>${side(left, "old")}${side(right, "new")}</tr>`;
}

/** @param {DiffRow | null} row @param {"old" | "new"} which */
function side(row, which) {
  if (!row) return html`<td class="diff-no diff-none"></td><td class="diff-none"></td>`;
  return html`<td class="diff-no diff-${row.type}">${row[which]}</td>
    <td class="diff-text diff-${row.type}"><span class="diff-sign">${SIGNS[row.type]}</span>${marked(row)}</td>`;
}

/** The text of a line with the words that differ marked. @param {DiffRow} row */
function marked(row) {
  const { text, marks } = row;
  if (!marks?.length) return prose(text) || "\n";
  const children = [];
  let place = 0;
  for (const [from, to] of marks) {
    if (from > place) children.push(prose(text.slice(place, from)));
    children.push(html`<span class="diff-mark">${prose(text.slice(from, to))}</span>`);
    place = to;
  }
  if (place < text.length) children.push(prose(text.slice(place)));
  return children;
}

/** @param {string | null | undefined} text */
function lineCount(text) {
  return (text ? text.split("\n").length : 0).toLocaleString();
}
