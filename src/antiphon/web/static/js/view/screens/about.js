/** About: the version, where to read more, and the licences of what the page is made of. */

import { html, useEffect, useState } from "../../html.js";
import { app } from "../../state/app.js";
import { Dialog, attempt } from "../dialog.js";
import { Icon, Mark } from "../icons.js";
import { Screen } from "../screen.js";

/** Where the files of this page are: beside this module. */
const VENDOR = new URL("../../../vendor/", import.meta.url);

/** Fetch a file from beside the modules of others. @param {string} name */
async function vendored(name) {
  const response = await fetch(new URL(name, VENDOR)).catch(() => null);
  if (!response?.ok) throw new Error("The gateway did not send the file. Try again.");
  return response;
}

export function AboutScreen() {
  const [modules, setModules] = useState(/** @type {any[] | null} */ (null));
  const [problem, setProblem] = useState(false);
  const [reading, setReading] = useState(/** @type {{name: string, text: string} | null} */ (null));
  const load = async () => {
    setProblem(false);
    try {
      setModules((await (await vendored("vendor.json")).json()).packages);
    } catch {
      setProblem(true);
    }
  };
  useEffect(() => { load(); }, []);
  const read = (/** @type {any} */ one) => attempt(async () => setReading({ name: one.name, text: await (await vendored(one.text)).text() }));
  const info = app.info.value;
  return html`<${Screen} title="About">
    <div class="about-head"><${Mark} size=${56} /><div><p class="about-name">Antiphon ${info?.version ?? ""}</p><p class="soft">Coding agents from any browser, through a gateway that keeps their sessions.</p></div></div>
    <dl class="facts-table">
      <div><dt>Gateway</dt><dd>${info?.version ?? "…"}</dd></div>
      <div><dt>Page</dt><dd class="mono">${info?.page ?? "…"}</dd></div>
      <div><dt>Licence</dt><dd>Apache-2.0</dd></div>
    </dl>
    <h2 class="section-title">Made with</h2>
    ${problem && html`<div class="callout bad" role="alert"><${Icon} name="alert" /><span>The list could not be loaded.</span><button type="button" class="button small" onClick=${load}>Try again</button></div>`}
    ${!modules && !problem && html`<div class="loading" role="status"><${Icon} name="spinner" class="spin" /><span class="visually-hidden">Loading</span></div>`}
    <ul role="list" class="card-list" hidden=${!modules}>
      ${(modules ?? []).map((one) => html`<li key=${one.name}><span>${one.name} <span class="faint">${one.version}</span></span><span class="faint">${one.licence}</span>
        ${one.text && html`<button type="button" class="button small" onClick=${() => read(one)}>Licence<span class="visually-hidden"> of ${one.name}</span></button>`}</li>`)}
    </ul>
    ${reading && html`<${Dialog} title=${`Licence of ${reading.name}`} class="wide" onClose=${() => setReading(null)}><pre class="licence-text">${reading.text}</pre><//>`}
  <//>`;
}
