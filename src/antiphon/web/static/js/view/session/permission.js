/**
 * A permission request: who wants to do what and where, what the policy says, and the options, the safest first.
 *
 * Rules that keep a person from allowing what they did not mean to:
 * - What is shown as a fact comes from the gateway (`_meta.antiphon`), with characters that would not be seen made visible. What the
 *   agent says about it stands below, as its words.
 * - The focus is on the safest option. Options work after `ARMED` milliseconds without a key: a key that was meant for the field
 *   behind the dialog decides nothing.
 * - An option is called what it does: a name of the agent that does not say so stands behind the words for its kind.
 * - Esc, a click beside the dialog and its closing button put it aside. None of them answers.
 */

import { html, useEffect, useId, useMemo, useRef, useState } from "../../html.js";
import { exactLine } from "../../present/text.js";
import { announce } from "../announcer.js";
import { Dialog, problemOf, toast } from "../dialog.js";
import { Diff } from "../transcript/diff.js";
import { Icon } from "../icons.js";
import { Exact, agentTitle, nameOf, shortPath } from "../wording.js";

/** Milliseconds for which a request is only shown. */
export const ARMED = 500;

/** @typedef {{optionId: string, name: string, kind: string}} Option */

const SAFEST = ["reject_once", "reject_always", "allow_once", "allow_always"];
const KEYS = { allow_once: "y", reject_once: "n" };
const SCOPES = {
  session: ["Session", "for this session"],
  project: ["Project", "for this project, in every session of yours"],
  user: ["Everywhere", "for all of your projects"],
};

/** What an action is called, by its kind. */
const VERBS = {
  execute: ["run a command", "terminal"], edit: ["change a file", "edit"], delete: ["delete a file", "trash"], move: ["move a file", "move"],
  read: ["read a file", "file"], search: ["search", "search"], fetch: ["fetch from the network", "globe"], think: ["think", "brain"],
  switch_mode: ["switch its mode", "refresh"],
};

/** What an option does, by its kind. */
const MEANINGS = { allow_once: "Allow once", allow_always: "Always allow", reject_once: "Reject", reject_always: "Always reject" };
const ALLOWING = /^(?:always )?(?:allow|yes|approve|accept)\b/i;
const REJECTING = /^(?:always )?(?:reject|no|deny|decline|never|cancel)\b/i;
const REFUSAL = /\b(?:reject|no|not|deny|decline|never|cancel|nothing)\b/i;
const LASTING = /\b(?:always|never|all|any|session|project|again|remember)\b/i;

/**
 * The options of a request that can be shown, with names and kinds that are text: an agent may send anything.
 *
 * @param {any} options
 * @returns {Option[]}
 */
export function readOptions(options) {
  return (Array.isArray(options) ? options : [])
    .filter((option) => typeof option?.optionId === "string")
    .map(({ optionId, name, kind }) => ({ optionId, name: typeof name === "string" ? name : "", kind: typeof kind === "string" ? kind : "" }));
}

/**
 * What stands on the button of an option. The agent names it, the kind says what it does: a name that may mean something else,
 * such as "Reject" for what allows, is only quoted.
 *
 * @param {Option} option
 * @returns {string}
 */
export function labelOf({ name, kind }) {
  const shown = exactLine(name);
  const meaning = Object.hasOwn(MEANINGS, kind) ? MEANINGS[/** @type {keyof typeof MEANINGS} */ (kind)] : "Unknown option";
  const isClear = kind.startsWith("allow")
    ? ALLOWING.test(shown) && (!REFUSAL.test(shown) || /\b(?:not|don.t) ask\b/i.test(shown)) && (kind !== "allow_always" || LASTING.test(shown))
    : kind.startsWith("reject") && REJECTING.test(shown);
  if (isClear && Object.hasOwn(MEANINGS, kind)) return shown;
  return shown ? `${meaning}: “${shown.length > 80 ? `${shown.slice(0, 80)}…` : shown}”` : meaning;
}

/** The options, those that allow least first. @param {Option[]} options @returns {Option[]} */
export function safestFirst(options) {
  const rank = (/** @type {Option} */ option) => {
    const at = SAFEST.indexOf(option.kind);
    return at < 0 ? SAFEST.length : at; // a kind from tomorrow may allow anything
  };
  return [...options].sort((a, b) => rank(a) - rank(b));
}

/** What changes, as the request shows it. @param {any} call @returns {{path: string, old: string | null, new: string}[]} */
export function diffsOf(call) {
  return listOf(call?.content)
    .filter((/** @type {any} */ part) => part?.type === "diff")
    .map((/** @type {any} */ part) => ({ path: String(part.path ?? ""), old: part.oldText == null ? null : String(part.oldText), new: String(part.newText ?? "") }));
}

/** @param {any} value @returns {any[]} */
const listOf = (value) => (Array.isArray(value) ? value : []);

/** The answer that selects an option; with a scope its rules are remembered. @param {Option} option @param {string} [scope] */
export function answerOf(option, scope) {
  const meta = scope && option.kind.endsWith("_always") ? { _meta: { antiphon: { remember: { scope } } } } : {};
  return { outcome: { outcome: "selected", optionId: option.optionId }, ...meta };
}

/**
 * True once nothing was pressed for `ARMED` milliseconds since the request was shown.
 *
 * @param {string} id
 */
export function useArmed(id) {
  const [armed, setArmed] = useState(false);
  useEffect(() => {
    setArmed(false);
    let timer = setTimeout(arm, ARMED);
    function arm() {
      setArmed(true);
      document.removeEventListener("keydown", again, true);
    }
    // Somebody is typing: the request waits until they have seen it.
    function again(/** @type {KeyboardEvent} */ event) {
      // What is typed into a field of the dialog was meant for it.
      if (event.target instanceof Element && event.target.closest("dialog :is(textarea, select, input:not([type=checkbox], [type=radio]))")) return;
      clearTimeout(timer);
      timer = setTimeout(arm, ARMED);
    }
    document.addEventListener("keydown", again, true);
    return () => {
      clearTimeout(timer);
      document.removeEventListener("keydown", again, true);
    };
  }, [id]);
  return armed;
}

/**
 * @param {{session: any, request: import("../../types.js").PendingRequest, pager: any, onAside: () => void}} props
 */
export function PermissionDialog({ session, request, pager, onAside }) {
  const { params } = request;
  const facts = params?._meta?.antiphon ?? {};
  const call = params?.toolCall ?? {};
  const options = useMemo(() => safestFirst(readOptions(params?.options)), [request.id]);
  const armed = useArmed(request.id);
  const [scope, setScope] = useState(listOf(facts.scopes)[0] ?? "");
  const answered = useRef(false);
  const described = useId();
  const diffs = diffsOf(call);
  const kind = facts.action?.kind ?? call.kind;
  const [verb, icon] = Object.hasOwn(VERBS, kind ?? "") ? VERBS[/** @type {keyof typeof VERBS} */ (kind)] : ["use a tool", "tool"];
  const remembers = (facts.always?.length ?? 0) > 0 && options.some((option) => option.kind.endsWith("_always"));

  const choose = (/** @type {Option} */ option) => {
    if (!armed || answered.current) return;
    answered.current = true;
    try {
      request.respond(answerOf(option, remembers ? scope : ""));
      announce(option.kind.startsWith("allow") ? "Allowed." : "Rejected.");
    } catch (error) {
      answered.current = false;
      toast(problemOf(error), "bad");
    }
  };
  const pressed = (/** @type {KeyboardEvent} */ event) => {
    if (event.repeat || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    const target = /** @type {HTMLElement} */ (event.target);
    if (target.closest("input:not([type=radio]), select, textarea")) return;
    const byNumber = /^[1-9]$/.test(event.key) ? options[Number(event.key) - 1] : undefined;
    const byLetter = options.find((option) => keyOf(option) === event.key.toLowerCase());
    const option = byNumber ?? byLetter;
    if (!option) return;
    event.preventDefault();
    choose(option);
  };

  const isShort = options.every((option) => labelOf(option).length <= 16);
  const foot = !options.length ? html`<p class="faint">The agent offers no option. Cancel the turn, or put this aside.</p>` : html`<div class="options ${armed ? "" : "unarmed"} ${isShort ? `short of-${options.length}` : ""}">
    ${options.map((option, at) => {
      const allows = option.kind.startsWith("allow");
      const letter = keyOf(option);
      return html`<button key=${at} type="button" class="button option ${allows ? "allow" : "reject"}" data-kind=${option.kind} data-focus=${at === 0 ? "" : undefined}
        aria-disabled=${armed ? undefined : "true"} aria-keyshortcuts=${[String(at + 1), letter].filter(Boolean).join(" ")} onClick=${() => choose(option)}>
        <${Icon} name=${allows ? "check" : "cross"} /><span>${labelOf(option)}</span>
        <span class="option-keys" aria-hidden="true"><kbd>${at + 1}</kbd>${letter && html`<kbd>${letter}</kbd>`}</span>
      </button>`;
    })}
    <div class="arming" aria-hidden="true" />
  </div>`;

  return html`<${Dialog} role="alertdialog" class="permission ${diffs.length ? "wide" : ""}" sticky onClose=${onAside} closeLabel="Put aside (Esc)" foot=${foot} head=${pager}
    describedBy=${described} onKeyDown=${pressed} title=${html`<span class="permission-title"><${Icon} name=${icon} /><span><${Exact} text=${agentTitle(facts.agent ?? session.agent)} /> wants to ${verb}</span></span>`}>
    <div id=${described} class="permission-facts">
      <${Subject} facts=${facts} call=${call} diffs=${diffs} />
      <dl class="facts">
        <div><dt>Session</dt><dd class="truncate">${nameOf({ title: session.title.value, text: session.row?.value?.text })}</dd></div>
        <div><dt>Directory</dt><dd class="mono"><${Exact} text=${shortPath(facts.cwd ?? session.row?.value?.cwd ?? "")} /></dd></div>
        ${typeof call.title === "string" && call.title && !repeats(call.title, facts.action?.subject ?? textOf(call)) && html`<div><dt>The agent says</dt><dd><${Exact} text=${call.title} /></dd></div>`}
      </dl>
      <${PolicyNote} policy=${facts.policy} />
    </div>
    ${remembers && html`<${AlwaysNote} rules=${facts.always} scopes=${facts.scopes ?? []} scope=${scope} setScope=${setScope} />`}
  <//>`;
}

/** What is about to happen: the exact command, the diff, the paths or the address. @param {{facts: any, call: any, diffs: any[]}} props */
function Subject({ facts, call, diffs }) {
  const subject = facts.action?.subject ?? textOf(call);
  const lines = Array.isArray(subject) ? subject : String(subject).split("\n");
  // A diff comes from the agent: it stands for the action only where the action is a change of just these files.
  const isChange = diffs.length > 0 && (facts.action?.kind ?? call.kind) === "edit" && lines.every((line) => diffs.some((one) => one.path === line));
  return html`
    ${!isChange && lines.some(Boolean) && html`<pre class="subject" tabindex="0" aria-label="Exactly this">${lines.map((line, at) => html`${at > 0 && "\n"}<${Exact} text=${String(line)} />`)}</pre>`}
    ${diffs.length > 0 && html`<div class="permission-diffs">${diffs.map((one, at) => html`<${Diff} key=${at} path=${one.path} old=${one.old} new=${one.new} />`)}</div>`}`;
}

/** The letter that chooses an option. @param {Option} option @returns {string | undefined} */
function keyOf(option) {
  return Object.hasOwn(KEYS, option.kind) ? KEYS[/** @type {keyof typeof KEYS} */ (option.kind)] : undefined;
}

/** Whether what the agent says is nothing but the subject again. @param {string} title @param {unknown} subject */
const repeats = (title, subject) => typeof subject === "string" && subject !== "" && title.replace(/^(?:run|edit|read|delete|fetch)\b/i, "").replace(/[`\s]/g, "") === subject.replace(/[`\s]/g, "");

/** What an agent without facts from the gateway shows of a call. @param {any} call */
function textOf(call) {
  const command = call?.rawInput?.command ?? call?.rawInput?.cmd;
  if (command) return Array.isArray(command) ? command.join(" ") : String(command);
  const texts = listOf(call?.content).map((/** @type {any} */ part) => part?.content?.text).filter(Boolean);
  return texts.join("\n") || listOf(call?.locations).map((/** @type {any} */ one) => one?.path) || "";
}

/** What the policy says about the action, and why it asks. @param {{policy?: {verdict: string, why: string, rule?: string}}} props */
function PolicyNote({ policy }) {
  if (!policy?.why) return null;
  const tone = policy.verdict === "deny" ? "bad" : "";
  return html`<div class="callout policy ${tone}">
    <${Icon} name="shield" /><div><strong>Policy</strong> ${policy.why.split("`").map((part, place) => (place % 2 ? html`<code><${Exact} text=${part} /></code>` : html`<${Exact} text=${part} />`))}${policy.rule && !policy.why.includes(policy.rule) && html` <code>${policy.rule}</code>`}</div>
  </div>`;
}

/**
 * What "always" would remember, and for what.
 *
 * @param {{rules: string[], scopes: string[], scope: string, setScope: (scope: string) => void}} props
 */
function AlwaysNote({ rules, scopes, scope, setScope }) {
  const known = scopes.filter((one) => one in SCOPES);
  const words = (/** @type {string} */ one) => /** @type {Record<string, string[]>} */ (SCOPES)[one];
  return html`<div class="always" role="group" aria-label="What always remembers">
    <p><strong>“Always”</strong> remembers ${rules.length === 1 ? "this rule" : "these rules"} ${scope ? words(scope)?.[1] : ""}:</p>
    <ul role="list" class="rules">${rules.map((rule) => html`<li><code><${Exact} text=${rule} /></code></li>`)}</ul>
    ${known.length > 1 && html`<div class="segments scopes" role="radiogroup" aria-label="For what">${known.map((one) => html`<label>
      <input type="radio" name="scope" value=${one} checked=${scope === one} onChange=${() => setScope(one)} /><span>${words(one)[0]}</span>
    </label>`)}</div>`}
  </div>`;
}
