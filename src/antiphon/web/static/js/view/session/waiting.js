/** What waits for the user: requests that were put aside on this device, and the banner that names other sessions that wait. */

import { html, signal } from "../../html.js";
import { app } from "../../state/app.js";
import { Icon } from "../icons.js";
import { count, nameOf, pathOf } from "../wording.js";

/** Ids of requests that were put aside on this device. */
export const aside = signal(/** @type {ReadonlySet<string>} */ (new Set()));

/** @param {string} id */
export const putAside = (id) => { aside.value = new Set([...aside.value, id]); };

/** Show everything again that was put aside. */
export const takeUp = () => { aside.value = new Set(); };

/** The banner that names another session that waits for the user. */
export function OthersBanner() {
  const route = app.route.value;
  const here = (/** @type {any} */ row) => route.screen === "session" && row.agent === route.agent && row.sessionId === route.id;
  const others = app.sessions.value.filter((row) => row.state === "waiting" && !here(row));
  if (!others.length || route.screen === "list" || app.info.value?.role === "watch") return null;
  const [first] = others;
  return html`<div class="others-banner" role="region" aria-label="Other sessions that wait">
    <${Icon} name="bell" />
    <span class="truncate"><strong>${nameOf(first)}</strong> waits for you${others.length > 1 ? `, and ${count(others.length - 1, "other")}` : ""}</span>
    <a class="button small" href=${`#${pathOf(first)}`}>Open</a>
  </div>`;
}
