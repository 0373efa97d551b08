/** Administration: the agents and their processes, tokens and shares, the audit log, the version and health of the gateway. */

import { html, useEffect, useState } from "../../html.js";
import { app } from "../../state/app.js";
import { AuditLog } from "./audit.js";
import { Dialog, attempt, confirm, copy, problemOf } from "../dialog.js";
import { Icon } from "../icons.js";
import { Screen } from "../screen.js";
import { Coded, ago, count, fullTime, size, span } from "../wording.js";

/** Milliseconds between two looks at the state of the gateway. */
const INTERVAL = 5000;

/** Ask the gateway as an admin. @param {string} action @param {Record<string, any>} [more] */
export const admin = (action, more = {}) => app.gateway.call("_antiphon/gateway/admin", { action, ...more });

/** How long ago something was, as the end of a sentence: "just now", "8 min ago", "yesterday", "on 12 Mar". @param {number} seconds since 1970 @param {number} [now] */
function since(seconds, now = Date.now() / 1000) {
  const words = ago(seconds, now);
  if (words === "now") return "just now";
  if (/^\d+ (min|h)$/.test(words)) return `${words} ago`;
  return words === "yesterday" ? words : `on ${words}`;
}

/** Seconds for which a token can be good; 0: until it is revoked. */
const LIFETIMES = [0, 24 * 3600, 30 * 24 * 3600, 365 * 24 * 3600];

export function AdminScreen() {
  const [tab, setTab] = useState("status");
  if (app.info.value && app.info.value.role !== "admin") {
    return html`<${Screen} title="Administration"><div class="callout warn"><${Icon} name="shield" /><span>This needs a token with the role admin.</span></div><//>`;
  }
  const tabs = [["status", "Gateway"], ["tokens", "Tokens and shares"], ["audit", "Audit log"]];
  return html`<${Screen} title="Administration" wide>
    <div class="segments tabs" role="radiogroup" aria-label="Part">${tabs.map(([name, word]) => html`<label><input type="radio" name="admin-tab" checked=${tab === name} onChange=${() => setTab(name)} /><span>${word}</span></label>`)}</div>
    ${tab === "status" && html`<${Status} />`}
    ${tab === "tokens" && html`<${Tokens} />`}
    ${tab === "audit" && html`<${AuditLog} ask=${admin} />`}
  <//>`;
}

/** What the last answer was, asked for again every few seconds while the page is seen. @param {string} action */
function useAnswer(action) {
  const [state, setState] = useState(/** @type {{answer?: any, problem?: string}} */ ({}));
  const load = () => admin(action).then((answer) => setState({ answer }), (error) => setState((before) => ({ ...before, problem: problemOf(error) })));
  useEffect(() => {
    load();
    const timer = setInterval(() => { if (!document.hidden) load(); }, INTERVAL);
    return () => clearInterval(timer);
  }, [action]);
  return { ...state, load };
}

/** @param {{problem?: string}} props */
function Problem({ problem }) {
  return problem ? html`<div class="callout bad" role="alert"><${Icon} name="alert" /><span><${Coded} text=${problem} /></span></div>` : null;
}

/** What a number of the gateway is called. */
const NUMBERS = {
  connections: "Connections", sessions: "Open sessions", turns: "Running turns", stored_sessions: "Stored sessions", tokens: "Tokens", shares: "Shares", browsers: "Browsers", requests: "Waiting requests",
};

function Status() {
  const { answer, problem } = useAnswer("status");
  if (!answer) return html`<${Problem} problem=${problem} />`;
  const agents = Array.isArray(answer.agents) ? answer.agents : (app.info.value?.agents ?? []);
  return html`<${Problem} problem=${problem} />
    <div class="tiles">
      <div class="tile"><span class="tile-word">Version</span><span class="tile-number">${app.info.value?.version}</span></div>
      <div class="tile"><span class="tile-word">Health</span><span class="tile-number">${answer.audit_is_whole === false ? html`<span class="badge bad"><${Icon} name="alert" />audit log damaged</span>` : html`<span class="badge ok"><${Icon} name="check" />${answer.state}</span>`}</span></div>
      <div class="tile"><span class="tile-word">Up for</span><span class="tile-number">${answer.since ? span(Date.now() / 1000 - answer.since) : "–"}</span></div>
      <div class="tile"><span class="tile-word">Data</span><span class="tile-number">${size(answer.bytes ?? 0)}</span></div>
      ${Object.entries(NUMBERS).filter(([name]) => typeof answer[name] === "number").map(([name, word]) => html`<div key=${name} class="tile"><span class="tile-word">${word}</span><span class="tile-number">${answer[name].toLocaleString("en")}</span></div>`)}
    </div>
    <h2 class="section-title">Agents</h2>
    <ul role="list" class="card-list">
      ${agents.map((/** @type {any} */ agent) => html`<li key=${agent.name}>
        <span><strong>${agent.title || agent.name}</strong> ${agent.default && html`<span class="badge accent">default</span>`}<br /><span class="faint">${agent.name}</span></span>
        <span class="faint">${agent.processes !== undefined ? count(agent.processes, "process", "processes") : ""}${agent.memory ? `, ${size(agent.memory)}` : ""}</span>
        <span class="badge ${agent.state === "running" ? "ok" : agent.state === "failed" ? "bad" : ""}">${agent.state}</span>
      </li>`)}
    </ul>
    <p class="faint">Data directory: <span class="mono">${answer.data}</span></p>`;
}

function Tokens() {
  const tokens = useAnswer("tokens");
  const shares = useAnswer("shares");
  const [creating, setCreating] = useState(false);
  const reload = () => { tokens.load(); shares.load(); };
  const revoke = async (/** @type {any} */ token) => {
    const yes = await confirm({
      title: `Revoke “${token.name}”?`, text: "What is connected with it is disconnected at once, browsers included. This cannot be undone.", action: "Revoke", danger: true,
    });
    if (yes) await attempt(() => admin("revoke", { id: token.id }), "Revoked");
    reload();
  };
  const row = (/** @type {any} */ token) => html`<li key=${token.id}>
    <span><strong>${token.name}</strong> <span class="badge ${token.role === "admin" ? "warn" : ""}">${token.role}</span>${token.kind === "browser" && token.name === app.info.value?.name && html` <span class="badge accent">this browser</span>`}<br />
      <span class="faint">created ${since(token.created)}${token.expires ? `, until ${fullTime(token.expires)}` : ""}${token.browsers ? `, ${count(token.browsers, "browser")}` : ""}</span></span>
    <button type="button" class="button small danger" onClick=${() => revoke(token)}>Revoke<span class="visually-hidden"> ${token.name}</span></button>
  </li>`;
  const list = (/** @type {any[] | undefined} */ all, /** @type {string} */ none) => (all?.length ? html`<ul role="list" class="card-list">${all.map(row)}</ul>` : html`<p class="faint">${all ? none : "…"}</p>`);
  const ofKind = (/** @type {string} */ kind) => tokens.answer?.tokens.filter((/** @type {any} */ token) => token.kind === kind);
  return html`<${Problem} problem=${tokens.problem ?? shares.problem} />
    <div class="section-head"><h2 class="section-title">Tokens</h2><button type="button" class="button small" onClick=${() => setCreating(true)}><${Icon} name="plus" />New token</button></div>
    ${list(ofKind("token"), "No tokens.")}
    <h2 class="section-title">Signed-in browsers</h2>
    ${list(ofKind("browser"), "No browsers.")}
    <h2 class="section-title">Shares</h2>
    ${list(shares.answer?.shares, "No shares. The menu of a session makes one.")}
    ${creating && html`<${TokenDialog} onClose=${() => { setCreating(false); reload(); }} />`}`;
}

/** @param {{onClose: () => void}} props */
function TokenDialog({ onClose }) {
  const [made, setMade] = useState(/** @type {any} */ (null));
  const [problem, setProblem] = useState("");
  const create = async (/** @type {any} */ event) => {
    event.preventDefault();
    const fields = new FormData(event.target);
    const lifetime = Number(fields.get("lifetime"));
    try {
      setMade(await admin("create token", { name: String(fields.get("name")).trim(), role: String(fields.get("role")), ...(lifetime ? { lifetime } : {}) }));
    } catch (error) {
      setProblem(problemOf(error));
    }
  };
  if (made) {
    return html`<${Dialog} key="made" title="New token" sticky onClose=${onClose} foot=${html`<button type="button" class="button primary" onClick=${onClose}>Done</button>`}>
      <p class="soft">This is the token of <strong>${made.name}</strong>. It is shown once: copy it now.</p>
      <div class="with-button"><input class="input mono" readonly aria-label="Token" value=${made.secret} onFocus=${(/** @type {any} */ event) => event.target.select()} />
        <button type="button" class="button" data-focus onClick=${() => copy(made.secret, "Token copied")}><${Icon} name="copy" />Copy</button></div>
    <//>`;
  }
  const foot = html`<button type="button" class="button" onClick=${onClose}>Cancel</button><button type="submit" form="token-form" class="button primary">Create token</button>`;
  return html`<${Dialog} key="form" title="New token" onClose=${onClose} foot=${foot}>
    <form id="token-form" class="form" onSubmit=${create}>
      <div class="field"><label for="token-name">Name</label><input id="token-name" name="name" class="input" required maxlength="100" data-focus autocomplete="off" /></div>
      <div class="field"><label for="token-role">Role</label><select id="token-role" name="role" class="select">
        <option value="watch">watch: see sessions</option><option value="drive" selected>drive: prompt, decide, open sessions</option><option value="admin">admin: everything</option></select></div>
      <div class="field"><label for="token-lifetime">Good for</label><select id="token-lifetime" name="lifetime" class="select">
        ${LIFETIMES.map((seconds) => html`<option value=${seconds}>${seconds ? span(seconds) : "until it is revoked"}</option>`)}</select></div>
      <${Problem} problem=${problem} />
    </form>
  <//>`;
}
