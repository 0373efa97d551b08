/**
 * Dialogs, confirmations and short messages at the edge of the screen.
 *
 * A dialog is a <dialog> shown with showModal(): the browser keeps the focus inside and the rest of the page inert. When it goes, the
 * focus returns to where it was.
 */

import { html, signal, useEffect, useId, useLayoutEffect, useRef } from "../html.js";
import { Icon } from "./icons.js";
import { Coded } from "./wording.js";

/**
 * A modal dialog with a title and a button that closes it. Esc and a click beside it close it too.
 *
 * @param {{
 *   title: any, onClose: () => void, children?: any, foot?: any, class?: string, role?: string, closeLabel?: string, sticky?: boolean,
 *   head?: any, describedBy?: string, onKeyDown?: (event: KeyboardEvent) => void,
 * }} props  `sticky`: a click beside it does not close it; `head`: what stands between the title and the button
 */
export function Dialog({
  title, onClose, children, foot, class: extra = "", role = "dialog", closeLabel = "Close", sticky = false, head, describedBy, onKeyDown,
}) {
  const ref = useRef(/** @type {HTMLDialogElement | null} */ (null));
  const closing = useRef(onClose);
  closing.current = onClose;
  const id = useId();

  useLayoutEffect(() => {
    const dialog = /** @type {HTMLDialogElement} */ (ref.current);
    const before = document.activeElement;
    dialog.showModal();
    const first = /** @type {HTMLElement | null} */ (dialog.querySelector("[data-focus]"));
    first?.focus();
    return () => {
      dialog.close();
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);

  // Esc: the state of the page decides what is shown, not the browser.
  const cancelled = (/** @type {Event} */ event) => {
    if (event.target !== ref.current) return; // a file chooser inside was cancelled
    event.preventDefault();
    closing.current();
  };
  const clicked = (/** @type {MouseEvent} */ event) => {
    if (!sticky && event.target === ref.current) closing.current();
  };

  return html`<dialog ref=${ref} class=${extra} role=${role} aria-labelledby=${id} aria-describedby=${describedBy}
    onCancel=${cancelled} onClick=${clicked} onKeyDown=${onKeyDown}>
    <div class="dialog-head">
      <h2 id=${id}>${title}</h2>
      ${head}
      <button type="button" class="icon-button" aria-label=${closeLabel} title=${closeLabel} onClick=${() => onClose()}>
        <${Icon} name="cross" />
      </button>
    </div>
    <div class="dialog-body">${children}</div>
    ${foot && html`<div class="dialog-foot">${foot}</div>`}
  </dialog>`;
}

/** Which dialog of the page itself is open: "help", "phone" or none. The menu and keys open one. */
export const overlay = signal("");

/**
 * @typedef {{title: string, text: any, action: string, danger?: boolean, done: (yes: boolean) => void}} Confirmation
 */

const confirmation = signal(/** @type {Confirmation | null} */ (null));

/**
 * Ask the user whether to go on. The focus is on the button that does nothing.
 *
 * @param {{title: string, text: any, action: string, danger?: boolean}} what
 * @returns {Promise<boolean>}
 */
export function confirm(what) {
  return new Promise((resolve) => {
    confirmation.value = { ...what, done: (yes) => { confirmation.value = null; resolve(yes); } };
  });
}

/** Shows the confirmation that is asked for, if there is one. */
export function ConfirmationDialog() {
  const asked = confirmation.value;
  if (!asked) return null;
  const foot = html`
    <button type="button" class="button" data-focus onClick=${() => asked.done(false)}>Cancel</button>
    <button type="button" class="button ${asked.danger ? "danger" : "primary"}" onClick=${() => asked.done(true)}>${asked.action}</button>`;
  return html`<${Dialog} title=${asked.title} role="alertdialog" onClose=${() => asked.done(false)} foot=${foot}>
    <div class="soft">${asked.text}</div>
  <//>`;
}

/** @typedef {{id: number, text: string, tone: string}} Toast */

const toasts = signal(/** @type {Toast[]} */ ([]));
let lastToast = 0;

/**
 * Show a short message for a few seconds: what was just done, or why it could not be.
 *
 * @param {string} text
 * @param {"" | "bad"} [tone]
 */
export function toast(text, tone = "") {
  const id = ++lastToast;
  toasts.value = [...toasts.value.slice(-2), { id, text, tone }];
  setTimeout(() => { toasts.value = toasts.value.filter((one) => one.id !== id); }, tone === "bad" ? 8000 : 3500);
}

/**
 * Run something that may fail, and show why if it does.
 *
 * @template T
 * @param {Promise<T> | (() => Promise<T>)} work
 * @param {string} [done] shown when it succeeded
 * @returns {Promise<T | undefined>}
 */
export async function attempt(work, done) {
  try {
    const result = await (typeof work === "function" ? work() : work);
    if (done) toast(done);
    return result;
  } catch (error) {
    toast(problemOf(error), "bad");
    return undefined;
  }
}

/** What the gateway says that to do about an error where a program has made it: no help to a person. */
const FOR_PROGRAMS = new Set(["fix the params", "fix the JSON", "fix the structure", "check the method", "investigate"]);

/**
 * What an error says to people: its message, and what to do about it where the gateway says so.
 *
 * @param {unknown} error
 * @returns {string}
 */
export function problemOf(error) {
  const known = /** @type {{message?: string, data?: any}} */ (error ?? {});
  const hint = [known.data?.action, known.data?.hint].find((text) => typeof text === "string" && text && !FOR_PROGRAMS.has(text));
  const message = known.message || "It did not work.";
  return hint && !message.includes(hint) ? `${message} (${hint})` : message;
}

/** The short messages that are shown now. */
export function Toasts() {
  return html`<div class="toasts" role="status">
    ${toasts.value.map((one) => html`<div key=${one.id} class="toast ${one.tone}">
      <${Icon} name=${one.tone === "bad" ? "alert" : "check"} /><span><${Coded} text=${one.text} /></span>
    </div>`)}
  </div>`;
}

/**
 * Copy a text, and say so.
 *
 * @param {string} text
 * @param {string} [what]
 */
export async function copy(text, what = "Copied") {
  try {
    await navigator.clipboard.writeText(text);
    toast(what);
  } catch {
    // Without TLS and away from loopback there is no clipboard for pages. A selected field can still be copied by hand.
    toast("The browser does not let this page copy. Select the text and copy it.", "bad");
  }
}

/**
 * Offer a text as a file to keep.
 *
 * @param {{name: string, mimeType: string, text: string}} file
 */
export function download(file) {
  const address = URL.createObjectURL(new Blob([file.text], { type: file.mimeType }));
  const link = document.createElement("a");
  link.href = address;
  link.download = file.name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/**
 * Call a function when a key is pressed anywhere on the page, but not while a text is typed or a dialog is open.
 *
 * @param {(event: KeyboardEvent) => void} handler
 */
export function useShortcuts(handler) {
  const current = useRef(handler);
  current.current = handler;
  useEffect(() => {
    const pressed = (/** @type {KeyboardEvent} */ event) => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
      const target = /** @type {HTMLElement | null} */ (event.target);
      if (target?.closest("input, textarea, select, [contenteditable], dialog, [role=menu]")) return;
      current.current(event);
    };
    document.addEventListener("keydown", pressed);
    return () => document.removeEventListener("keydown", pressed);
  }, []);
}
