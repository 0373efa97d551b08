/**
 * Words for numbers, times, places and names, and text that may deceive made visible.
 */

import { html } from "../html.js";
import { exact, oneLine } from "../present/text.js";
import { app } from "../state/app.js";

/**
 * How long ago something was, in a word or two: "now", "5 min", "3 h", "yesterday", "12 Mar".
 *
 * @param {number} seconds since 1970
 * @param {number} [now]
 * @returns {string}
 */
export function ago(seconds, now = Date.now() / 1000) {
  const passed = Math.max(0, now - seconds);
  if (passed < 60) return "now";
  if (passed < 3600) return `${Math.floor(passed / 60)} min`;
  const then = new Date(seconds * 1000);
  const today = new Date(now * 1000);
  if (passed < 12 * 3600 || then.toDateString() === today.toDateString()) return `${Math.floor(passed / 3600)} h`;
  const days = daysBetween(then, today);
  if (days <= 1) return "yesterday";
  if (days < 7) return then.toLocaleDateString("en", { weekday: "long" });
  const year = then.getFullYear() === today.getFullYear() ? undefined : "numeric";
  return then.toLocaleDateString("en-GB", { day: "numeric", month: "short", year });
}

/** The number of midnights between two times. @param {Date} from @param {Date} to */
export function daysBetween(from, to) {
  const start = new Date(from.getFullYear(), from.getMonth(), from.getDate());
  const end = new Date(to.getFullYear(), to.getMonth(), to.getDate());
  return Math.round((end.getTime() - start.getTime()) / 86_400_000);
}

/** A time in full, for a title or an entry of a log. @param {number | string} time seconds since 1970, or as ISO 8601 writes it */
export const fullTime = (time) => new Date(typeof time === "number" ? time * 1000 : time).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" });

/**
 * A number with its noun: `count(1, "file")` is "1 file".
 *
 * @param {number} number
 * @param {string} noun
 * @param {string} [many]
 */
export const count = (number, noun, many = `${noun}s`) => `${number.toLocaleString("en")} ${number === 1 ? noun : many}`;

/** A size in bytes as people write it. @param {number} bytes */
export function size(bytes) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let at = 0;
  let rest = bytes;
  while (rest >= 1000 && at < units.length - 1) {
    rest /= 1000;
    at += 1;
  }
  return `${at && rest < 10 ? rest.toFixed(1) : Math.round(rest)} ${units[at]}`;
}

/** A length of time as people say it, for lists of limits. @param {number} seconds */
export function span(seconds) {
  if (seconds < 90) return count(Math.round(seconds), "second");
  if (seconds < 5400) return count(Math.round(seconds / 60), "minute");
  if (seconds < 129_600) return count(Math.round(seconds / 3600), "hour");
  return count(Math.round(seconds / 86_400), "day");
}

/** The last part of a path; the whole of it for a root. @param {string} path */
export const lastPart = (path) => path.replace(/[\\/]+$/, "").split(/[\\/]/).pop() || path || "/";

/** A path with the home directory as `~`. Only the usual places of home directories are known here. @param {string} path */
export const shortPath = (path) => path.replace(/^(?:\/home\/[^/]+|\/Users\/[^/]+|\/root)(?=\/|$)/, "~");

/** What a session is called: its title, or how it began. @param {{title?: string | null, text?: string | null}} row */
export const nameOf = (row) => oneLine(String(row.title || row.text || "")) || "New session";

/** A state as it can be known: without a connection nobody knows whether a session still runs. @param {string} state */
export const lastSeen = (state) => (state === "running" && app.lost.value ? "unseen" : state);

/** What an agent is called by itself; its name in the gateway where that is not known. @param {string} name */
export const agentTitle = (name) => oneLine(app.info.value?.agents?.find((agent) => agent.name === name)?.title || name);

/** The address of a session on this page. @param {{agent: string, sessionId: string}} row */
export const pathOf = (row) => `/session/${encodeURIComponent(row.agent)}/${encodeURIComponent(row.sessionId)}`;

/** The address of a session for others who are signed in. @param {{agent: string, sessionId: string}} row */
export const addressOf = (row) => `${location.origin}${location.pathname}#${pathOf(row)}`;

/** A sentence with what stands between backticks as code. @param {{text: string}} props */
export function Coded({ text }) {
  const parts = String(text ?? "").split("`");
  if (parts.length < 3 || parts.length % 2 === 0) return html`${text}`;
  return html`${parts.map((part, at) => (at % 2 ? html`<code>${part}</code>` : part))}`;
}

// What `exact` puts in place of a character that would not be seen.
const NAMED = /(<U\+[0-9A-F]{4,6}>|[\u2400-\u2421])/u;

/**
 * A text in which characters that would not be seen are shown by their names, so that it is what it looks like.
 *
 * @param {{text: string}} props
 */
export function Exact({ text }) {
  const parts = exact(String(text ?? "")).split(NAMED); // an agent may send anything in its place
  if (parts.length === 1) return html`${parts[0]}`;
  return html`${parts.map((part, at) => (at % 2 ? html`<span class="control-character" title="a character that would not be seen">${part}</span>` : part))}`;
}

/**
 * A text with the parts that match a search marked.
 *
 * @param {{text: string, query: string}} props
 */
export function Marked({ text, query }) {
  const words = query.trim().split(/\s+/).filter((word) => word.length > 0).map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  if (!words.length) return html`${text}`;
  const parts = text.split(new RegExp(`(${words.join("|")})`, "giu"));
  return html`${parts.map((part, at) => (at % 2 ? html`<mark>${part}</mark>` : part))}`;
}
