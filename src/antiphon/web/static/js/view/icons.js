/**
 * The pictures of the page: line drawings on a grid of 20, in the colour of the text around them, and the mark of the project.
 *
 * An icon is decoration unless it has a label; beside each one that stands for a state there is a word.
 */

import { html } from "../html.js";

/** Path data by name. Lines of 1.6, round ends (css/base.css `.icon`). */
const PATHS = {
  alert: "M10 3.2 18 17H2L10 3.2Z M10 8.2v4 M10 14.6v.1",
  archive: "M3 4h14v3H3z M4.5 7v9h11V7 M8 10h4",
  "arrow-down": "M10 4v12 M5 11l5 5 5-5",
  "arrow-left": "M16 10H4 M9 5l-5 5 5 5",
  "arrow-up": "M10 16V4 M5 9l5-5 5 5",
  at: "M13 10a3 3 0 1 1-6 0 3 3 0 0 1 6 0Zm0 0v1.2a2 2 0 0 0 4 0V10a7 7 0 1 0-2.8 5.6",
  bell: "M5 14V9a5 5 0 0 1 10 0v5l1.5 1.5h-13L5 14Z M8.5 17.5h3",
  brain: "M10 5.2A2.7 2.7 0 0 0 4.9 6.4 3 3 0 0 0 3.8 11 3 3 0 0 0 6 15.3a2.4 2.4 0 0 0 4-.6m0-9.5a2.7 2.7 0 0 1 5.1 1.2 3 3 0 0 1 1.1 4.6A3 3 0 0 1 14 15.3a2.4 2.4 0 0 1-4-.6m0-9.5v9.5",
  check: "m4 10.5 4 4 8-9",
  "check-circle": "M17 10a7 7 0 1 1-14 0 7 7 0 0 1 14 0Z m-10.2.3 2.2 2.2 4.2-4.6",
  "chevron-down": "m5 8 5 5 5-5",
  "chevron-right": "m8 5 5 5-5 5",
  "chevron-up": "m5 12 5-5 5 5",
  circle: "M17 10a7 7 0 1 1-14 0 7 7 0 0 1 14 0Z",
  clock: "M17 10a7 7 0 1 1-14 0 7 7 0 0 1 14 0Z M10 6v4.2l2.6 1.6",
  columns: "M3 4h14v12H3z M10 4v12",
  copy: "M7 7V4h9v9h-3 M4 7h9v9H4z",
  cross: "m5 5 10 10 M15 5 5 15",
  diff: "M10 4v8 M6 8h8 M6 16h8",
  dot: "M10 10v.01",
  download: "M10 3v9 M6 8.5l4 4 4-4 M4 16.5h12",
  edit: "M4 16l.8-3.4L13 4.4a1.8 1.8 0 0 1 2.6 2.6L7.4 15.2 4 16Z M11.6 5.8l2.6 2.6",
  expand: "M12 4h4v4 M16 4l-5 5 M8 16H4v-4 M4 16l5-5",
  external: "M8 5H4v11h11v-4 M11 4h5v5 M16 4l-7 7",
  file: "M5 3h6l4 4v10H5z M11 3v4h4",
  filter: "M3 5h14 M6 10h8 M8.5 15h3",
  folder: "M3 5.5h5l1.5 2H17v8.5H3z",
  fork: "M6 7v2.5a2 2 0 0 0 2 2h4a2 2 0 0 0 2-2V7 M10 11.5V13 M7.6 5.2a1.6 1.6 0 1 1-3.2 0 1.6 1.6 0 0 1 3.2 0Z M15.6 5.2a1.6 1.6 0 1 1-3.2 0 1.6 1.6 0 0 1 3.2 0Z M11.6 14.8a1.6 1.6 0 1 1-3.2 0 1.6 1.6 0 0 1 3.2 0Z",
  globe: "M17 10a7 7 0 1 1-14 0 7 7 0 0 1 14 0Z M3.4 10h13.2 M10 3.2c2 2 2.8 4.2 2.8 6.8s-.8 4.8-2.8 6.8c-2-2-2.8-4.2-2.8-6.8S8 5.2 10 3.2Z",
  help: "M17 10a7 7 0 1 1-14 0 7 7 0 0 1 14 0Z M7.8 8a2.2 2.2 0 1 1 3.2 2c-.7.4-1 .8-1 1.6 M10 13.9v.1",
  image: "M3 4h14v12H3z m0 9 4-4 4 4 2-2 4 4 M13.4 7.6v.1",
  info: "M17 10a7 7 0 1 1-14 0 7 7 0 0 1 14 0Z M10 9.2v4 M10 6.6v.1",
  keyboard: "M2.5 5.5h15v9h-15z M5.5 8.5v.01 M8.5 8.5v.01 M11.5 8.5v.01 M14.5 8.5v.01 M6.5 11.8h7",
  link: "M8.5 11.5a3 3 0 0 0 4.2 0l2.6-2.6a3 3 0 0 0-4.2-4.2L10 5.8 M11.5 8.5a3 3 0 0 0-4.2 0l-2.6 2.6a3 3 0 0 0 4.2 4.2L10 14.2",
  list: "M7.5 5.5H17 M7.5 10H17 M7.5 14.5H17 M3.6 5.5v.01 M3.6 10v.01 M3.6 14.5v.01",
  menu: "M3.5 6h13 M3.5 10h13 M3.5 14h13",
  monitor: "M3 4h14v9.5H3z M7 16.5h6 M10 13.5v3",
  moon: "M16.5 11.8A7 7 0 1 1 8.2 3.5a5.6 5.6 0 0 0 8.3 8.3Z",
  more: "M4.8 10v.01 M10 10v.01 M15.2 10v.01",
  move: "M4 10h12 M12 6l4 4-4 4",
  paperclip: "m15.5 9.5-5.6 5.6a3.4 3.4 0 0 1-4.8-4.8l6-6a2.3 2.3 0 0 1 3.2 3.2l-6 6a1.1 1.1 0 0 1-1.6-1.6l5.4-5.4",
  pause: "M7.5 5v10 M12.5 5v10",
  phone: "M6 2.8h8v14.4H6z M9.2 14.8h1.6",
  play: "M6.5 4.5v11l9-5.5-9-5.5Z",
  plus: "M10 4v12 M4 10h12",
  question: "M3.5 4.5h13v9.5H11l-3.5 3v-3h-4z M8.4 7.8a1.7 1.7 0 1 1 2.4 1.6c-.5.3-.8.5-.8 1 M10 12v.01",
  refresh: "M16 8.5A6.3 6.3 0 0 0 4.6 7 M4 3.5V7h3.5 M4 11.5A6.3 6.3 0 0 0 15.4 13 M16 16.5V13h-3.5",
  rows: "M3 4h14v12H3z M3 10h14",
  search: "M14 8.8a5.2 5.2 0 1 1-10.4 0 5.2 5.2 0 0 1 10.4 0Z m-1.5 3.7 4 4",
  send: "M10 16V4 M5 9l5-5 5 5",
  settings: "M3.5 6.5h7 M14.5 6.5h2 M3.5 13.5h2 M9.5 13.5h7 M14.5 6.5a2 2 0 1 1-4 0 2 2 0 0 1 4 0Z M9.5 13.5a2 2 0 1 1-4 0 2 2 0 0 1 4 0Z",
  share: "M10 12.5v-9 M6.5 6.5 10 3l3.5 3.5 M5 10.5v6h10v-6",
  shield: "M10 2.8 16 5v4.6c0 3.6-2.4 6.2-6 7.6-3.6-1.4-6-4-6-7.6V5l6-2.2Z",
  slash: "M12.5 4l-5 12",
  spinner: "M17 10a7 7 0 0 0-7-7",
  stop: "M6 6h8v8H6z",
  sun: "M13.2 10a3.2 3.2 0 1 1-6.4 0 3.2 3.2 0 0 1 6.4 0Z M10 2.6v1.2 M10 16.2v1.2 M2.6 10h1.2 M16.2 10h1.2 M4.8 4.8l.8.8 M14.4 14.4l.8.8 M4.8 15.2l.8-.8 M14.4 5.6l.8-.8",
  terminal: "M2.8 4h14.4v12H2.8z M5.8 8l2.4 2-2.4 2 M10 12.4h4",
  tool: "M12.2 7.8 4.6 15.4 M16.4 6.2a3.8 3.8 0 0 1-5.2 4.2L9.6 8.8a3.8 3.8 0 0 1 4.2-5.2l-2 2.2.4 2 2 .4 2.2-2Z",
  trash: "M4 5.5h12 M8 5.5V3.5h4v2 M5.5 5.5l.7 11h7.6l.7-11 M8.4 8.8v4.6 M11.6 8.8v4.6",
  user: "M13 7a3 3 0 1 1-6 0 3 3 0 0 1 6 0Z M4 17a6 6 0 0 1 12 0",
  "wifi-off": "M3 3l14 14 M5.6 10.4A6.4 6.4 0 0 1 8.2 9 M2.8 7.6a10.6 10.6 0 0 1 3-1.9 M9 5a10.6 10.6 0 0 1 8.2 2.6 M12.6 9.4a6.4 6.4 0 0 1 1.8 1 M10 14.5v.1",
  wrap: "M3 5h14 M3 10h11a3 3 0 0 1 0 6h-3 M13 13.5 10.5 16l2.5 2.5 M3 15h4",
};

/**
 * One icon. With a label it is a picture that is read out; without, decoration.
 *
 * @param {{name: string, label?: string, class?: string}} props
 */
export function Icon({ name, label, class: extra = "" }) {
  const path = /** @type {Record<string, string>} */ (PATHS)[name] ?? PATHS.dot;
  // A dot is a line without a length: only its width is seen.
  const style = name === "dot" || name === "more" ? { strokeWidth: 2.6 } : undefined;
  return label
    ? html`<svg class="icon ${extra}" viewBox="0 0 20 20" role="img" aria-label=${label} style=${style}><path d=${path} /></svg>`
    : html`<svg class="icon ${extra}" viewBox="0 0 20 20" aria-hidden="true" style=${style}><path d=${path} /></svg>`;
}

/** Whether there is an icon of this name. @param {string} name */
export const hasIcon = (name) => name in PATHS;

/**
 * The mark of Antiphon: two voices that answer each other, as arcs around one point.
 *
 * @param {{size?: number}} props
 */
export function Mark({ size = 28 }) {
  return html`<svg class="mark" width=${size} height=${size} viewBox="0 0 32 32" aria-hidden="true">
    <path class="mark-first" d="M13.5 5.6a10.8 10.8 0 0 0 0 20.8" />
    <path class="mark-first" d="M13.2 11a5.4 5.4 0 0 0 0 10" />
    <path class="mark-second" d="M18.5 5.6a10.8 10.8 0 0 1 0 20.8" />
    <path class="mark-second" d="M18.8 11a5.4 5.4 0 0 1 0 10" />
  </svg>`;
}

/** How a state of a session looks and what it is called: an icon, a word, and a class for the colour. */
export const STATES = {
  waiting: { icon: "bell", word: "waiting for you", tone: "warn" },
  running: { icon: "spinner", word: "running", tone: "info" },
  unseen: { icon: "circle", word: "running when last seen", tone: "faint" },
  failed: { icon: "alert", word: "failed", tone: "bad" },
  idle: { icon: "circle", word: "idle", tone: "faint" },
};

/**
 * The state of a session as icon and word; the word can be left to screen readers.
 *
 * @param {{state: string, wordless?: boolean}} props
 */
export function StateMark({ state, wordless = false }) {
  const known = /** @type {Record<string, {icon: string, word: string, tone: string}>} */ (STATES)[state] ?? STATES.idle;
  return html`<span class="state ${known.tone}">
    <${Icon} name=${known.icon} class=${state === "running" ? "spin" : ""} />
    <span class=${wordless ? "visually-hidden" : ""}>${known.word}</span>
  </span>`;
}
