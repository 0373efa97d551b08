/**
 * A question of an agent to a person: a form with fields that are checked, or an address to open.
 *
 * To decline is an answer, to cancel is none: the agent is told which of them it was. Putting it aside sends nothing.
 */

import { html, useId, useMemo, useRef, useState } from "../../html.js";
import { fieldsOf } from "../../present/forms.js";
import { announce } from "../announcer.js";
import { Dialog } from "../dialog.js";
import { Icon } from "../icons.js";
import { useArmed } from "./permission.js";
import { Exact, agentTitle } from "../wording.js";

/** @typedef {import("../../present/forms.js").Field} Field */

/** What a field has before anything was typed. @param {Field} field */
function firstValue(field) {
  const given = field.asked.default;
  if (field.kind === "several") return Array.isArray(given) ? given : [];
  if (field.kind === "yes-no") return given === true;
  return given === undefined || given === null ? "" : String(given);
}

/**
 * Check all fields.
 *
 * @param {Field[]} fields
 * @param {Record<string, any>} values
 * @returns {{content: Record<string, any>, problems: Record<string, string>}}
 */
export function checked(fields, values) {
  /** @type {Record<string, any>} */
  const content = Object.create(null); // a field may be called `__proto__`
  /** @type {Record<string, string>} */
  const problems = Object.create(null);
  for (const field of fields) {
    try {
      const value = field.check(values[field.key]);
      if (value !== null) content[field.key] = value;
      // The default stood in the field: one that is empty now was emptied.
      else if (field.required) problems[field.key] = "this cannot be left out";
    } catch (error) {
      problems[field.key] = /** @type {Error} */ (error).message;
    }
  }
  return { content, problems };
}

/**
 * @param {{session: any, request: import("../../types.js").PendingRequest, pager?: any, onAside: () => void}} props
 */
export function QuestionDialog({ session, request, pager, onAside }) {
  const { params } = request;
  const isVisit = params?.mode === "url";
  const fields = useMemo(() => (isVisit ? [] : fieldsOf(params?.requestedSchema)), [request.id]);
  const [values, setValues] = useState(() => Object.fromEntries(fields.map((field) => [field.key, firstValue(field)])));
  const [problems, setProblems] = useState(/** @type {Record<string, string>} */ (Object.create(null)));
  const armed = useArmed(request.id);
  const form = useRef(/** @type {HTMLFormElement | null} */ (null));
  const id = useId();

  const respond = (/** @type {any} */ result, /** @type {string} */ word) => {
    if (!armed) return; // a key or click that was meant for what the dialog covers
    request.respond(result);
    announce(word);
  };
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    if (!armed) return;
    const found = checked(fields, values);
    setProblems(found.problems);
    const [wrong] = Object.keys(found.problems);
    if (wrong !== undefined) {
      const field = form.current?.querySelector(`[data-field="${CSS.escape(wrong)}"]`);
      /** @type {HTMLElement | null | undefined} */ (field)?.focus();
      return;
    }
    respond({ action: "accept", content: found.content }, "Answered.");
  };
  const visit = () => {
    if (!armed) return;
    window.open(params.url, "_blank", "noopener,noreferrer");
    respond({ action: "accept" }, "Opened in another tab.");
  };
  const agent = session ? agentTitle(session.agent) : "The agent";
  const waits = armed ? undefined : "true";
  const rest = html`
    <button type="button" class="button quiet" aria-disabled=${waits} title="Close the question without an answer" onClick=${() => respond({ action: "cancel" }, "Cancelled.")}>Cancel</button>
    <button type="button" class="button" aria-disabled=${waits} title="Answer that you do not want to say" onClick=${() => respond({ action: "decline" }, "Declined.")}>Decline</button>`;
  const title = html`<span class="permission-title"><${Icon} name="question" /><span>${agent} asks</span></span>`;

  if (isVisit) {
    const safe = typeof params.url === "string" && /^https?:\/\//i.test(params.url);
    const foot = html`${rest}<button type="button" class="button primary" aria-disabled=${waits} disabled=${!safe} onClick=${visit}><${Icon} name="external" />Open this address</button>`;
    return html`<${Dialog} role="alertdialog" class="question" sticky title=${title} head=${pager} closeLabel="Put aside (Esc)" onClose=${onAside} describedBy=${id} foot=${foot}>
      <div id=${id} class="form"><p><${Exact} text=${params.message ?? ""} /></p>
        <p class="faint">The agent asks you to open this address in another tab. Check it first. This page does not see what you do there.</p>
        <code class="visit-address" tabindex="0" data-focus><${Exact} text=${params.url ?? ""} /></code>
        ${!safe && html`<div class="callout bad"><${Icon} name="alert" /><span>Only addresses with http or https are opened from here.</span></div>`}</div>
    <//>`;
  }
  const foot = html`${rest}<button type="submit" form=${`${id}-form`} class="button primary" aria-disabled=${waits}>Send answer</button>`;
  return html`<${Dialog} role="alertdialog" class="question" sticky title=${title} head=${pager} closeLabel="Put aside (Esc)" onClose=${onAside} describedBy=${id} foot=${foot}>
    <p id=${id}><${Exact} text=${params?.message ?? ""} /></p>
    ${params?.requestedSchema?.description && html`<p class="faint">${params.requestedSchema.description}</p>`}
    <form ref=${form} id=${`${id}-form`} class="form" novalidate onSubmit=${submit}>
      ${fields.map((field, at) => html`<${FormField} key=${field.key} field=${field} first=${at === 0} id=${`${id}-${at}`} value=${values[field.key]} problem=${problems[field.key]}
        set=${(/** @type {any} */ value) => {
          setValues({ ...values, [field.key]: value });
          if (problems[field.key]) setProblems(Object.assign(Object.create(null), problems, { [field.key]: "" }));
        }} />`)}
    </form>
  <//>`;
}

/** Kinds of input for the formats of a text. */
const INPUTS = { email: "email", uri: "url", date: "date", "date-time": "text" };

/**
 * @param {{field: Field, id: string, value: any, problem?: string, first: boolean, set: (value: any) => void}} props
 */
function FormField({ field, id, value, problem, first, set }) {
  const { asked } = field;
  const hint = asked.description && html`<p class="hint" id=${`${id}-hint`}>${asked.description}</p>`;
  const bad = problem && html`<p class="problem" id=${`${id}-problem`}><${Icon} name="alert" />${problem}</p>`;
  const label = html`${field.title}${field.required ? html` <span class="optional">required</span>` : ""}`;
  const shared = {
    id, "data-field": field.key, "data-focus": first ? "" : undefined, "aria-invalid": problem ? "true" : undefined, "aria-required": field.required ? "true" : undefined,
    "aria-describedby": [problem && `${id}-problem`, hint && `${id}-hint`].filter(Boolean).join(" ") || undefined,
  };
  if (field.kind === "yes-no") {
    return html`<div class="field"><label class="switch"><input type="checkbox" role="switch" ...${shared} checked=${value === true} onChange=${(/** @type {any} */ event) => set(event.target.checked)} /><span class="track" /><span>${label}</span></label>${hint}${bad}</div>`;
  }
  if (field.kind === "several" || (field.kind === "one" && field.choices.size <= 5)) {
    const several = field.kind === "several";
    const toggle = (/** @type {string} */ choice, /** @type {boolean} */ on) => set(several ? (on ? [...value, choice] : value.filter((/** @type {string} */ one) => one !== choice)) : choice);
    return html`<fieldset class="field" aria-describedby=${shared["aria-describedby"]}><legend>${label}</legend>${hint}
      ${[...field.choices].map(([choice, words], at) => html`<label class="choice"><input type=${several ? "checkbox" : "radio"} name=${id} value=${choice} checked=${several ? value.includes(choice) : value === choice}
        data-field=${at === 0 ? field.key : undefined} data-focus=${first && at === 0 ? "" : undefined} onChange=${(/** @type {any} */ event) => toggle(choice, event.target.checked)} /><span>${words}</span></label>`)}
      ${bad}</fieldset>`;
  }
  if (field.kind === "one") {
    return html`<div class="field"><label for=${id}>${label}</label><select class="select" ...${shared} value=${value} onChange=${(/** @type {any} */ event) => set(event.target.value)}>
      ${!field.required && html`<option value="">–</option>`}${[...field.choices].map(([choice, words]) => html`<option value=${choice} selected=${value === choice}>${words}</option>`)}</select>${hint}${bad}</div>`;
  }
  const isNumber = field.kind === "number" || field.kind === "integer";
  const type = isNumber ? "text" : Object.hasOwn(INPUTS, asked.format ?? "") ? INPUTS[/** @type {keyof typeof INPUTS} */ (asked.format)] : "text";
  const long = field.kind === "text" && !asked.format && (asked.maxLength ?? 0) > 200;
  const input = (/** @type {any} */ event) => set(event.target.value);
  return html`<div class="field"><label for=${id}>${label}</label>
    ${long
      ? html`<textarea class="textarea" ...${shared} value=${value} onInput=${input}></textarea>`
      : html`<input class="input" type=${type} inputmode=${isNumber ? (field.kind === "integer" ? "numeric" : "decimal") : undefined} ...${shared} autocomplete="off" value=${value} onInput=${input} />`}
    ${hint}${bad}</div>`;
}
