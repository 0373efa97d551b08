/**
 * Which request of an agent is shown, and the bar that leads to those that were put aside.
 *
 * Putting a request aside answers nothing: it keeps waiting, here and on every other device.
 */

import { html, useEffect, useErrorBoundary, useState } from "../../html.js";
import { Dialog } from "../dialog.js";
import { QuestionDialog } from "./form.js";
import { Icon } from "../icons.js";
import { PermissionDialog } from "./permission.js";
import { aside, putAside, takeUp } from "./waiting.js";
import { count } from "../wording.js";

/** Whether a request is a question to a person, and not about an action. @param {import("../../types.js").PendingRequest} request */
export const isQuestion = (request) => request.method !== "session/request_permission";

/**
 * The dialog for the requests of the session that is open. Several are gone through one by one: "1 of 3".
 *
 * @param {{session: any}} props
 */
export function RequestDialog({ session }) {
  const [at, setAt] = useState(0);
  const waiting = session.requests.value.filter((/** @type {any} */ request) => !aside.value.has(request.id));
  const place = Math.min(at, Math.max(0, waiting.length - 1));
  const request = waiting[place];
  useEffect(() => {
    if (!waiting.length && at) setAt(0);
  }, [waiting.length]);
  if (!request || !session.canPrompt.value) return null;
  const pager = waiting.length > 1 && html`<div class="pager">
    <button type="button" class="icon-button small" aria-label="Previous request" disabled=${place === 0} onClick=${() => setAt(place - 1)}><${Icon} name="arrow-left" /></button>
    <span aria-live="polite">${place + 1} of ${waiting.length}</span>
    <button type="button" class="icon-button small turned" aria-label="Next request" disabled=${place === waiting.length - 1} onClick=${() => setAt(place + 1)}><${Icon} name="arrow-left" /></button>
  </div>`;
  const shared = { key: request.id, session, request, pager, onAside: () => putAside(request.id) };
  return html`<${ShownRequest} ...${shared} />`;
}

/** One request. One that cannot be drawn takes nothing else from the page. @param {{session: any, request: any, pager: any, onAside: () => void}} props */
function ShownRequest(props) {
  const [error] = useErrorBoundary((/** @type {unknown} */ failure) => console.error("a request could not be drawn", failure));
  if (error) {
    return html`<${Dialog} role="alertdialog" sticky title="This request could not be drawn" head=${props.pager} closeLabel="Put aside (Esc)" onClose=${props.onAside}>
      <p>The agent sent a request that this page cannot show, so it cannot be answered here. Stop the turn, or put it aside.</p>
    <//>`;
  }
  return isQuestion(props.request) ? html`<${QuestionDialog} ...${props} />` : html`<${PermissionDialog} ...${props} />`;
}

/**
 * The bar above the composer for requests of this session that were put aside, or that others have to answer.
 *
 * @param {{session: any}} props
 */
export function RequestBar({ session }) {
  const watching = !session.canPrompt.value;
  const all = watching ? [...session.requests.value, ...session.waiting.value] : session.requests.value;
  const hidden = all.filter((/** @type {any} */ request) => aside.value.has(request.id));
  if (!all.length || (!hidden.length && !watching)) return null;
  const words = watching
    ? `${count(all.length, "request waits", "requests wait")} for someone who may decide`
    : `${count(hidden.length, "request waits", "requests wait")} for you`;
  return html`<div class="request-bar" role="region" aria-label="Requests that wait">
    <${Icon} name="bell" /><span>${words}</span>
    ${!watching && html`<button type="button" class="button small" onClick=${takeUp}>Decide <kbd aria-hidden="true">p</kbd></button>`}
  </div>`;
}
