/**
 * Tokens, money and plans on one line. The twin of `usage_line` and `plan_line` in `src/antiphon/transcript/presentation.py`.
 */

import { significant } from "./text.js";

/** A number with commas between thousands. @param {number} value @returns {string} */
export function grouped(value) {
  return String(value).replace(/\B(?=(\d{3})+$)/g, ",");
}

/**
 * A share in whole percent, halves to the even number as Python rounds them.
 *
 * @param {number} share
 * @returns {string}
 */
export function percent(share) {
  const value = share * 100;
  const below = Math.floor(value);
  const rounded = value - below === 0.5 ? below + (below % 2) : Math.round(value);
  return `${rounded}%`;
}

/**
 * An amount of money with its currency.
 *
 * @param {{amount: number, currency: string}} cost
 * @returns {string}
 */
export function costLine(cost) {
  return `${cost.amount < 1000 ? significant(cost.amount, 4) : cents(cost.amount)} ${cost.currency}`;
}

/** @param {number} amount @returns {string} */
function cents(amount) {
  const [whole, part] = amount.toFixed(2).split(".");
  return `${grouped(Number(whole))}.${part}`;
}

/**
 * How full the context window is, from 0 to 1; null if that is not known.
 *
 * @param {any} usage the last `usage_update`
 * @returns {number | null}
 */
export function contextShare(usage) {
  if (typeof usage?.used !== "number" || typeof usage.size !== "number" || usage.size <= 0) return null;
  return Math.min(usage.used / usage.size, 1);
}

/**
 * Tokens and money on one line; null if the agent reported neither.
 *
 * @param {any} usage the last `usage_update`
 * @param {any} tokens of the last turn
 * @returns {string | null}
 */
export function usageLine(usage, tokens) {
  const parts = [];
  if (typeof tokens?.totalTokens === "number") {
    const { totalTokens, inputTokens = 0, outputTokens = 0 } = tokens;
    parts.push(`${grouped(totalTokens)} tokens (${grouped(inputTokens)} in, ${grouped(outputTokens)} out)`);
  }
  if (typeof usage?.used === "number" && typeof usage.size === "number") {
    const share = usage.size ? ` (${percent(usage.used / usage.size)})` : "";
    parts.push(`context ${grouped(usage.used)} of ${grouped(usage.size)}${share}`);
    if (typeof usage.cost?.amount === "number") parts.push(costLine(usage.cost));
  }
  return parts.join(" · ") || null;
}

/**
 * How far a step of a plan is, a word that the protocol has.
 *
 * @param {string} status
 * @returns {"pending" | "in_progress" | "completed"}
 */
export function stepStatus(status) {
  return status === "in_progress" || status === "completed" ? status : "pending";
}

/**
 * A plan on one line: how far it is, and what is being done.
 *
 * @param {import("../types.js").PlanStep[]} steps
 * @returns {string}
 */
export function planLine(steps) {
  const done = steps.filter((step) => stepStatus(step.status) === "completed").length;
  const first = (/** @type {string} */ status) => steps.find((step) => stepStatus(step.status) === status)?.content;
  const now = first("in_progress") || first("pending");
  return `☰ plan ${done}/${steps.length}${now ? `: ${now}` : ": done"}`;
}
