/**
 * Search in the list of sessions: titles at once, the full text of messages on Enter or after a pause.
 */

import { html, useEffect, useRef, useState } from "../../html.js";
import { app } from "../../state/app.js";
import { problemOf } from "../dialog.js";
import { Icon } from "../icons.js";
import { Marked, lastPart, nameOf, pathOf } from "../wording.js";

/** Milliseconds without a key after which messages are searched. */
const PAUSE = 350;

/** @typedef {{agent: string, sessionId: string, title: string, cwd: string, number: number, from: string, text: string}} Match */

/**
 * The state of the search field and what was found for it.
 */
export function useSearch() {
  const [query, setQuery] = useState("");
  const [found, setFound] = useState(/** @type {Match[]} */ ([]));
  const [state, setState] = useState("");
  const timer = useRef(/** @type {any} */ (0));
  const latest = useRef("");

  const look = async (/** @type {string} */ text) => {
    clearTimeout(timer.current);
    const wanted = text.trim();
    latest.current = wanted;
    if (wanted.length < 2) {
      setFound([]);
      setState("");
      return;
    }
    setState("searching");
    try {
      const result = await app.search(wanted);
      if (latest.current !== wanted) return; // another search began meanwhile
      setFound(result);
      setState("done");
    } catch (error) {
      if (latest.current === wanted) setState(problemOf(error));
    }
  };
  const type = (/** @type {string} */ text) => {
    setQuery(text);
    clearTimeout(timer.current);
    if (!text.trim()) look("");
    else timer.current = setTimeout(() => look(text), PAUSE);
  };
  const pressed = (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "Enter") {
      event.preventDefault();
      look(query);
    } else if (event.key === "ArrowDown") {
      event.preventDefault();
      event.stopPropagation();
      /** @type {HTMLElement | null} */ (document.querySelector(".session-list .session-link"))?.focus();
    } else if (event.key === "Escape") {
      event.stopPropagation();
      if (query) type("");
      else /** @type {HTMLElement} */ (event.target).blur();
    }
  };
  useEffect(() => () => clearTimeout(timer.current), []);
  return { query, found, state, type, pressed, look };
}

/** @param {{search: ReturnType<typeof useSearch>}} props */
export function SearchResults({ search }) {
  const { found, state, query } = search;
  if (!state) return null;
  if (state === "searching" && !found.length) return html`<p class="list-note" role="status"><${Icon} name="spinner" class="spin" />Searching messages…</p>`;
  if (state !== "searching" && state !== "done") return html`<p class="list-note bad" role="status"><${Icon} name="alert" />${state}</p>`;
  return html`<section aria-label="Found in messages">
    <h2 class="list-heading">In messages</h2>
    ${!found.length && html`<p class="list-note" role="status">Nothing in the messages.</p>`}
    <ul role="list">
      ${found.map((match) => html`<li key=${`${match.agent}/${match.sessionId}/${match.number}`} class="session-row">
        <a class="session-link found" href=${`#${pathOf(match)}`}>
          <${Icon} name=${match.from === "user" ? "user" : "question"} label=${match.from === "user" ? "your message" : "the agent's message"} />
          <span class="session-name truncate">${nameOf(match)}</span>
          <span class="session-time">${lastPart(match.cwd)}</span>
          <span class="snippet"><${Marked} text=${match.text} query=${query} /></span>
        </a>
      </li>`)}
    </ul>
  </section>`;
}

