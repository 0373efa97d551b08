/**
 * The list of sessions: all agents and directories, those that wait for the user first, with search, filters and groups.
 */

import { html, useEffect, useRef, useState } from "../../html.js";
import { app } from "../../state/app.js";
import { attempt, confirm, copy, overlay } from "../dialog.js";
import { Icon, Mark, StateMark } from "../icons.js";
import { MenuButton } from "../menu.js";
import { SearchResults, useSearch } from "./search.js";
import { Marked, addressOf, ago, count, daysBetween, lastPart, lastSeen, nameOf, pathOf, shortPath } from "../wording.js";

/** @typedef {import("../../types.js").Row} Row */

const FILTERS = [["", "All"], ["waiting", "Waiting"], ["running", "Running"], ["failed", "Failed"]];
const GROUPINGS = { time: "By time", project: "By project", agent: "By agent" };

/** Whether one may open and steer sessions here. */
export const mayDrive = () => app.info.value?.role !== "watch";

/**
 * Put sessions into groups with a heading each: first those that wait for the user and those that run, then the others as chosen.
 *
 * @param {Row[]} rows
 * @param {string} grouping
 * @param {number} now
 * @returns {[string, Row[]][]}
 */
export function grouped(rows, grouping, now = Date.now() / 1000) {
  /** @type {Map<string, Row[]>} */
  const groups = new Map();
  const sorted = [...rows].sort((a, b) => b.updated - a.updated);
  const order = (/** @type {Row} */ row) => (row.state === "waiting" ? 0 : row.state === "running" || row.state === "unseen" ? 1 : 2);
  sorted.sort((a, b) => order(a) - order(b));
  for (const row of sorted) {
    const name = headingOf(row, grouping, now);
    groups.set(name, [...(groups.get(name) ?? []), row]);
  }
  return [...groups];
}

/** @param {Row} row @param {string} grouping @param {number} now */
function headingOf(row, grouping, now) {
  if (row.state === "waiting") return "Waiting for you";
  if (row.state === "running") return "Running";
  if (row.state === "unseen") return "Running when last seen";
  if (grouping === "project") return shortPath(row.cwd);
  if (grouping === "agent") return row.agent;
  const days = daysBetween(new Date(row.updated * 1000), new Date(now * 1000));
  return days <= 0 ? "Today" : days === 1 ? "Yesterday" : days < 7 ? "This week" : days < 31 ? "This month" : "Older";
}

/** Whether a session is found by its title, text, directory or agent. @param {Row} row @param {string} query */
export function matches(row, query) {
  const text = `${row.title ?? ""} ${row.text ?? ""} ${row.cwd} ${row.agent}`.toLowerCase();
  return query.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}

/** Ask, then delete a session. @param {Row} row @returns {Promise<boolean>} */
export async function deleteAsked(row) {
  const yes = await confirm({
    title: "Delete this session?",
    text: html`<p><strong>${nameOf(row)}</strong></p><p>Its messages are removed from the gateway for everybody. Files that it changed stay as they are. This cannot be undone.</p>`,
    action: "Delete session",
    danger: true,
  });
  if (!yes) return false;
  await attempt(() => app.deleteSession(row), "Session deleted");
  return true;
}

/** Fork a session, and show the new one. @param {Row} row */
export async function forkAndOpen(row) {
  const forked = await attempt(() => app.openSession(row.agent, row.sessionId).fork(), "This is the fork");
  if (forked) app.go(pathOf({ agent: forked.agent, sessionId: forked.id }));
}

/** The sidebar, or on a phone the first screen. */
export function Sidebar() {
  const [filter, setFilter] = useState("");
  const [grouping, setGrouping] = useState(() => localStorage.getItem("antiphon.grouping") ?? "time");
  const [renaming, setRenaming] = useState("");
  const search = useSearch();
  const list = useRef(/** @type {HTMLElement | null} */ (null));
  useMinuteTick();

  const rows = app.sessions.value.map((row) => (lastSeen(row.state) === row.state ? row : { ...row, state: /** @type {const} */ ("unseen") }));
  const query = search.query.trim();
  const shown = rows.filter((row) => (!filter || row.state === filter) && (!query || matches(row, query)));
  const isNothing = Boolean(query) && !shown.length && search.state === "done" && !search.found.length;
  const route = app.route.value;
  const counts = (/** @type {string} */ state) => rows.filter((row) => row.state === state).length;
  const group = (/** @type {string} */ name) => {
    localStorage.setItem("antiphon.grouping", name);
    setGrouping(name);
  };

  // The arrows move the focus over the links; Tab still visits each of them.
  const pressed = (/** @type {KeyboardEvent} */ event) => {
    const target = /** @type {HTMLElement} */ (event.target);
    if (target.closest("input.inline-edit")) return;
    const step = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 }[event.key];
    if (step !== undefined && !(target instanceof HTMLInputElement && event.key.length === 1)) {
      event.preventDefault();
      moveFocus(step);
    } else if (event.key === "r" && target.dataset.session) {
      event.preventDefault();
      setRenaming(target.dataset.session);
    }
  };

  return html`<nav class="sidebar" aria-label="Sessions" onKeyDown=${pressed}>
    <header class="sidebar-head">
      <a class="brand" href="#/"><${Mark} /><span>Antiphon</span></a>
      ${mayDrive() && html`<a class="icon-button" href="#/new" aria-label="New session" title="New session (n)"><${Icon} name="plus" /></a>`}
      <${PageMenu} />
    </header>
    <div class="sidebar-tools">
      <div class="search-field">
        <${Icon} name="search" />
        <input id="search" type="search" class="input" placeholder="Search sessions" aria-label="Search sessions" autocomplete="off"
          value=${search.query} onInput=${(/** @type {any} */ event) => search.type(event.target.value)}
          onKeyDown=${(/** @type {KeyboardEvent} */ event) => search.pressed(event)} />
        <kbd aria-hidden="true">/</kbd>
        ${search.query && html`<button type="button" class="icon-button small" aria-label="Clear the search" onClick=${() => { search.type(""); document.getElementById("search")?.focus(); }}><${Icon} name="cross" /></button>`}
      </div>
      <div class="filter-row">
        <div class="chips" role="group" aria-label="Show">
          ${FILTERS.map(([state, word]) => {
            const number = state ? counts(state) : 0;
            if (state && !number && filter !== state) return null;
            if (!state && !filter && FILTERS.every(([other]) => !other || !counts(other))) return html`<span class="faint chip-note">${query ? isNothing && "No hits" : rows.length ? count(rows.length, "session") : ""}</span>`;
            return html`<button type="button" class="chip" aria-pressed=${filter === state} onClick=${() => setFilter(state)}>
              ${word}${number > 0 && html`<span class="chip-count">${number}</span>`}
            </button>`;
          })}
        </div>
        <${MenuButton} label="Group sessions" icon="filter" class="icon-button small" items=${() => Object.entries(GROUPINGS).map(([name, label]) => ({
          label, checked: grouping === name, onSelect: () => group(name),
        }))} />
      </div>
    </div>
    <div class="session-list" ref=${list}>
      ${grouped(shown, grouping).map(([heading, members]) => html`<section key=${heading} aria-label=${heading}>
        <h2 class="list-heading ${heading === "Waiting for you" ? "warn" : ""}">${heading}</h2>
        <ul role="list">
          ${members.map((row) => html`<${SessionRow} key=${`${row.agent}/${row.sessionId}`} row=${row} query=${query}
            current=${route.screen === "session" && route.agent === row.agent && route.id === row.sessionId}
            renaming=${renaming === `${row.agent}/${row.sessionId}`} setRenaming=${setRenaming} />`)}
        </ul>
      </section>`)}
      ${query && !isNothing && html`<${SearchResults} search=${search} />`}
      ${!shown.length && !(query && search.found.length) && html`<${EmptyList} rows=${rows} query=${query} isNothing=${isNothing} filter=${filter} clear=${() => { setFilter(""); search.type(""); }} />`}
      ${!query && app.hasMoreSessions.value && html`<button type="button" class="button quiet wide" onClick=${() => attempt(() => app.moreSessions())}>Show older sessions</button>`}
    </div>
  </nav>`;
}

/** Move the focus over the sessions of the list. @param {number} step */
export function moveFocus(step) {
  const links = /** @type {HTMLElement[]} */ ([...document.querySelectorAll(".session-list .session-link")]);
  if (!links.length) return;
  const at = links.indexOf(/** @type {HTMLElement} */ (document.activeElement));
  const current = links.findIndex((link) => link.getAttribute("aria-current"));
  const next = at >= 0 ? at + step : current >= 0 ? current + step : 0;
  links[Math.min(Math.max(next, 0), links.length - 1)].focus();
}

/** Draw again each minute, so that "5 min" becomes "6 min". */
function useMinuteTick() {
  const [, tick] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => { if (!document.hidden) tick((number) => number + 1); }, 60_000);
    return () => clearInterval(timer);
  }, []);
}

/**
 * @param {{row: Row, current: boolean, renaming: boolean, setRenaming: (key: string) => void, query: string}} props
 */
function SessionRow({ row, current, renaming, setRenaming, query }) {
  const key = `${row.agent}/${row.sessionId}`;
  const items = () => [
    mayDrive() && { label: "Rename", icon: "edit", key: "r", onSelect: () => setRenaming(key) },
    mayDrive() && { label: "Fork", icon: "fork", onSelect: () => forkAndOpen(row) },
    { label: "Copy link", icon: "link", onSelect: () => copy(addressOf(row), "Link copied") },
    row.mayDelete && { label: "Delete…", icon: "trash", danger: true, onSelect: () => deleteAsked(row) },
  ];
  const name = nameOf(row);
  return html`<li class="session-row ${current ? "current" : ""} ${row.state}">
    ${renaming
      ? html`<${TitleEditor} title=${row.title ?? ""} onDone=${(/** @type {string | null} */ title) => {
          setRenaming("");
          if (title !== null) attempt(() => app.openSession(row.agent, row.sessionId).rename(title));
        }} />`
      : html`<a class="session-link" href=${`#${pathOf(row)}`} aria-current=${current ? "page" : undefined} data-session=${key}>
          <${StateMark} state=${row.state} wordless />
          <span class="session-name truncate"><${Marked} text=${name} query=${query} /></span>
          <time class="session-time" dateTime=${new Date(row.updated * 1000).toISOString()}>${ago(row.updated)}</time>
          <span class="session-place truncate"><span title=${row.cwd}>${lastPart(row.cwd)}</span> · ${row.agent}${row.waiting > 0 ? ` · ${count(row.waiting, "request")}` : ""}</span>
        </a>
        <${MenuButton} label=${`Actions for ${name}`} class="icon-button small row-menu" items=${items} />`}
  </li>`;
}

/**
 * A title as a field in its place: Enter keeps it, Esc does not. An empty one gives the title back to the agent.
 *
 * @param {{title: string, onDone: (title: string | null) => void}} props
 */
export function TitleEditor({ title, onDone }) {
  const field = useRef(/** @type {HTMLInputElement | null} */ (null));
  const over = useRef(false);
  const done = (/** @type {string | null} */ value) => {
    if (over.current) return; // the field loses the focus when it goes
    over.current = true;
    onDone(value === title ? null : value);
  };
  useEffect(() => field.current?.select(), []);
  const pressed = (/** @type {KeyboardEvent} */ event) => {
    event.stopPropagation();
    if (event.key === "Enter" && !event.isComposing) done(field.current?.value.trim() ?? null);
    if (event.key === "Escape") done(null);
  };
  return html`<input ref=${field} class="input inline-edit" aria-label="Title of the session" placeholder="Title; empty: the agent's own" maxlength="200"
    value=${title} onKeyDown=${pressed} onBlur=${() => done(field.current?.value.trim() ?? null)} />`;
}

/** @param {{rows: Row[], query: string, isNothing: boolean, filter: string, clear: () => void}} props */
function EmptyList({ rows, query, isNothing, filter, clear }) {
  if (rows.length) {
    return html`<div class="empty-list">
      <p class="soft" role=${isNothing ? "status" : undefined}>${isNothing ? `Nothing was found for “${query}”.` : query ? `No title has “${query}”.` : `No session is ${filter}.`}</p>
      <button type="button" class="button small" onClick=${clear}>Show all sessions</button>
    </div>`;
  }
  if (!app.listed.value) return html`<div class="skeletons" aria-hidden="true">${[0, 1, 2, 3].map(() => html`<div class="skeleton" />`)}</div>`;
  return html`<div class="empty-list">
    <p class="soft">No sessions yet.</p>
    ${mayDrive() && html`<a class="button primary" href="#/new"><${Icon} name="plus" />Start the first one</a>`}
  </div>`;
}

/** The menu of the page: settings, administration, the phone, keys, about. */
function PageMenu() {
  const items = () => [
    mayDrive() && { label: "Open on another device", icon: "phone", onSelect: () => { overlay.value = "phone"; } },
    { label: "Settings", icon: "settings", href: "#/settings" },
    app.info.value?.role === "admin" && { label: "Administration", icon: "shield", href: "#/admin" },
    { label: "Keys", icon: "keyboard", key: "?", onSelect: () => { overlay.value = "help"; } },
    { label: "About", icon: "info", href: "#/about" },
    { label: "Sign out…", icon: "user", onSelect: async () => (await import("./settings.js")).signOutAsked() },
  ];
  return html`<${MenuButton} label="Menu" icon="menu" items=${items} />`;
}
