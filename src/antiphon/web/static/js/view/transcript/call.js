/**
 * A tool call as a card: what it does, how far it is, and what came of it.
 *
 * A card is unfolded while the call runs and when it failed, and folded once it is done and long; a choice of the reader wins over both.
 */

import { html, useEffect, useId, useMemo, useRef, useState } from "../../html.js";
import { callState } from "../../present/calls.js";
import { diffRows } from "../../present/diffs.js";
import { languageOf, shownPath } from "../../present/paths.js";
import { terminalText } from "../../present/terminal.js";
import { durationInWords, exact } from "../../present/text.js";
import { app } from "../../state/app.js";
import { CodeBlock, CopyButton } from "./code.js";
import { Content, Json, contentText } from "./content.js";
import { Diff } from "./diff.js";
import { Icon } from "../icons.js";
import { Markdown } from "./markdown.js";
import { TerminalOutput } from "./terminal.js";

/** The icon of each kind of call. */
const ICONS = {
  read: "file", edit: "edit", delete: "trash", move: "move", search: "search", execute: "terminal", think: "brain", fetch: "globe",
  switch_mode: "settings", other: "tool",
};

/** The icon and the word of each state. The word of a state that needs no attention is for screen readers alone. */
const STATES = {
  pending: { icon: "circle", word: "waiting", isShown: false },
  asking: { icon: "bell", word: "waiting for you", isShown: true },
  running: { icon: "spinner", word: "running", isShown: false },
  done: { icon: "check", word: "done", isShown: false },
  failed: { icon: "cross", word: "failed", isShown: true },
  denied: { icon: "shield", word: "denied", isShown: true },
  rejected: { icon: "cross", word: "rejected", isShown: true },
  stopped: { icon: "stop", word: "not finished", isShown: true },
};

/** @typedef {keyof typeof STATES} State */

/** Kinds whose result is for the model more than for the reader: folded as soon as they are done. */
const QUIET = new Set(["read", "search", "fetch", "think"]);

/** Lines of a result that make it long. */
const LONG = 14;

/** Lines of a change that make it long. */
const LONG_CHANGE = 40;

/** Lines of a change that are compared for the numbers in the head, which a folded card has too. */
const COUNTED = 800;

/** Locations that are named in the head. */
const PLACES = 2;

/**
 * A tool call.
 *
 * @param {{entry: any, view: import("./transcript.js").View}} props
 */
export function CallCard({ entry, view }) {
  const version = entry.version.value;
  const { cwd } = view;
  const isTarget = view.target.value === entry.id;
  const state = stateOf(entry, view.session);
  const [choice, setChoice] = useState(/** @type {boolean | null} */ (null));
  const [full, setFull] = useState(false);
  const id = useId();
  const facts = useMemo(() => contentFacts(entry), [entry, version]);
  const hasBody = facts.hasBody;
  const isOpen = hasBody && (choice ?? (isTarget || opensByItself(entry, state, facts)));
  useEffect(() => {
    if (isTarget) setChoice(true);
  }, [isTarget]);
  const head = html`
    <span class="call-icon"><${Icon} name=${/** @type {Record<string, string>} */ (ICONS)[entry.kind] ?? "tool"} /></span>
    <span class="call-title" title=${exact(entry.label)}>${titleParts(entry.label)}</span>
    <${Places} entry=${entry} cwd=${cwd} />
    ${facts.added + facts.removed > 0 && html`<span class="diff-count"><span class="diff-added">+${facts.added}</span> <span class="diff-removed">−${facts.removed}</span></span>`}
    <${Clock} entry=${entry} state=${state} />
    <${StateMark} state=${state} />
    ${hasBody && html`<${Icon} name="chevron-right" class="call-chevron" />`}`;
  return html`<section class="call" data-state=${state} data-open=${isOpen ? "" : undefined} data-target=${isTarget ? "" : undefined} aria-label=${`${STATES[state].word}: ${exact(entry.label)}`}>
    <div class="call-head">
      ${hasBody
        ? html`<button type="button" class="call-toggle" aria-expanded=${isOpen} aria-controls=${id} onClick=${() => setChoice(!isOpen)}>${head}</button>`
        : html`<div class="call-toggle">${head}</div>`}
      <a class="t-action call-link" href=${view.address(entry.id)} aria-label="Link to this call" title="Link to this call"><${Icon} name="link" /></a>
    </div>
    ${isOpen && html`<div class="call-body" id=${id}><${Body} entry=${entry} cwd=${cwd} version=${version} onExpand=${() => setFull(true)} /></div>`}
    ${full && html`<${FullScreen} title=${exact(entry.label)} text=${() => outputText(entry)} onClose=${() => setFull(false)}><${Body} entry=${entry} cwd=${cwd} version=${version} whole /><//>`}
  </section>`;
}

/**
 * The state to show. A call that was not finished when its turn ended will never be.
 *
 * @param {any} entry
 * @param {any} session
 * @returns {State}
 */
function stateOf(entry, session) {
  const state = /** @type {State} */ (callState(entry));
  if (state !== "pending" && state !== "running") return state;
  const requests = session.requests?.value ?? [];
  if (requests.some((/** @type {any} */ request) => request.params?.toolCall?.toolCallId === entry.id)) return "asking";
  return session.turn?.value || session.status?.value === "attaching" ? state : entry.rejected ? "rejected" : "stopped";
}

/**
 * What the content of a call is, without drawing it.
 *
 * @param {any} entry
 */
function contentFacts(entry) {
  let lines = 0;
  let changed = 0;
  let added = 0;
  let removed = 0;
  for (const item of entry.content || []) {
    if (item?.type === "diff") {
      const lines = lineCount(item.oldText) + lineCount(item.newText);
      const rows = lines <= COUNTED ? diffRows(item.oldText ?? null, String(item.newText ?? "")) : null;
      added += rows?.added ?? 0;
      removed += rows?.removed ?? 0;
      changed += rows ? rows.added + rows.removed : lines;
    } else if (item?.type === "content") lines += item.content?.type === "text" ? lineCount(item.content.text) : LONG;
    else lines += lineCount(entry.terminals?.get?.(item?.terminalId));
  }
  const hasRaw = isSomething(entry.rawInput) || isSomething(entry.rawOutput);
  const hasBody = (entry.content || []).length > 0 || hasRaw || (entry.locations || []).length > PLACES || entry.terminals?.size > 0;
  return { hasBody, hasContent: (entry.content || []).length > 0 || entry.terminals?.size > 0, lines, changed, added, removed };
}

/** @param {any} entry @param {State} state @param {ReturnType<typeof contentFacts>} facts */
function opensByItself(entry, state, facts) {
  if (!facts.hasContent) return state === "failed" && isSomething(entry.rawOutput);
  if (state !== "done") return true;
  return !QUIET.has(entry.kind) && facts.lines <= LONG && facts.changed <= LONG_CHANGE;
}

/** @param {any} value */
function isSomething(value) {
  if (value === undefined || value === null || value === "") return false;
  return typeof value !== "object" || Object.keys(value).length > 0;
}

/** @param {any} text */
function lineCount(text) {
  if (typeof text !== "string" || !text) return 0;
  let lines = 1;
  for (let place = text.indexOf("\n"); place >= 0 && place < text.length - 1 && lines < 1000; place = text.indexOf("\n", place + 1)) lines += 1;
  return lines;
}

/** A title with what stands between backticks as code. @param {string} title */
function titleParts(title) {
  const parts = exact(title).split("`");
  if (parts.length % 2 === 0) return parts.join("`");
  return parts.map((part, place) => (place % 2 ? html`<code>${part}</code>` : part));
}

/** @param {{entry: any, cwd: string}} props */
function Places({ entry, cwd }) {
  const label = String(entry.label);
  const named = (entry.locations || []).map((/** @type {any} */ place) => {
    const path = shownPath(String(place.path ?? ""), cwd);
    return { path, line: Number.isInteger(place.line) ? `:${place.line}` : "" };
  });
  const others = named.filter((/** @type {any} */ place) => !label.includes(place.path));
  if (!others.length) return null;
  const more = others.length > PLACES ? ` +${others.length - PLACES}` : "";
  return html`<span class="call-places">${others.slice(0, PLACES).map((/** @type {any} */ place) => html`<bdi>${exact(place.path + place.line)}</bdi> `)}${more}</span>`;
}

/** @param {{state: State}} props */
function StateMark({ state }) {
  const { icon, word, isShown } = STATES[state];
  return html`<span class="call-state"><${Icon} name=${icon} class=${state === "running" ? "spin" : ""} /><span class=${isShown ? "" : "visually-hidden"}>${word}</span></span>`;
}

/** How long the call has taken; it ticks while it runs. @param {{entry: any, state: State}} props */
function Clock({ entry, state }) {
  const { started, ended } = entry;
  const isRunning = state === "running" && typeof started === "number" && !ended;
  const [now, setNow] = useState(0);
  useEffect(() => {
    if (!isRunning) return undefined;
    const tick = () => setNow(app.now());
    tick();
    const timer = setInterval(tick, 1000);
    return () => clearInterval(timer);
  }, [isRunning]);
  if (typeof started !== "number") return null;
  const taken = ended ? ended - started : isRunning && now ? now - started : 0;
  if (taken < (ended ? 0.1 : 1)) return null;
  return html`<span class="call-time">${durationInWords(ended ? taken : Math.floor(taken))}</span>`;
}

/** What came of the call. @param {{entry: any, cwd: string, version: number, whole?: boolean, onExpand?: () => void}} props */
function Body({ entry, cwd, whole = false, onExpand }) {
  const content = entry.content || [];
  const command = commandOf(entry);
  const shownTerminals = new Set(content.filter((/** @type {any} */ item) => item?.type === "terminal").map((/** @type {any} */ item) => item.terminalId));
  const otherTerminals = [...(entry.terminals?.entries?.() ?? [])].filter(([id]) => !shownTerminals.has(id));
  const result = content.length || otherTerminals.length ? null : rawText(entry.rawOutput);
  return html`
    ${command && html`<div class="call-command"><span aria-hidden="true">$</span><code>${exact(command)}</code><${CopyButton} text=${command} label="Copy command" /></div>`}
    ${content.map((/** @type {any} */ item, /** @type {number} */ place) => html`<${Item} key=${place} item=${item} entry=${entry} cwd=${cwd} whole=${whole} onExpand=${onExpand} />`)}
    ${otherTerminals.map(([id, text]) => html`<${TerminalOutput} key=${id} text=${text} whole=${whole} onExpand=${onExpand} />`)}
    ${result && html`<${TerminalOutput} text=${result} whole=${whole} onExpand=${onExpand} />`}
    ${(entry.locations || []).length > PLACES && html`<ul class="call-list">${entry.locations.slice(0, 200).map((/** @type {any} */ place) => html`<li><bdi>${exact(shownPath(String(place.path ?? ""), cwd))}${Number.isInteger(place.line) ? `:${place.line}` : ""}</bdi></li>`)}</ul>`}
    ${(isSomething(entry.rawInput) || isSomething(entry.rawOutput)) &&
    html`<div class="call-raw">
      ${isSomething(entry.rawInput) && html`<${Json} name="Input" value=${entry.rawInput} />`}
      ${isSomething(entry.rawOutput) && html`<${Json} name="Output" value=${entry.rawOutput} />`}
    </div>`}`;
}

/** @param {{item: any, entry: any, cwd: string, whole: boolean, onExpand?: () => void}} props */
function Item({ item, entry, cwd, whole, onExpand }) {
  if (item?.type === "diff") return html`<${Diff} path=${String(item.path ?? "")} old=${item.oldText ?? null} new=${String(item.newText ?? "")} cwd=${cwd} />`;
  if (item?.type === "terminal") {
    const text = entry.terminals?.get?.(item.terminalId);
    return text === undefined ? html`<p class="term-empty">The output of this terminal is with the client that started it.</p>` : html`<${TerminalOutput} text=${text} whole=${whole} onExpand=${onExpand} />`;
  }
  if (item?.type !== "content") return html`<${Json} name="Content of an unknown kind" value=${item} />`;
  if (item.content?.type !== "text") return html`<${Content} block=${item.content} cwd=${cwd} />`;
  return html`<${ResultText} text=${String(item.content.text ?? "")} entry=${entry} whole=${whole} onExpand=${onExpand} />`;
}

/** Text that a call has made: output of a command, lines of a file, or words. @param {{text: string, entry: any, whole: boolean, onExpand?: () => void}} props */
function ResultText({ text, entry, whole, onExpand }) {
  const fenced = unfenced(text);
  const kind = entry.kind;
  if (kind === "execute" || kind === "search" || kind === "fetch" || text.includes("\u001b[")) {
    return html`<${TerminalOutput} text=${fenced?.text ?? text} whole=${whole} onExpand=${onExpand} />`;
  }
  if (kind === "read") return html`<${CodeBlock} text=${fenced?.text ?? text} name=${fenced?.name || languageOf(String(entry.locations?.[0]?.path ?? "")) || ""} />`;
  return html`<${Markdown} text=${text} />`;
}

/** The text inside a fence that is around all of it, as some agents send output. @param {string} text */
function unfenced(text) {
  const found = /^\s*(`{3,}|~{3,})([^\n`]*)\n([\s\S]*?)\n?\1\s*$/.exec(text);
  return found ? { name: found[2].trim(), text: found[3] } : null;
}

/** The command of a call, if its title does not show all of it. @param {any} entry */
function commandOf(entry) {
  const command = entry.kind === "execute" ? entry.rawInput?.command : null;
  const text = Array.isArray(command) ? command.join(" ") : command;
  return typeof text === "string" && text && !String(entry.label).includes(text) ? text : null;
}

/** What a raw output says, if it is text. @param {any} output @returns {string} */
function rawText(output) {
  if (typeof output === "string") return output;
  if (typeof output !== "object" || output === null) return "";
  const parts = ["stdout", "stderr", "output", "text", "error", "message"].map((name) => output[name]).filter((part) => typeof part === "string" && part);
  return parts.join("\n");
}

/** All of what a call has made, as text. @param {any} entry */
function outputText(entry) {
  const parts = (entry.content || []).map((/** @type {any} */ item) => {
    if (item?.type === "diff") return String(item.newText ?? "");
    if (item?.type === "terminal") return terminalText(entry.terminals?.get?.(item.terminalId) ?? "").join("\n");
    const text = contentText(item?.content);
    return terminalText(unfenced(text)?.text ?? text).join("\n");
  });
  return parts.join("\n") || rawText(entry.rawOutput);
}

/**
 * A view over the whole window, for what is long.
 *
 * @param {{title: string, text: string | (() => string), onClose: () => void, children?: any}} props
 */
export function FullScreen({ title, text, onClose, children }) {
  const dialog = useRef(/** @type {HTMLDialogElement | null} */ (null));
  useEffect(() => {
    const shown = dialog.current;
    shown?.showModal();
    return () => shown?.close();
  }, []);
  return html`<dialog class="t-full" ref=${dialog} aria-label=${title} onClose=${onClose} onClick=${(/** @type {Event} */ event) => event.stopPropagation()}>
    <div class="dialog-head"><h2 class="truncate">${title}</h2><${CopyButton} text=${text} label="Copy output" /><button type="button" class="icon-button small" aria-label="Close" onClick=${onClose}><${Icon} name="cross" /></button></div>
    <div class="t-full-body">${children}</div>
  </dialog>`;
}
