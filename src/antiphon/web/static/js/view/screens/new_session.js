/**
 * A new session: which agent, in which directory, and with which mode and model where they are known. The last choice comes first.
 */

import { html, useEffect, useRef, useState } from "../../html.js";
import { app } from "../../state/app.js";
import { DirectoryField } from "./directory.js";
import { problemOf } from "../dialog.js";
import { Icon } from "../icons.js";
import { OptionSelect, arranged } from "../session/options.js";
import { Screen } from "../screen.js";
import { Coded, lastPart, pathOf, shortPath } from "../wording.js";

/** What the agents of this package are for, by their titles. Others have a name alone. @type {Record<string, string>} */
const PURPOSES = {
  "Antiphon demo": "Shows what an agent can do. It needs no model.",
  Antiphon: "Claude Code and Codex in one session.",
};

/**
 * What is chosen when the screen opens: what was chosen last, where it is still there.
 *
 * @param {import("../../types.js").GatewayInfo} info
 * @param {import("../../types.js").Preferences} last
 */
export function firstChoice(info, last) {
  const agent = info.agents.find((one) => one.name === last.agent) ?? info.agents.find((one) => one.default) ?? info.agents[0];
  const inside = (/** @type {string} */ path) => !info.roots?.length || info.roots.some((root) => path === root || path.startsWith(root.replace(/\/?$/, "/")));
  const cwd = last.cwd && inside(last.cwd) ? last.cwd : info.recent?.[0] ?? info.roots?.[0] ?? "";
  const same = agent && last.agent === agent.name;
  return { agent: agent?.name ?? "", cwd, mode: same ? last.mode ?? "" : "", model: same ? last.model ?? "" : "" };
}

export function NewSession() {
  const info = app.info.value;
  if (!info) return null;
  return html`<${Screen} title="New session" back><${NewSessionForm} info=${info} /><//>`;
}

/** @param {{info: import("../../types.js").GatewayInfo}} props */
function NewSessionForm({ info }) {
  const [choice, setChoice] = useState(() => firstChoice(info, app.preferences.peek()));
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);
  const form = useRef(/** @type {HTMLFormElement | null} */ (null));
  const agent = info.agents.find((one) => one.name === choice.agent);
  const change = (/** @type {Partial<typeof choice>} */ part) => { setProblem(""); setChoice({ ...choice, ...part }); };
  const settings = agent?.settings;
  const { mode, model } = arranged({
    modes: settings?.modes?.availableModes ?? [], mode: choice.mode || settings?.modes?.currentModeId || null,
    models: settings?.models?.availableModels ?? [], model: choice.model || settings?.models?.currentModelId || null,
    options: settings?.configOptions ?? [],
  });
  const recent = (info.recent ?? []).filter((path) => path !== choice.cwd).slice(0, 6);

  useEffect(() => {
    app.gateway.refresh().catch(() => {}); // directories and settings that were used since the page connected
    /** @type {HTMLElement | null | undefined} */ (form.current?.querySelector("[type=submit]"))?.focus();
  }, []);

  const start = async (/** @type {Event} */ event) => {
    event.preventDefault();
    if (!choice.cwd) {
      setProblem("Choose a directory first.");
      return;
    }
    setBusy(true);
    setProblem("");
    try {
      const session = await app.newSession({ agent: choice.agent, cwd: choice.cwd, mode: choice.mode || undefined, model: choice.model || undefined });
      for (const name of /** @type {const} */ (["agent", "cwd", "mode", "model"])) app.setPreference(name, choice[name]);
      app.go(pathOf({ agent: session.agent, sessionId: session.id }));
    } catch (error) {
      setProblem(problemOf(error));
      setBusy(false);
    }
  };
  const picker = (/** @type {any} */ option, /** @type {"mode" | "model"} */ name, /** @type {string} */ label) => option && html`<div class="field">
    <label for=${`option-${option.id}`}>${label}</label>
    <${OptionSelect} option=${{ ...option, currentValue: choice[name] || option.currentValue }} set=${(/** @type {string} */ value) => change({ [name]: value })} />
  </div>`;

  return html`<form ref=${form} class="form-card" onSubmit=${start}>
    <fieldset class="field">
      <legend>Agent</legend>
      <div class="agent-cards">
        ${info.agents.map((one) => html`<label key=${one.name} class="agent-card ${one.name === choice.agent ? "chosen" : ""}">
          <input type="radio" name="agent" value=${one.name} checked=${one.name === choice.agent} onChange=${() => change({ agent: one.name, mode: "", model: "" })} />
          <span class="agent-name">${one.title || one.name}</span>
          <span class="faint">${one.state === "failed" ? "does not start" : PURPOSES[one.title ?? ""] ?? one.name}</span>
        </label>`)}
      </div>
    </fieldset>
    <${DirectoryField} value=${choice.cwd} onChange=${(/** @type {string} */ cwd) => change({ cwd })} roots=${info.roots ?? []} />
    ${recent.length > 0 && html`<div class="recent" role="group" aria-label="Recent directories">
      ${recent.map((path) => html`<button key=${path} type="button" class="chip" title=${path} onClick=${() => change({ cwd: path })}><${Icon} name="folder" />${lastPart(path)}<span class="visually-hidden"> in ${shortPath(path)}</span></button>`)}
    </div>`}
    ${(mode || model) && html`<div class="field-pair">${picker(mode, "mode", "Mode")}${picker(model, "model", "Model")}</div>`}
    ${problem && html`<div class="callout bad" role="alert"><${Icon} name="alert" /><span><${Coded} text=${problem} /></span></div>`}
    <div class="form-actions">
      <button type="submit" class="button primary" disabled=${busy}>${busy ? html`<${Icon} name="spinner" class="spin" />Starting…` : "Start session"}</button>
    </div>
  </form>`;
}
