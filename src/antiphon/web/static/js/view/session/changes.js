/** All changes of a session as one diff: the files with their totals, and each file unified or side by side. */

import { html, useEffect, useState } from "../../html.js";
import { diffRows } from "../../present/diffs.js";
import { app } from "../../state/app.js";
import { problemOf } from "../dialog.js";
import { Diff } from "../transcript/diff.js";
import { Icon } from "../icons.js";
import { count } from "../wording.js";

/** @typedef {import("../../types.js").ChangedFile & {added: number, removed: number, shown: string}} Counted */

/**
 * Changes with the numbers of lines, and paths as they are inside the directory of the session.
 *
 * @param {import("../../types.js").ChangedFile[]} changes
 * @param {string} cwd
 * @returns {Counted[]}
 */
export function counted(changes, cwd) {
  const inside = cwd.replace(/\/?$/, "/");
  return changes.map((change) => {
    const { added, removed } = diffRows(change.old ?? null, change.new ?? "");
    return { ...change, added, removed, shown: change.path.startsWith(inside) ? change.path.slice(inside.length) : change.path };
  });
}

/**
 * @param {{session: any, base: string}} props
 */
export function ChangesPanel({ session, base }) {
  const [files, setFiles] = useState(/** @type {Counted[] | null} */ (null));
  const [problem, setProblem] = useState("");
  const cwd = session.row?.value?.cwd ?? "";
  // Asked for again after each turn: then the changes are whole.
  const turn = session.turn.value?.id ?? "";
  const load = async () => {
    try {
      const result = await session.changes();
      setFiles(counted(result.changes ?? result, cwd));
      setProblem("");
    } catch (error) {
      setProblem(problemOf(error));
    }
  };
  useEffect(() => { load(); }, [session, turn, cwd]);

  const style = app.preferences.value.diffStyle;
  const total = (files ?? []).reduce((sum, file) => ({ added: sum.added + file.added, removed: sum.removed + file.removed }), { added: 0, removed: 0 });
  const jump = (/** @type {number} */ at) => document.getElementById(`change-${at}`)?.scrollIntoView({ block: "start", behavior: "smooth" });
  return html`<aside class="panel" aria-label="Changes of the session">
    <header class="panel-head">
      <a class="icon-button back-always" href=${`#${base}`} aria-label="Close the changes"><${Icon} name="cross" /></a>
      <h2>Changes</h2>
      ${files && html`<span class="totals"><span class="added">+${total.added}</span> <span class="removed">−${total.removed}</span><span class="visually-hidden"> lines</span></span>`}
      <div class="segments" role="radiogroup" aria-label="How diffs look">
        ${[["unified", "Unified"], ["split", "Split"]].map(([value, word]) => html`<label><input type="radio" name="diff-style" checked=${style === value} onChange=${() => app.setPreference("diffStyle", /** @type {"unified" | "split"} */ (value))} /><span>${word}</span></label>`)}
      </div>
      <button type="button" class="icon-button" aria-label="Look again" title="Look again" onClick=${load}><${Icon} name="refresh" /></button>
    </header>
    <div class="panel-body">
      ${problem && html`<div class="callout bad" role="alert"><${Icon} name="alert" /><span>${problem}</span></div>`}
      ${!files && !problem && html`<div class="loading" role="status"><${Icon} name="spinner" class="spin" /><span>Collecting the changes…</span></div>`}
      ${files && !files.length && html`<div class="empty-screen small"><${Icon} name="diff" /><p class="soft">This session has changed no files.</p></div>`}
      ${files && files.length > 0 && html`
        <details class="file-list" open=${files.length <= 12}>
          <summary>${count(files.length, "file")} changed</summary>
          <ul role="list">${files.map((file, at) => html`<li key=${file.path}><button type="button" class="menu-item" onClick=${() => jump(at)}>
            <${Icon} name=${file.old === null ? "plus" : "file"} /><span class="truncate mono"><bdi>${file.shown}</bdi></span>
            <span class="totals"><span class="added">+${file.added}</span> <span class="removed">−${file.removed}</span></span>
          </button></li>`)}</ul>
        </details>
        ${files.map((file, at) => html`<div key=${file.path} id=${`change-${at}`} class="changed-file"><${Diff} path=${file.path} old=${file.old} new=${file.new} cwd=${cwd} style=${style} /></div>`)}`}
    </div>
  </aside>`;
}
