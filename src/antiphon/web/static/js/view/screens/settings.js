/** The settings of the page on this device, and signing out. */

import { html, useState } from "../../html.js";
import { app } from "../../state/app.js";
import { allowNotifications, notificationState } from "../announcer.js";
import { confirm } from "../dialog.js";
import { Icon } from "../icons.js";
import { Screen } from "../screen.js";

/** @param {{name: "theme" | "diffStyle", label: string, hint?: string, choices: string[][]}} props */
function Choices({ name, label, hint, choices }) {
  const value = app.preferences.value[name];
  return html`<div class="setting" role="radiogroup" aria-label=${label}>
    <p class="setting-name">${label}</p>
    ${hint && html`<p class="faint">${hint}</p>`}
    <div class="segments">${choices.map(([choice, word, icon]) => html`<label><input type="radio" name=${name} value=${choice} checked=${value === choice} onChange=${() => app.setPreference(name, /** @type {any} */ (choice))} />
      <span>${icon && html`<${Icon} name=${icon} />`}${word}</span></label>`)}</div>
  </div>`;
}

/** @param {{label: string, hint: string, checked: boolean, disabled?: boolean, onChange: (on: boolean) => void}} props */
function Switch({ label, hint, checked, disabled, onChange }) {
  return html`<div class="setting">
    <label class="switch">
      <input type="checkbox" role="switch" checked=${checked} disabled=${disabled} onChange=${(/** @type {any} */ event) => onChange(event.target.checked)} />
      <span class="track" /><span>${label}</span>
    </label>
    <p class="faint">${hint}</p>
  </div>`;
}

const BLOCKED = {
  denied: "This browser does not allow notifications of this page. Its own settings for the page can change that.",
  missing: "This browser has no notifications here. They need a secure address: https, or this machine.",
};

/** Ask, then sign this browser out. */
export async function signOutAsked() {
  const yes = await confirm({
    title: "Sign out on this device?",
    text: "Drafts and settings that this browser keeps are removed. Sessions and running turns go on in the gateway.",
    action: "Sign out",
  });
  if (yes) await app.signOut();
}

export function SettingsScreen() {
  const preferences = app.preferences.value;
  const [allowed, setAllowed] = useState(notificationState());
  const notify = async (/** @type {boolean} */ on) => {
    const state = on ? await allowNotifications() : notificationState();
    setAllowed(state);
    app.setPreference("notifications", on && state === "granted");
  };
  const blocked = /** @type {Record<string, string>} */ (BLOCKED)[allowed];
  return html`<${Screen} title="Settings">
    <section class="settings-group" aria-label="Appearance">
      <h2>Appearance</h2>
      <${Choices} name="theme" label="Theme" choices=${[["system", "System", "monitor"], ["light", "Light", "sun"], ["dark", "Dark", "moon"]]} />
      <${Choices} name="diffStyle" label="Diffs" hint="Side by side where there is room for it." choices=${[["unified", "Unified"], ["split", "Side by side"]]} />
    </section>
    <section class="settings-group" aria-label="Writing">
      <h2>Writing</h2>
      <${Switch} label="Enter sends the message" checked=${preferences.enterSends !== false} onChange=${(/** @type {boolean} */ on) => app.setPreference("enterSends", on)}
        hint="Shift Enter breaks the line; Ctrl Enter always sends. With a touch screen Enter breaks the line." />
    </section>
    <section class="settings-group" aria-label="Notifications">
      <h2>Notifications</h2>
      <${Switch} label="Notify me" checked=${Boolean(preferences.notifications) && allowed === "granted"} disabled=${allowed === "missing"} onChange=${notify}
        hint="When a turn ends or a request waits, while this page is in the background." />
      ${blocked && html`<div class="callout warn"><${Icon} name="alert" /><span>${blocked}</span></div>`}
    </section>
    <section class="settings-group" aria-label="This device">
      <h2>This device</h2>
      <div class="setting"><p class="faint">Signed in as ${app.info.value?.name ?? "…"}, role ${app.info.value?.role ?? "…"}.</p>
        <button type="button" class="button danger" onClick=${signOutAsked}>Sign out</button></div>
    </section>
  <//>`;
}
