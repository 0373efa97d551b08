/**
 * Messages of people and agents, thoughts, notices, compactions of the context, and the ends of turns.
 */

import { html, useId, useState } from "../../html.js";
import { durationInWords, exact, oneLine, prose } from "../../present/text.js";
import { CopyButton } from "./code.js";
import { Content, contentText } from "./content.js";
import { Icon } from "../icons.js";
import { Coded } from "../wording.js";

/** @typedef {import("./transcript.js").View} View */

/** Characters of a prompt above which it is folded: a pasted log must not hide the answer. */
const LONG_PROMPT = 2_400;

/** Lines of a prompt above which it is folded. */
const LONG_LINES = 24;

/** Names of engines as people know them. */
const ENGINES = { claude: "Claude", codex: "Codex", demo: "Demo", acp: "ACP" };

/** The name of an engine. @param {string} engine */
export function engineName(engine) {
  return Object.hasOwn(ENGINES, engine) ? ENGINES[/** @type {keyof typeof ENGINES} */ (engine)] : exact(engine);
}

// Made once: each `toLocaleString` would make its own, which takes a hundred times as long as to use one. The format is that of wording.js.
const CLOCK = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const DAY = new Intl.DateTimeFormat("en-GB", { month: "short", day: "numeric" });
const WHOLE = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });

/**
 * When something happened: the time of day, and the date in its title.
 *
 * @param {{time: number | null}} props
 */
export function Time({ time }) {
  if (typeof time !== "number") return null;
  const date = new Date(time * 1000);
  if (Number.isNaN(date.getTime())) return null;
  const isToday = date.toDateString() === new Date().toDateString();
  const shown = isToday ? CLOCK.format(date) : `${DAY.format(date)}, ${CLOCK.format(date)}`;
  return html`<time class="t-time" datetime=${date.toISOString()} title=${WHOLE.format(date)}>${shown}</time>`;
}

/**
 * A message of a person.
 *
 * @param {{entry: any, view: View}} props
 */
export function UserMessage({ entry, view }) {
  const version = entry.version.value;
  const [all, setAll] = useState(false);
  const text = entry.text;
  const isLong = text.length > LONG_PROMPT || newlines(text) > LONG_LINES;
  const mine = !entry.from || entry.from === view.me;
  const name = mine ? "You" : exact(entry.from);
  return html`<article class="user" data-version=${version}>
    <header class="user-head">
      <span class="t-actions">
        <${Time} time=${entry.time} />
        ${view.onTakeUp && html`<button type="button" class="t-action" aria-label="Edit in a fork" title="Edit this message in a fork of the session" onClick=${() => view.onTakeUp?.(entry)}><${Icon} name="fork" /></button>`}
        <${CopyButton} text=${() => entry.blocks.map(contentText).join("\n")} label="Copy message" />
      </span>
      <h2 class="t-who">${name}</h2>
    </header>
    <div class="user-body" data-folded=${isLong && !all ? "" : undefined}>
      ${entry.blocks.map((/** @type {any} */ block, /** @type {number} */ place) => html`<${Content} key=${place} block=${block} cwd=${view.cwd} plain />`)}
    </div>
    ${isLong && html`<button type="button" class="t-more" aria-expanded=${all} onClick=${() => setAll(!all)}>${all ? "Show less" : "Show all"}</button>`}
  </article>`;
}

/**
 * A message of the agent.
 *
 * @param {{entry: any, view: View, open: boolean, label: boolean}} props
 *   `open`: more of it may follow; `label`: whether the engine is named
 */
export function AgentMessage({ entry, view, open, label }) {
  const version = entry.version.value;
  const { blocks } = entry;
  const last = blocks.length - 1;
  return html`<article class="agent" data-version=${version} aria-busy=${open ? "true" : undefined}>
    ${label && html`<${EngineLabel} engine=${entry.engine} view=${view} />`}
    <div class="agent-body">
      ${blocks.map((/** @type {any} */ block, /** @type {number} */ place) => html`<${Content} key=${place} block=${block} cwd=${view.cwd} open=${open && place === last} />`)}
    </div>
    ${!open && html`<footer class="agent-foot"><${Time} time=${entry.time} /><${CopyButton} text=${() => entry.blocks.map(contentText).join("\n")} label="Copy message" /></footer>`}
  </article>`;
}

/**
 * The name of the engine that answers, where there are several.
 *
 * @param {{engine: string, view: View}} props
 */
export function EngineLabel({ engine, view }) {
  return html`<h3 class="engine" data-engine=${view.engineNumber(engine)}><span class="engine-dot" aria-hidden="true"></span>${engineName(engine)}</h3>`;
}

/**
 * What the agent thought: folded, its first line is the summary.
 *
 * @param {{entry: any, view: View, open: boolean, label: boolean}} props
 */
export function Thought({ entry, view, open, label }) {
  const version = entry.version.value;
  const [isOpen, setOpen] = useState(false);
  const id = useId();
  return html`<div class="thought" data-version=${version} data-live=${open ? "" : undefined}>
    ${label && html`<${EngineLabel} engine=${entry.engine} view=${view} />`}
    <button type="button" class="thought-head" aria-expanded=${isOpen} aria-controls=${id} onClick=${() => setOpen(!isOpen)}>
      <${Icon} name="brain" />
      <span class="thought-word">${open ? "Thinking" : "Thought"}</span>
      ${!isOpen && html`<span class="thought-line">${firstLine(entry.text)}</span>`}
      <${Icon} name="chevron-right" class="call-chevron" />
    </button>
    ${isOpen &&
    html`<div class="thought-body" id=${id}>
      ${entry.blocks.map((/** @type {any} */ block, /** @type {number} */ place) => html`<${Content} key=${place} block=${block} cwd=${view.cwd} open=${open} />`)}
    </div>`}
  </div>`;
}

/** The first words of a text, without marks. @param {string} text */
function firstLine(text) {
  const start = text.trimStart().slice(0, 400);
  const line = start.split("\n", 1)[0].replace(/^[#>\s-]+|\*\*|__|`/g, "");
  return oneLine(line.slice(0, 240));
}

/** The icon and the class of each severity. */
const SEVERITIES = { info: "info", warning: "alert", error: "cross" };

/**
 * Something the user should know that belongs to no message.
 *
 * @param {{entry: any}} props
 */
export function Notice({ entry }) {
  const version = entry.version.value;
  const severity = /** @type {keyof typeof SEVERITIES} */ (Object.hasOwn(SEVERITIES, entry.severity) ? entry.severity : "info");
  return html`<aside class="notice" data-severity=${severity} data-version=${version}>
    <${Icon} name=${SEVERITIES[severity]} />
    <div><span class="visually-hidden">${severity}: </span><span class="notice-title"><${Coded} text=${prose(entry.title || "")} /></span>
      ${entry.description && html`<p class="t-plain"><${Coded} text=${prose(entry.description)} /></p>`}</div>
  </aside>`;
}

/** How the state of a compaction is told. */
const COMPACTIONS = {
  in_progress: "Shortening the context …",
  completed: "The context was shortened",
  failed: "The context could not be shortened",
  cancelled: "Shortening the context was cancelled",
};

/**
 * The context was shortened; the summary is what the agent knows from here on.
 *
 * @param {{entry: any, view: View}} props
 */
export function Compaction({ entry, view }) {
  const version = entry.version.value;
  const [isOpen, setOpen] = useState(false);
  const id = useId();
  const words = Object.hasOwn(COMPACTIONS, entry.status) ? COMPACTIONS[/** @type {keyof typeof COMPACTIONS} */ (entry.status)] : exact(`Context: ${entry.status}`);
  const error = typeof entry.error === "string" ? prose(entry.error) : "";
  const hasText = entry.blocks.length > 0;
  return html`<div class="compaction" data-status=${entry.status} data-version=${version}>
    <div class="rule"><span class="rule-text">
      <${Icon} name=${entry.status === "in_progress" ? "spinner" : "archive"} class=${entry.status === "in_progress" ? "spin" : ""} />
      ${words}${error && html`: ${error}`}
      ${hasText && html`<button type="button" class="link-button" aria-expanded=${isOpen} aria-controls=${id} onClick=${() => setOpen(!isOpen)}>${isOpen ? "Hide summary" : "Show summary"}</button>`}
    </span></div>
    ${isOpen && hasText && html`<div class="compaction-body" id=${id}>${entry.blocks.map((/** @type {any} */ block, /** @type {number} */ place) => html`<${Content} key=${place} block=${block} cwd=${view.cwd} />`)}</div>`}
  </div>`;
}

/** What a reason to stop means for the reader; `tone`: how it looks. */
const REASONS = {
  end_turn: { tone: "ok", icon: "check", words: "Done" },
  max_tokens: { tone: "warn", icon: "alert", words: "Stopped: the answer reached the model's limit of tokens" },
  max_turn_requests: { tone: "warn", icon: "alert", words: "Stopped: the agent reached its limit of steps in one turn" },
  refusal: { tone: "warn", icon: "shield", words: "The agent refused to go on" },
  cancelled: { tone: "stopped", icon: "stop", words: "Stopped" },
};

/**
 * The end of a turn.
 *
 * @param {{entry: any, view: View}} props
 */
export function TurnEnd({ entry, view }) {
  const version = entry.version.value;
  const { error, stopReason } = entry;
  const took = entry.duration >= 0.5 ? durationInWords(entry.duration) : "";
  if (error || entry.interrupted) return html`<${FailedEnd} entry=${entry} took=${took} view=${view} />`;
  const known = Object.hasOwn(REASONS, stopReason ?? "") ? REASONS[/** @type {keyof typeof REASONS} */ (stopReason)] : { tone: "ok", icon: "check", words: stopReason ? `Ended: ${exact(stopReason)}` : "Ended" };
  const tokens = Number(entry.usage?.totalTokens);
  return html`<div class="end" data-tone=${known.tone} data-version=${version}>
    <div class="rule"><span class="rule-text"><${Icon} name=${known.icon} />${known.words}${took && html`<span class="end-detail">${took}</span>`}${tokens > 0 && html`<span class="end-detail">${tokens.toLocaleString()} tokens</span>`}</span><${Time} time=${entry.time} /></div>
  </div>`;
}

/**
 * Put a message into the field, in front of what is there, to edit and send it.
 *
 * @param {any} session
 * @param {import("../../types.js").Block[]} blocks
 */
export function toField(session, blocks) {
  session.putBack([blocks]);
  document.getElementById("composer")?.focus();
}

/** The prompt that a turn began with, if it is here. @param {any} session @param {any} end @returns {any} */
function promptOf(session, end) {
  const { entries } = session.transcript;
  const isPrompt = (/** @type {any} */ entry) => entry.type === "message" && entry.speaker === "user";
  const named = end.turn ? entries.findLast((/** @type {any} */ entry) => isPrompt(entry) && entry.turn === end.turn) : undefined;
  return named ?? entries.slice(0, entries.indexOf(end)).findLast(isPrompt) ?? null;
}

/** Puts the prompt of a turn that did not end well into the field. @param {{entry: any, view: View}} props */
function SendAgain({ entry, view }) {
  if (!view.session.canPrompt?.value) return null;
  const put = () => {
    const prompt = promptOf(view.session, entry);
    if (prompt) toField(view.session, prompt.blocks);
  };
  return html`<p class="end-actions"><button type="button" class="button small" title="Put the message into the field" onClick=${put}>Send again</button></p>`;
}

/** Why a turn was interrupted, in a sentence. @param {any} error */
function interruption(error) {
  const [, cause] = /^The turn was interrupted: (.+?)\. It was not sent again\.$/s.exec(String(error?.message ?? "")) ?? [];
  const words = prose(cause ?? "the agent or the gateway stopped");
  return `${words.charAt(0).toUpperCase()}${words.slice(1)}; the message was not sent again.`;
}

/** @param {{entry: any, took: string, view: View}} props */
function FailedEnd({ entry, took, view }) {
  const { error } = entry;
  if (entry.interrupted) {
    return html`<div class="end" data-tone="interrupted" data-version=${entry.version.value}>
      <div class="end-box" role="note">
        <${Icon} name="pause" />
        <div>
          <p class="end-title">Interrupted${took && html` <span class="end-detail">after ${took}</span>`}</p>
          <p class="t-plain"><${Coded} text=${interruption(error)} /></p>
          <${SendAgain} entry=${entry} view=${view} />
        </div>
      </div>
    </div>`;
  }
  const data = error?.data;
  const message = error?.message ? prose(String(error.message)) : "";
  const details = [typeof data === "string" ? data : data?.details, data?.message].filter((text) => typeof text === "string" && text && text !== error?.message);
  const hint = [data?.hint, data?.action].find((text) => typeof text === "string" && text);
  return html`<div class="end" data-tone="bad" data-version=${entry.version.value}>
    <div class="end-box" role="note">
      <${Icon} name="alert" />
      <div>
        <p class="end-title">Failed${took && html` <span class="end-detail">after ${took}</span>`}</p>
        ${message && html`<p class="t-plain">${message}</p>`}
        ${details.map((text) => html`<p class="t-plain end-more">${prose(text)}</p>`)}
        ${hint && html`<p class="t-plain"><strong>What to do:</strong> ${prose(hint)}</p>`}
        ${error?.code !== undefined && html`<p class="end-code">Error ${exact(String(error.code))}</p>`}
      </div>
    </div>
  </div>`;
}

/** @param {string} text */
function newlines(text) {
  let found = 0;
  for (let place = text.indexOf("\n"); place >= 0 && found <= LONG_LINES; place = text.indexOf("\n", place + 1)) found += 1;
  return found;
}
