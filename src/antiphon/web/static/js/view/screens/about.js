/** About: the version, where to read more, and the licences of what the page is made of. */

import { html, useEffect, useState } from "../../html.js";
import { app } from "../../state/app.js";
import { Dialog } from "../dialog.js";
import { Mark } from "../icons.js";
import { Screen } from "../screen.js";

/** Where the files of this page are: beside this module. */
const VENDOR = new URL("../../../vendor/", import.meta.url);

export function AboutScreen() {
  const [modules, setModules] = useState(/** @type {any[]} */ ([]));
  const [reading, setReading] = useState(/** @type {{name: string, text: string} | null} */ (null));
  useEffect(() => {
    fetch(new URL("vendor.json", VENDOR)).then((response) => response.json()).then((found) => setModules(found.packages ?? found.modules ?? []), () => {});
  }, []);
  const read = async (/** @type {any} */ one) => {
    const response = await fetch(new URL(one.text, VENDOR));
    setReading({ name: one.name, text: await response.text() });
  };
  const info = app.info.value;
  return html`<${Screen} title="About">
    <div class="about-head"><${Mark} size=${56} /><div><p class="about-name">Antiphon ${info?.version ?? ""}</p><p class="soft">Coding agents from any browser, through a gateway that keeps their sessions.</p></div></div>
    <dl class="facts-table">
      <div><dt>Gateway</dt><dd>${info?.version ?? "…"}</dd></div>
      <div><dt>Page</dt><dd class="mono">${info?.page ?? "…"}</dd></div>
      <div><dt>Licence</dt><dd>Apache-2.0</dd></div>
    </dl>
    <h2 class="section-title">Made with</h2>
    <ul role="list" class="card-list">
      ${modules.map((one) => html`<li key=${one.name}><span>${one.name} <span class="faint">${one.version}</span></span><span class="faint">${one.licence}</span>
        ${one.text && html`<button type="button" class="button small" onClick=${() => read(one)}>Licence<span class="visually-hidden"> of ${one.name}</span></button>`}</li>`)}
    </ul>
    ${reading && html`<${Dialog} title=${`Licence of ${reading.name}`} class="wide" onClose=${() => setReading(null)}><pre class="licence-text">${reading.text}</pre><//>`}
  <//>`;
}
