/** The audit log of the gateway, a page at a time, the newest entries first. */

import { html, useEffect, useState } from "../../html.js";
import { problemOf } from "../dialog.js";
import { Icon } from "../icons.js";
import { fullTime } from "../wording.js";

/** Entries that are loaded at a time. */
const PAGE = 200;

/** @typedef {{id: number, at: string, actor: string, token: number, address: string, action: string, session: string, detail: string}} Entry */

/**
 * @param {{ask: (action: string, more?: Record<string, any>) => Promise<any>}} props
 */
export function AuditLog({ ask }) {
  const [entries, setEntries] = useState(/** @type {Entry[] | null} */ (null));
  const [broken, setBroken] = useState(/** @type {number | null} */ (null));
  const [hasOlder, setHasOlder] = useState(false);
  const [filter, setFilter] = useState("");
  const [problem, setProblem] = useState("");

  /** Load the newest entries, or those before the oldest that is here. @param {Entry[]} newer */
  const load = async (newer = []) => {
    try {
      const before = newer.length ? { before: newer[newer.length - 1].id } : {};
      const page = await ask("audit", { ...before, limit: PAGE });
      setBroken(page.broken);
      setEntries([...newer, ...page.entries.reverse()]);
      setHasOlder(page.entries.length === PAGE);
      setProblem("");
    } catch (error) {
      setProblem(problemOf(error));
    }
  };
  useEffect(() => { load(); }, []);

  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  const fitting = (entries ?? []).filter((entry) => {
    const text = `${entry.actor} ${entry.address} ${entry.action} ${entry.session} ${entry.detail}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
  return html`<div class="audit">
    <div class="section-head">
      <input class="input" type="search" placeholder="Filter" aria-label="Filter the audit log" value=${filter} onInput=${(/** @type {any} */ event) => { setFilter(event.target.value); }} />
      <button type="button" class="icon-button" aria-label="Look again" title="Look again" onClick=${() => load()}><${Icon} name="refresh" /></button>
    </div>
    ${problem && html`<div class="callout bad" role="alert"><${Icon} name="alert" /><span>${problem}</span></div>`}
    ${broken !== null && broken !== undefined && html`<div class="callout bad" role="alert"><${Icon} name="alert" /><span>The chain of hashes does not fit from entry ${broken} on: somebody changed the log.</span></div>`}
    <div class="table-frame" tabindex="0" role="region" aria-label="Audit log">
      <table class="table audit-table">
        <thead><tr><th scope="col">Time</th><th scope="col">Who</th><th scope="col">What</th><th scope="col">Detail</th><th scope="col">Session</th><th scope="col">From</th></tr></thead>
        <tbody>${fitting.map((entry) => html`<tr key=${entry.id}>
          <td class="faint audit-time">${fullTime(entry.at)}</td><td class="audit-who">${entry.actor}</td><td class="audit-what">${entry.action}</td><td class="audit-detail">${entry.detail}</td>
          <td class="mono audit-id" data-word="session">${entry.session?.slice(0, 8)}</td><td class="mono audit-id" data-word="from">${entry.address}</td>
        </tr>`)}</tbody>
      </table>
    </div>
    ${entries && !fitting.length && html`<p class="faint">Nothing fits.</p>`}
    ${hasOlder && html`<button type="button" class="button" onClick=${() => load(entries ?? [])}>Load older entries</button>`}
  </div>`;
}
