/** Links for others and for other devices: a share of one session, and an address that signs a phone in, both with a QR code. */

import { html, useEffect, useState } from "../../html.js";
import { app } from "../../state/app.js";
import { Dialog, attempt, copy, problemOf } from "../dialog.js";
import { Icon } from "../icons.js";
import { fullTime, span } from "../wording.js";

/** Seconds for which a share can be good. */
const LIFETIMES = [3600, 8 * 3600, 24 * 3600, 7 * 24 * 3600];

/**
 * A QR code from its rows of zeros and ones. It is dark on white in both themes: scanners want it so.
 *
 * @param {{rows: string[], label: string}} props
 */
export function QrCode({ rows, label }) {
  const side = rows.length;
  const quiet = 4;
  let path = "";
  rows.forEach((row, y) => {
    for (const run of row.matchAll(/1+/g)) path += `M${run.index + quiet} ${y + quiet}h${run[0].length}v1h-${run[0].length}z`;
  });
  return html`<svg class="qr" viewBox=${`0 0 ${side + 2 * quiet} ${side + 2 * quiet}`} role="img" aria-label=${label} shape-rendering="crispEdges">
    <rect width="100%" height="100%" fill="#fff" /><path d=${path} fill="#000" />
  </svg>`;
}

/** A link in a field, with a button that copies it. @param {{url: string, label: string}} props */
function LinkField({ url, label }) {
  return html`<div class="field">
    <label for="link-field">${label}</label>
    <div class="with-button">
      <input id="link-field" class="input mono" readonly value=${url} onFocus=${(/** @type {any} */ event) => event.target.select()} />
      <button type="button" class="button" onClick=${() => copy(url, "Link copied")}><${Icon} name="copy" />Copy</button>
    </div>
  </div>`;
}

/** Whether an address leads to the machine that it is opened on. @param {string} url */
export const isLoopback = (url) => /^https?:\/\/(127\.|localhost\b|\[::1\])/.test(url);

/** What to do where the address of a QR code is good on one machine alone. @param {{url: string}} props */
function LoopbackWarning({ url }) {
  if (!isLoopback(url)) return null;
  const { host, port } = new URL(url);
  return html`<div class="callout warn" role="note"><${Icon} name="alert" /><div class="ways">
    <p>Only this machine reaches <code>${host}</code>: on another device the code and the link lead nowhere. Two ways to change that:</p>
    <ul>
      <li>An SSH tunnel from the other computer, after which the link works there: <code>ssh -L ${port}:127.0.0.1:${port} me@this-machine</code></li>
      <li>An address with TLS, for phones too: a proxy or Tailscale in front and <code>antiphon serve --behind-proxy --public-url https://…</code>, or its own with <code>--tls-cert</code> and <code>--tls-key</code>.</li>
    </ul>
  </div></div>`;
}

/**
 * Share one session with somebody who has no token.
 *
 * @param {{session: any, name: string, onClose: () => void}} props
 */
export function ShareDialog({ session, name, onClose }) {
  const [role, setRole] = useState("watch");
  const [lifetime, setLifetime] = useState(LIFETIMES[2]);
  const [guest, setGuest] = useState("");
  const [made, setMade] = useState(/** @type {any} */ (null));
  const [problem, setProblem] = useState("");
  const create = async (/** @type {Event} */ event) => {
    event.preventDefault();
    try {
      setMade(await session.share({ role, lifetime, name: guest.trim() || undefined }));
      setProblem("");
    } catch (error) {
      setProblem(problemOf(error));
    }
  };
  const revoke = async () => {
    const done = await attempt(() => app.gateway.call("_antiphon/gateway/admin", { action: "revoke", id: made.id }), "The link is good no longer");
    if (done) setMade(null);
  };
  const bad = problem && html`<div class="callout bad" role="alert"><${Icon} name="alert" /><span>${problem}</span></div>`;
  if (made) {
    const foot = html`<button type="button" class="button danger" onClick=${revoke}>Revoke</button><button type="button" class="button primary" onClick=${onClose}>Done</button>`;
    return html`<${Dialog} key="made" title="Share" onClose=${onClose} foot=${foot}>
      <p class="soft">Whoever has this link may ${role === "drive" ? "write to" : "watch"} <strong>${name}</strong> until ${fullTime(made.expires)}, and nothing else. It is shown once.</p>
      <${LoopbackWarning} url=${made.url} />
      ${made.qr && html`<${QrCode} rows=${made.qr.rows} label="QR code of the link" />`}
      <${LinkField} url=${made.url} label="Link" />
    <//>`;
  }
  const foot = html`<button type="button" class="button" onClick=${onClose}>Cancel</button><button type="submit" form="share-form" class="button primary">Create link</button>`;
  return html`<${Dialog} key="form" title="Share this session" onClose=${onClose} foot=${foot}>
    <form id="share-form" class="form" onSubmit=${create}>
      <fieldset class="field"><legend>Whoever has the link may</legend>
        <label class="choice"><input type="radio" name="role" data-focus checked=${role === "watch"} onChange=${() => setRole("watch")} /><span>Watch<br /><span class="faint">see the session live, and nothing else</span></span></label>
        <label class="choice"><input type="radio" name="role" checked=${role === "drive"} onChange=${() => setRole("drive")} /><span>Drive<br /><span class="faint">write messages and answer permission requests: this runs programs as you</span></span></label>
      </fieldset>
      <div class="field"><label for="share-lifetime">For how long</label>
        <select id="share-lifetime" class="select" value=${lifetime} onChange=${(/** @type {any} */ event) => setLifetime(Number(event.target.value))}>
          ${LIFETIMES.map((seconds) => html`<option value=${seconds} selected=${seconds === lifetime}>${span(seconds)}</option>`)}
        </select>
      </div>
      <div class="field"><label for="share-name">Name <span class="optional">for the list of shares</span></label>
        <input id="share-name" class="input" maxlength="100" autocomplete="off" value=${guest} onInput=${(/** @type {any} */ event) => setGuest(event.target.value)} />
      </div>
      ${bad}
    </form>
  <//>`;
}

/** An address that signs a phone in. It is asked for when the dialog opens, and good once. @param {{onClose: () => void}} props */
export function PhoneDialog({ onClose }) {
  const [launch, setLaunch] = useState(/** @type {any} */ (null));
  const [problem, setProblem] = useState("");
  const load = () => app.gateway.call("_antiphon/gateway/launch", {}).then(setLaunch, (/** @type {unknown} */ error) => setProblem(problemOf(error)));
  useEffect(() => { load(); }, []);
  return html`<${Dialog} title="Open on another device" onClose=${onClose}>
    ${problem && html`<div class="callout bad" role="alert"><${Icon} name="alert" /><span>${problem}</span></div>`}
    ${!launch && !problem && html`<div class="loading" role="status"><${Icon} name="spinner" class="spin" /><span>Making a code…</span></div>`}
    ${launch && html`
      <p class="soft">Scan this with the camera of a phone, or open the address below on another computer. It signs one device in, once, within ten minutes.</p>
      <${LoopbackWarning} url=${launch.url} />
      <${QrCode} rows=${launch.qr.rows} label="QR code that signs a device in" />
      <${LinkField} url=${launch.url} label="Address" />`}
  <//>`;
}
