/**
 * What a person is told without looking: by a polite live region, and by notifications while the page is hidden.
 *
 * Announced are the end of a turn, a request that waits, and the connection when it is lost or back; never the text of the agent.
 */

import { html, signal, useEffect, useRef } from "../html.js";
import { app } from "../state/app.js";
import { nameOf, pathOf } from "./wording.js";

/** What the live region says. */
const said = signal("");

/** Milliseconds after which a lost connection is announced: most are back before. */
const PATIENCE = 2500;

/** Say something to screen readers. @param {string} text */
export function announce(text) {
  // The same sentence twice is read again only if it differs.
  said.value = said.value === text ? `${text} ` : text;
}

/** @returns {"granted" | "denied" | "default" | "missing"} */
export const notificationState = () => ("Notification" in globalThis && globalThis.isSecureContext ? Notification.permission : "missing");

/** Ask the person, through the browser, whether notifications are wanted. */
export async function allowNotifications() {
  const state = notificationState();
  if (state !== "default") return state;
  return Notification.requestPermission();
}

/**
 * Show a notification if the person wants them and does not look at the page.
 *
 * @param {string} title
 * @param {{body: string, tag: string, path: string}} what
 */
export async function notify(title, { body, tag, path }) {
  if (!document.hidden || !app.preferences.peek().notifications || notificationState() !== "granted") return;
  const options = { body, tag, data: { path }, icon: "/icons/icon-192.png", badge: "/icons/icon-192.png" };
  const registration = await navigator.serviceWorker?.getRegistration();
  if (registration) {
    await registration.showNotification(title, options); // phones have no other way
    return;
  }
  const shown = new Notification(title, options);
  shown.onclick = () => {
    window.focus();
    app.go(path);
  };
}

/** What is said about a change of a session. */
const NEWS = {
  waiting: ["A request waits for you", (/** @type {string} */ name) => `${name} waits for you.`],
  ended: ["The turn is finished", (/** @type {string} */ name) => `The turn is finished: ${name}.`],
  failed: ["The turn failed", (/** @type {string} */ name) => `The turn failed: ${name}.`],
};

/** Announce what happens in all sessions. @returns {() => void} ends it */
function followSessions() {
  return app.subscribe((kind, row) => {
    if (kind === "waiting" && app.info.peek()?.role === "watch") return;
    const name = nameOf(row);
    const [title, sentence] = /** @type {[string, (name: string) => string]} */ (NEWS[kind]);
    announce(sentence(name));
    notify(title, { body: name, tag: `${row.agent}/${row.sessionId}`, path: pathOf(row) });
  });
}

/** Announce that the connection was lost, or is back. */
function useConnectionNews() {
  const lost = useRef(false);
  const state = app.connection.value;
  useEffect(() => {
    if (state === "open" && lost.current) {
      lost.current = false;
      announce("Connected again.");
    }
    if (state === "open" || state === "connecting" || state === "signed-out") return undefined;
    const timer = setTimeout(() => {
      lost.current = true;
      announce("The connection is lost. Trying again.");
    }, PATIENCE);
    return () => clearTimeout(timer);
  }, [state]);
}

/** The live region. */
export function Announcer() {
  useConnectionNews();
  useEffect(followSessions, []);
  return html`<div class="visually-hidden" role="status" aria-live="polite" id="announcements">${said.value}</div>`;
}
