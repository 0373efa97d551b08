/**
 * Code: a block with its language, a copy button and highlighting that is loaded when the first block of a language is shown.
 *
 * highlight.js makes a tree of tokens; the tree becomes elements here, so that no string of HTML is ever made of code.
 */

import { html, signal, useEffect, useMemo, useRef, useState } from "../../html.js";
import { prose } from "../../present/text.js";
import { Icon } from "../icons.js";

/** Characters of code that are highlighted. Above this highlighting takes longer than a frame, and nobody reads it in a message. */
const MOST_HIGHLIGHTED = 60_000;

/** Characters that are highlighted while they are still being written: each frame does all of them again. */
const MOST_WHILE_OPEN = 12_000;

/** Characters that are shown of a very long block before it is unfolded. */
const MOST_SHOWN = 24_000;

/** Names that people write behind a fence, and the file of the language. */
const ALIASES = {
  js: "javascript", jsx: "javascript", mjs: "javascript", cjs: "javascript", node: "javascript",
  ts: "typescript", tsx: "typescript", mts: "typescript", py: "python", python3: "python", pyi: "python",
  sh: "bash", shell: "bash", zsh: "bash", console: "shell", terminal: "shell", "shell-session": "shell",
  yml: "yaml", md: "markdown", html: "xml", svg: "xml", xhtml: "xml", htm: "xml", rs: "rust", rb: "ruby", golang: "go",
  "c++": "cpp", cc: "cpp", hpp: "cpp", h: "c", cs: "csharp", "c#": "csharp", kt: "kotlin", kts: "kotlin",
  docker: "dockerfile", make: "makefile", mk: "makefile", toml: "ini", conf: "ini", cfg: "ini", patch: "diff", pl: "perl",
  jsonc: "json", json5: "json", jsonl: "json", vue: "xml", scss: "css", less: "css", tf: "ini",
};

/** Languages that are beside the page. A name that is not here loads nothing. */
const LANGUAGES = new Set([
  "bash", "c", "cpp", "csharp", "css", "diff", "dockerfile", "go", "ini", "java", "javascript", "json", "kotlin", "lua", "makefile", "markdown",
  "perl", "php", "python", "ruby", "rust", "shell", "sql", "swift", "typescript", "xml", "yaml",
]);

/** @type {Map<string, import("../../types.js").Signal<boolean>>} Whether a language is loaded, by its name. */
const loaded = new Map();

/** @type {any} The core of highlight.js, once it is loaded. */
let core = null;

/**
 * Find the language file for a name behind a fence or the end of a file name.
 *
 * @param {string} name
 * @returns {string} "" if there is none
 */
function languageFile(name) {
  const word = (name || "").trim().split(/[\s,{:]/)[0].toLowerCase();
  const found = Object.hasOwn(ALIASES, word) ? ALIASES[/** @type {keyof typeof ALIASES} */ (word)] : word;
  return LANGUAGES.has(found) ? found : "";
}

/** Load a language. @param {string} language @returns {import("../../types.js").Signal<boolean>} true once it can be used */
function load(language) {
  let ready = loaded.get(language);
  if (!ready) {
    const fresh = (ready = signal(false));
    loaded.set(language, fresh);
    Promise.all([import("../../../vendor/highlight/core.js"), import(`../../../vendor/highlight/languages/${language}.js`)])
      .then(([main, grammar]) => {
        core = main.default;
        core.registerLanguage(language, grammar.default);
        fresh.value = true;
      })
      .catch(() => {}); // offline, or a file that is not there: the code stays plain
  }
  return ready;
}

/**
 * Make elements of a token tree of highlight.js.
 *
 * @param {any[]} children
 * @returns {any[]}
 */
function elements(children) {
  return children.map((child) =>
    typeof child === "string"
      ? child
      : html`<span class=${scopeClass(child.scope)}>${elements(child.children)}</span>`,
  );
}

/** The classes of a scope: `title.function` has those of `title` and its own. @param {string | undefined} scope */
function scopeClass(scope) {
  if (!scope || scope.startsWith("language:")) return undefined;
  const [first, ...rest] = scope.split(".");
  return rest.length ? `hl-${first} hl-${first}-${rest.join("-")}` : `hl-${first}`;
}

/**
 * Highlight code, as far as its language is loaded.
 *
 * @param {string} text  what is shown, with invisible characters made visible
 * @param {string} language  the name of a language file
 * @returns {any}  children for an element
 */
function highlighted(text, language) {
  try {
    const result = core.highlight(text, { language, ignoreIllegals: true });
    return elements(result._emitter.rootNode.children);
  } catch {
    return text; // a grammar that fails must not take the code away
  }
}

/**
 * A button that copies a text.
 *
 * @param {{text: string | (() => string), label?: string, class?: string}} props  `label`: what is copied, for its name
 */
export function CopyButton({ text, label = "Copy", class: extra = "" }) {
  const [copied, setCopied] = useState(false);
  const timer = useRef(0);
  useEffect(() => () => clearTimeout(timer.current), []);
  const copy = async (/** @type {Event} */ event) => {
    event.stopPropagation();
    if (!(await copyText(typeof text === "function" ? text() : text))) return;
    setCopied(true);
    clearTimeout(timer.current);
    timer.current = window.setTimeout(() => setCopied(false), 1600);
  };
  return html`<button type="button" class="t-action ${extra}" title=${label} aria-label=${copied ? "Copied" : label} data-done=${copied ? "" : undefined} onClick=${copy}>
    <${Icon} name=${copied ? "check" : "copy"} />
  </button>`;
}

/**
 * Put a text on the clipboard, also where the page is not in a secure context (plain HTTP in a local network).
 *
 * @param {string} text
 * @returns {Promise<boolean>} whether it worked
 */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    area.className = "visually-hidden";
    // Inside an open dialog: what is outside of it can have no focus.
    (document.querySelector("dialog[open]") || document.body).append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

/**
 * The text of a code block alone, highlighted where the language is known.
 *
 * @param {{text: string, language: string, open?: boolean}} props
 */
export function CodeText({ text, language, open = false }) {
  const wanted = language && text.length <= (open ? MOST_WHILE_OPEN : MOST_HIGHLIGHTED) ? language : "";
  const ready = wanted ? load(wanted).value : false;
  const children = useMemo(() => {
    const shown = prose(text);
    return ready ? highlighted(shown, wanted) : shown;
  }, [text, wanted, ready]);
  return html`<code>${children}</code>`;
}

/**
 * A block of code.
 *
 * @param {{text: string, name?: string, open?: boolean}} props
 *   `name`: the language as it was written; `open`: more of it may follow
 */
export function CodeBlock({ text, name = "", open = false }) {
  const [all, setAll] = useState(false);
  const label = prose(name.trim().split(/[\s,{]/)[0] || "").slice(0, 40);
  const isCut = !all && text.length > MOST_SHOWN * 1.5;
  const shown = isCut ? text.slice(0, Math.max(text.lastIndexOf("\n", MOST_SHOWN), 1)) : text;
  return html`<figure class="code-block">
    <figcaption class="code-head">
      <span class="code-name">${label || "text"}</span>
      <${CopyButton} text=${text} label="Copy code" />
    </figcaption>
    <pre tabindex="0"><${CodeText} text=${shown} language=${languageFile(name)} open=${open} /></pre>
    ${isCut && html`<button type="button" class="t-more" onClick=${() => setAll(true)}>Show all ${count(text)} lines</button>`}
  </figure>`;
}

/** The number of lines of a text, for people. @param {string} text */
function count(text) {
  let lines = 1;
  for (let place = text.indexOf("\n"); place >= 0; place = text.indexOf("\n", place + 1)) lines += 1;
  return lines.toLocaleString();
}
