/**
 * Views that are loaded when they are first shown, so that the first screen is there after 120 kB.
 *
 * They are fetched when the browser has nothing else to do, too: a session then opens at once, and without a network as well, since the
 * service worker keeps what was fetched.
 */

import { html, signal } from "../html.js";
import { Icon } from "./icons.js";

/** Milliseconds after the start at which views are fetched that nobody has asked for yet. */
const AHEAD = 1500;

/** @type {(() => void)[]} */
const others = [];

/**
 * A component that loads another one.
 *
 * @param {() => Promise<any>} load imports its module
 * @param {string} name of the component in that module
 * @returns {(props: any) => any}
 */
export function lazy(load, name) {
  const component = signal(/** @type {any} */ (null));
  const problem = signal("");
  let asked = false;
  const begin = async () => {
    if (asked) return;
    asked = true;
    problem.value = "";
    try {
      component.value = (await load())[name];
    } catch {
      asked = false;
      problem.value = "This part of the page could not be loaded.";
    }
  };
  others.push(begin);
  return function Lazy(props) {
    if (component.value) return html`<${component.value} ...${props} />`;
    begin();
    return html`<div class="loading" role="status">
      ${problem.value
        ? html`<${Icon} name="alert" /><span>${problem.value}</span><button type="button" class="button small" onClick=${begin}>Try again</button>`
        : html`<${Icon} name="spinner" class="spin" /><span class="visually-hidden">Loading</span>`}
    </div>`;
  };
}

/** Fetch all views that are not there yet, one after the other, once the first screen is drawn. */
export function loadAhead() {
  const idle = globalThis.requestIdleCallback ?? ((/** @type {() => void} */ work) => setTimeout(work, 200));
  const next = () => {
    if (!navigator.onLine) {
      addEventListener("online", next, { once: true });
      return;
    }
    others.shift()?.();
    if (others.length) idle(next);
  };
  setTimeout(() => idle(next), AHEAD);
}
