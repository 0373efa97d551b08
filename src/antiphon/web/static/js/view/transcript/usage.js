/**
 * What a session has used: how full the context of the model is, tokens, and money.
 */

import { html } from "../../html.js";
import { Bar } from "./plan.js";

/** Shares of the context from which the gauge changes its colour. Agents compact at about nine tenths. */
const WARN = 0.75;
const BAD = 0.9;

/** @param {any} usage @returns {{used: number, size: number, share: number | null}} */
function context(usage) {
  const used = Number(usage?.used) || 0;
  const size = Number(usage?.size) || 0;
  return { used, size, share: size > 0 ? used / size : null };
}

/** @param {number | null} share */
function tone(share) {
  return share === null || share < WARN ? "" : share < BAD ? "warn" : "bad";
}

/** A number of tokens in a few characters. @param {number} tokens */
export function shortCount(tokens) {
  if (tokens < 1000) return String(tokens);
  if (tokens < 100_000) return `${(tokens / 1000).toFixed(1).replace(/\.0$/, "")}k`;
  return tokens < 1_000_000 ? `${Math.round(tokens / 1000)}k` : `${(tokens / 1_000_000).toFixed(1).replace(/\.0$/, "")}M`;
}

/**
 * Money. A currency that the browser does not know is written as it came.
 *
 * @param {any} cost
 * @returns {string}
 */
export function money(cost) {
  const amount = Number(cost?.amount);
  if (!Number.isFinite(amount)) return "";
  const currency = String(cost.currency ?? "");
  const digits = amount !== 0 && Math.abs(amount) < 0.1 ? 4 : 2;
  try {
    return new Intl.NumberFormat(undefined, { style: "currency", currency, maximumFractionDigits: digits, minimumFractionDigits: 2 }).format(amount);
  } catch {
    return `${amount.toFixed(digits)} ${currency.replace(/[^\w ]/g, "").slice(0, 8)}`.trim();
  }
}

/**
 * The context as a small ring, for a header; nothing if the agent reports none.
 *
 * @param {{session: any}} props
 */
export function ContextGauge({ session }) {
  const usage = session.usage?.value;
  if (!usage) return null;
  const { used, size, share } = context(usage);
  const cost = money(usage.cost);
  const said = [share === null ? `${shortCount(used)} tokens in context` : `Context ${Math.round(share * 100)} % full: ${used.toLocaleString()} of ${size.toLocaleString()} tokens`, cost && `cost ${cost}`].filter(Boolean).join(", ");
  const around = 2 * Math.PI * 7;
  return html`<span class="gauge ${tone(share)}" role="img" aria-label=${said} title=${said}>
    <svg viewBox="0 0 20 20" aria-hidden="true">
      <circle class="gauge-track" cx="10" cy="10" r="7" />
      <circle class="gauge-value" cx="10" cy="10" r="7" stroke-dasharray=${`${Math.min(share ?? 0, 1) * around} ${around}`} />
    </svg>
    <span class="gauge-text">${share === null ? shortCount(used) : `${Math.round(share * 100)}%`}</span>
    ${cost && html`<span class="gauge-cost">${cost}</span>`}
  </span>`;
}

/**
 * Context, tokens and cost in full, for a panel; nothing if the agent reports none.
 *
 * @param {{session: any}} props
 */
export function Usage({ session }) {
  const usage = session.usage?.value;
  const tokens = session.tokens?.value;
  if (!usage && !tokens) return null;
  const { used, size, share } = context(usage);
  const cost = money(usage?.cost);
  const counts = [
    ["Input", tokens?.inputTokens],
    ["Output", tokens?.outputTokens],
    ["Thinking", tokens?.thoughtTokens],
    ["Read from cache", tokens?.cachedReadTokens],
    ["Written to cache", tokens?.cachedWriteTokens],
    ["Total", tokens?.totalTokens],
  ].filter(([, count]) => typeof count === "number");
  return html`<div class="usage">
    ${usage &&
    html`<div class="usage-row"><span>Context</span><span class="usage-number">${shortCount(used)}${size ? ` of ${shortCount(size)}` : ""}${share === null ? "" : ` · ${Math.round(share * 100)} %`}</span></div>
      ${share !== null && html`<${Bar} value=${used} most=${size} tone=${tone(share)} label="Context" said=${`${Math.round(share * 100)} % full`} />`}`}
    ${cost && html`<div class="usage-row"><span>Cost</span><span class="usage-number">${cost}</span></div>`}
    ${counts.map(([name, count]) => html`<div class="usage-row" key=${name}><span>${name}</span><span class="usage-number">${Number(count).toLocaleString()}</span></div>`)}
  </div>`;
}
