/**
 * The plan of a session with its progress: the agent's one plan, and the plans by name of agents that have several.
 */

import { html } from "../../html.js";
import { prose } from "../../present/text.js";
import { stepStatus } from "../../present/usage.js";
import { Icon } from "../icons.js";
import { Markdown } from "./markdown.js";

/** The icon and the word of each state of a step. */
const STATES = {
  pending: { icon: "circle", word: "to do" },
  in_progress: { icon: "play", word: "in progress" },
  completed: { icon: "check-circle", word: "done" },
};

/** @param {any} step */
const stateOf = (step) => stepStatus(step?.status);

/**
 * The plan of a session; nothing if there is none.
 *
 * @param {{session: any}} props
 */
export function Plan({ session }) {
  const steps = session.plan?.value ?? [];
  const plans = session.plans?.value ?? null;
  const others = plans ? [...(plans.values?.() ?? plans)] : [];
  if (!steps.length && !others.length) return null;
  return html`<div class="plans">
    ${steps.length > 0 && html`<${Steps} steps=${steps} />`}
    ${others.map((/** @type {any} */ plan, /** @type {number} */ place) => html`<${NamedPlan} key=${plan?.planId ?? place} plan=${plan} />`)}
  </div>`;
}

/** @param {{plan: any}} props */
function NamedPlan({ plan }) {
  const steps = Array.isArray(plan?.entries) ? plan.entries : null;
  if (steps) return html`<${Steps} steps=${steps} />`;
  if (typeof plan?.content === "string") return html`<div class="plan"><${Markdown} text=${plan.content} /></div>`;
  return html`<div class="plan"><span class="t-chip"><${Icon} name="file" /><span class="t-chip-name">${prose(String(plan?.uri ?? plan?.planId ?? "Plan"))}</span></span></div>`;
}

/** @param {{steps: any[]}} props */
function Steps({ steps }) {
  const done = steps.filter((step) => stateOf(step) === "completed").length;
  return html`<div class="plan">
    <div class="plan-head">
      <span class="plan-count">${done} of ${steps.length} done</span>
      <${Bar} value=${done} most=${steps.length} label="Progress of the plan" />
    </div>
    <ol class="plan-steps" role="list">
      ${steps.map((step, place) => {
        const state = stateOf(step);
        return html`<li key=${place} data-state=${state} data-priority=${step.priority === "high" ? "high" : undefined}>
          <${Icon} name=${STATES[state].icon} />
          <span><span class="visually-hidden">${STATES[state].word}: </span>${prose(String(step.content ?? ""))}</span>
        </li>`;
      })}
    </ol>
  </div>`;
}

/**
 * A bar that shows a part of a whole.
 *
 * @param {{value: number, most: number, label: string, tone?: string, said?: string}} props  `said`: what is read out
 */
export function Bar({ value, most, label, tone = "", said }) {
  const share = most > 0 ? Math.min(Math.max(value / most, 0), 1) : 0;
  return html`<div class="bar ${tone}" role="progressbar" aria-label=${label} aria-valuemin="0" aria-valuemax=${most} aria-valuenow=${Math.min(value, most)} aria-valuetext=${said ?? `${value} of ${most}`}>
    <span style=${{ transform: `scaleX(${share})` }}></span>
  </div>`;
}
