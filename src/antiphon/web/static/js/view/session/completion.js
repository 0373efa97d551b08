/**
 * Completion in the composer: slash commands at the start of a message, `@` and files of the directory anywhere.
 *
 * The list follows the pattern of a text field with a popup: the focus stays in the field, and the active option is named by
 * `aria-activedescendant`.
 */

import { html, useEffect, useLayoutEffect, useRef, useState } from "../../html.js";
import { Icon } from "../icons.js";

/** Milliseconds without a key after which files are asked for. */
const PAUSE = 80;

/**
 * What the text before the caret asks to complete.
 *
 * @param {string} text
 * @param {number} caret
 * @returns {{kind: "command" | "file", query: string, start: number} | null}
 */
export function wantedAt(text, caret) {
  const before = text.slice(0, caret);
  const command = /^\/([^\s/]*)$/.exec(before);
  if (command) return { kind: "command", query: command[1], start: 0 };
  const file = /(?:^|[\s(])@([^\s@]*)$/.exec(before);
  if (file) return { kind: "file", query: file[1], start: caret - file[1].length - 1 };
  return null;
}

/** @typedef {{value: string, label: string, detail: string, icon: string, open?: boolean}} Suggestion `open`: a directory, whose contents come next */

/**
 * The commands whose name or description fits what was typed, those that begin with it first.
 *
 * @param {import("../../types.js").Command[]} commands
 * @param {string} query
 * @returns {Suggestion[]}
 */
export function commandSuggestions(commands, query) {
  const wanted = query.toLowerCase();
  const rank = (/** @type {import("../../types.js").Command} */ command) => {
    const name = command.name.toLowerCase();
    if (name.startsWith(wanted)) return 0;
    return name.includes(wanted) ? 1 : wanted.length > 2 && command.description?.toLowerCase().includes(wanted) ? 2 : 3;
  };
  return commands
    .filter((command) => rank(command) < 3)
    .sort((a, b) => rank(a) - rank(b))
    .map((command) => ({
      value: `/${command.name} `,
      label: `/${command.name}`,
      detail: [command.input?.hint, command.description].filter(Boolean).join(" · "),
      icon: "",
    }));
}

/**
 * Suggestions for the text at the caret, and the keys that choose among them.
 *
 * @param {{
 *   session: any, text: string, caret: number, apply: (text: string, caret: number) => void, picked: (path: string) => void,
 * }} props
 */
export function useCompletion({ session, text, caret, apply, picked }) {
  const [dismissed, setDismissed] = useState("");
  const [active, setActive] = useState(0);
  const [files, setFiles] = useState(/** @type {Suggestion[]} */ ([]));
  const wanted = wantedAt(text, caret);
  const key = wanted ? `${wanted.kind}:${wanted.start}:${wanted.query}` : "";
  const asked = useRef("");

  useEffect(() => {
    setActive(0);
    if (wanted?.kind !== "file") {
      setFiles([]);
      return undefined;
    }
    asked.current = key;
    const timer = setTimeout(async () => {
      try {
        const found = await session.files(wanted.query);
        if (asked.current === key) setFiles((found.files ?? found).slice(0, 50).map(fileSuggestion));
      } catch {
        if (asked.current === key) setFiles([]); // completion is a help, not a need
      }
    }, PAUSE);
    return () => clearTimeout(timer);
  }, [key]);

  /** @type {Suggestion[]} */
  const suggestions = !wanted || dismissed === key ? [] : wanted.kind === "command" ? commandSuggestions(session.commands.value ?? [], wanted.query) : files;
  const chosen = Math.min(active, Math.max(0, suggestions.length - 1));

  const choose = (/** @type {Suggestion} */ suggestion) => {
    if (!wanted) return;
    const after = text.slice(caret);
    const put = suggestion.open ? suggestion.value : suggestion.value.trimEnd() + (/^\s/.test(after) ? "" : " ");
    if (wanted.kind === "file" && !suggestion.open) picked(suggestion.value.trim().slice(1));
    apply(text.slice(0, wanted.start) + put + after, wanted.start + put.length);
  };
  /** Take a key if the list is open; true if it was taken. @param {KeyboardEvent} event */
  const pressed = (event) => {
    if (!suggestions.length || event.isComposing) return false;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      setActive((chosen + (event.key === "ArrowDown" ? 1 : suggestions.length - 1)) % suggestions.length);
    } else if ((event.key === "Enter" && !event.shiftKey) || event.key === "Tab") {
      // A command that was typed in full is sent by Enter, not completed once more.
      if (event.key === "Enter" && suggestions[chosen].value.trim() === text.trim()) return false;
      choose(suggestions[chosen]);
    } else if (event.key === "Escape") {
      setDismissed(key);
    } else {
      return false;
    }
    event.preventDefault();
    return true;
  };
  return { suggestions, chosen, choose, pressed };
}

/** @param {{path: string, directory: boolean}} file @returns {Suggestion} */
function fileSuggestion({ path, directory }) {
  const bare = path.replace(/\/$/, "");
  const at = bare.lastIndexOf("/") + 1;
  return {
    value: directory ? `@${bare}/` : `@${bare} `,
    label: bare.slice(at) + (directory ? "/" : ""),
    detail: bare.slice(0, at),
    icon: directory ? "folder" : "file",
    open: directory,
  };
}

/**
 * The open list. It is above the field, so that the keyboard of a phone does not hide it.
 *
 * @param {{id: string, suggestions: Suggestion[], chosen: number, choose: (suggestion: Suggestion) => void}} props
 */
export function CompletionList({ id, suggestions, chosen, choose }) {
  const list = useRef(/** @type {HTMLUListElement | null} */ (null));
  useLayoutEffect(() => {
    list.current?.children[chosen]?.scrollIntoView({ block: "nearest" });
  }, [chosen, suggestions]);
  return html`<ul ref=${list} id=${id} class="completion" role="listbox" aria-label="Suggestions">
    ${suggestions.map((suggestion, at) => html`<li key=${suggestion.value} id=${`${id}-${at}`} role="option" class="menu-item" aria-selected=${at === chosen}
      onPointerDown=${(/** @type {Event} */ event) => event.preventDefault()} onClick=${() => choose(suggestion)}>
      ${suggestion.icon && html`<${Icon} name=${suggestion.icon} />`}
      <span class="completion-label">${suggestion.label}</span>
      <span class="completion-detail truncate">${suggestion.detail}</span>
    </li>`)}
  </ul>`;
}
