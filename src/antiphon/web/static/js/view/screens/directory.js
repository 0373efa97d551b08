/**
 * A field for a directory of the gateway's machine: typed with completion, or chosen by going through directories.
 */

import { html, useEffect, useId, useRef, useState } from "../../html.js";
import { app } from "../../state/app.js";
import { Dialog, problemOf } from "../dialog.js";
import { Icon } from "../icons.js";
import { Coded, shortPath } from "../wording.js";

/** Milliseconds without a key after which directories are asked for. */
const PAUSE = 120;

/** @typedef {{path: string, parent: string | null, directories: string[]}} Listing */

/** @param {string} [path] @returns {Promise<Listing>} */
const list = (path) => app.gateway.call("_antiphon/gateway/directories", path ? { path } : {});

/** A directory and a name in it as one path. @param {string} path @param {string} name */
export const join = (path, name) => `${path.replace(/\/$/, "")}/${name}`;

/**
 * A typed path as the directory to list and the beginning of a name in it.
 *
 * @param {string} path
 * @returns {[string, string]}
 */
export function splitPath(path) {
  const at = path.lastIndexOf("/");
  return [path.slice(0, at) || "/", path.slice(at + 1)];
}

/**
 * @param {{value: string, onChange: (path: string) => void, roots: string[]}} props
 */
export function DirectoryField({ value, onChange, roots }) {
  const [browsing, setBrowsing] = useState(false);
  const [names, setNames] = useState(/** @type {string[]} */ ([]));
  const [active, setActive] = useState(-1);
  const [open, setOpen] = useState(false);
  const asked = useRef("");
  const id = useId();
  const [parent, start] = splitPath(value);

  useEffect(() => {
    if (!open || !value.startsWith("/")) {
      setNames([]);
      return undefined;
    }
    asked.current = value;
    const timer = setTimeout(async () => {
      try {
        const found = await list(parent);
        if (asked.current !== value) return;
        const fitting = found.directories.filter((name) => name.toLowerCase().startsWith(start.toLowerCase()) && (start.startsWith(".") || !name.startsWith(".")));
        setNames(fitting.slice(0, 30));
        setActive(-1);
      } catch {
        if (asked.current === value) setNames([]);
      }
    }, PAUSE);
    return () => clearTimeout(timer);
  }, [value, open]);

  const choose = (/** @type {string} */ name) => {
    onChange(`${join(parent, name)}/`);
    setActive(-1);
  };
  const pressed = (/** @type {KeyboardEvent} */ event) => {
    if (!names.length) return;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      setActive((active + (event.key === "ArrowDown" ? 1 : names.length + (active < 0 ? 0 : -1))) % names.length);
    } else if (event.key === "Tab" && !event.shiftKey && start) {
      event.preventDefault();
      choose(names[Math.max(active, 0)]);
    } else if (event.key === "Enter" && active >= 0) {
      event.preventDefault();
      choose(names[active]);
    } else if (event.key === "Escape") {
      event.stopPropagation();
      setNames([]);
    }
  };
  const shown = open && names.length > 0;
  return html`<div class="field">
    <label for=${id}>Directory</label>
    <div class="with-button">
      <div class="combo">
        <input id=${id} class="input mono" role="combobox" aria-expanded=${shown} aria-controls=${`${id}-list`} aria-autocomplete="list" autocomplete="off" autocapitalize="none"
          aria-activedescendant=${shown && active >= 0 ? `${id}-${active}` : undefined} spellcheck=${false} value=${value} placeholder="/path/to/project"
          onInput=${(/** @type {any} */ event) => { setOpen(true); onChange(event.target.value); }} onKeyDown=${pressed} onBlur=${() => setOpen(false)} />
        <ul id=${`${id}-list`} class="completion below" role="listbox" aria-label="Directories" hidden=${!shown}>
          ${names.map((name, at) => html`<li key=${name} id=${`${id}-${at}`} role="option" class="menu-item" aria-selected=${at === active}
            onPointerDown=${(/** @type {Event} */ event) => { event.preventDefault(); choose(name); }}><${Icon} name="folder" />${name}</li>`)}
        </ul>
      </div>
      <button type="button" class="button" onClick=${() => setBrowsing(true)}><${Icon} name="folder" />Browse</button>
    </div>
    <p class="hint">On the machine that runs the agent${roots.length > 0 && html`, in ${roots.map((root, at) => html`${at ? ", " : ""}<code>${shortPath(root)}</code>`)} or below. The option <code>--root DIR</code> of <code>antiphon serve</code> or <code>antiphon worker</code> adds a directory`}.</p>
    ${browsing && html`<${DirectoryDialog} roots=${roots} first=${value} onClose=${() => setBrowsing(false)} onChoose=${(/** @type {string} */ path) => { setBrowsing(false); onChange(path); }} />`}
  </div>`;
}

/**
 * @param {{first: string, roots: string[], onClose: () => void, onChoose: (path: string) => void}} props
 */
function DirectoryDialog({ first, roots, onClose, onChoose }) {
  const [listing, setListing] = useState(/** @type {Listing | null} */ (null));
  const [problem, setProblem] = useState("");
  const [hidden, setHidden] = useState(false);
  const [isLoading, setLoading] = useState(false); // until then, the directory that is shown is not the one that was chosen last
  const go = async (/** @type {string | undefined} */ path) => {
    setLoading(true);
    try {
      setListing(await list(path));
      setProblem("");
    } catch (error) {
      if (path && !listing) await go(undefined); // what was typed is not there: begin at the first root
      else setProblem(problemOf(error));
    }
    setLoading(false);
  };
  useEffect(() => { go(first || undefined); }, []);

  const directories = (listing?.directories ?? []).filter((name) => hidden || !name.startsWith("."));
  const foot = html`
    <label class="choice grow"><input type="checkbox" checked=${hidden} onChange=${(/** @type {any} */ event) => setHidden(event.target.checked)} /><span>Show hidden</span></label>
    <button type="button" class="button" onClick=${onClose}>Cancel</button>
    <button type="button" class="button primary" disabled=${!listing || isLoading} onClick=${() => onChoose(listing?.path ?? "")}>Use this directory</button>`;
  return html`<${Dialog} title="Choose a directory" onClose=${onClose} foot=${foot}>
    <p class="mono browse-path" aria-live="polite">${listing ? shortPath(listing.path) : "…"}</p>
    ${problem && html`<div class="callout bad" role="alert"><${Icon} name="alert" /><span><${Coded} text=${problem} /></span></div>`}
    ${listing && listing.parent === null && roots.length > 0 && html`<p class="faint">Sessions may work in ${roots.length === 1 ? "this directory" : "these directories"} and below, so there is no way up. <code>antiphon serve --root DIR</code> adds another.</p>`}
    <ul class="browse" role="list">
      ${listing?.parent && html`<li><button type="button" class="menu-item" onClick=${() => go(/** @type {string} */ (listing.parent))}><${Icon} name="arrow-up" />Up</button></li>`}
      ${directories.map((name) => html`<li key=${name}><button type="button" class="menu-item" onClick=${() => go(join(/** @type {Listing} */ (listing).path, name))}><${Icon} name="folder" />${name}</button></li>`)}
      ${listing && !directories.length && html`<li class="list-note">No directories inside.</li>`}
    </ul>
  <//>`;
}
