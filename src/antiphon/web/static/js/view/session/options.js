/**
 * The settings of a session in the composer: its mode and model as small menus, the other options behind one button.
 *
 * An agent may describe the same thing twice, as `modes` and as an option of the category `mode`: the option is shown then, since it
 * says more.
 */

import { html, useState } from "../../html.js";
import { Dialog, attempt } from "../dialog.js";
import { Icon } from "../icons.js";
import { MenuButton } from "../menu.js";

/** @typedef {import("../../types.js").ConfigOption} ConfigOption */

/** The values of an option without their groups. @param {ConfigOption} option @returns {{value: string, name: string, description?: string | null, group?: string}[]} */
export function valuesOf(option) {
  return (option.options ?? []).flatMap((/** @type {any} */ entry) => (Array.isArray(entry.options)
    ? entry.options.map((/** @type {any} */ value) => ({ ...value, group: entry.name }))
    : [entry]));
}

/** The name of the current value of an option. @param {ConfigOption} option */
export const currentName = (option) => (option.type === "boolean"
  ? (option.currentValue ? "on" : "off")
  : valuesOf(option).find((one) => one.value === option.currentValue)?.name ?? String(option.currentValue));

/**
 * What of a session can be chosen beside the field: [mode], [model] and the rest, each as an option.
 *
 * @param {{modes: any[], mode: string | null, models: any[], model: string | null, options: ConfigOption[]}} settings
 */
export function arranged({ modes, mode, models, model, options }) {
  const ofCategory = (/** @type {string} */ category) => options.find((option) => option.category === category && option.type === "select");
  const choice = (/** @type {string} */ id, /** @type {string} */ name, /** @type {any[]} */ all, /** @type {string | null} */ current) => (all?.length
    ? { id, name, type: "select", currentValue: current ?? "", options: all.map((one) => ({ value: one.id ?? one.modelId, name: one.name, description: one.description })) }
    : null);
  const modeOption = ofCategory("mode");
  const modelOption = ofCategory("model");
  return {
    mode: modeOption ?? choice("mode", "Mode", modes, mode),
    model: modelOption ?? choice("model", "Model", models, model),
    rest: options.filter((option) => option !== modeOption && option !== modelOption && (option.type === "select" || option.type === "boolean")),
  };
}

/** @param {{session: any}} props */
export function SettingsBar({ session }) {
  const [open, setOpen] = useState(false);
  const { mode, model, rest } = arranged({
    modes: session.modes.value ?? [], mode: session.mode.value, models: session.models.value ?? [], model: session.model.value, options: session.options.value ?? [],
  });
  const set = (/** @type {string} */ id, /** @type {any} */ value) => attempt(async () => session.setOption(id, value));
  return html`<div class="settings-bar">
    ${mode && html`<${Choice} option=${mode} icon="shield" set=${(/** @type {string} */ value) => attempt(async () => session.setMode(value))} />`}
    ${model && html`<${Choice} option=${model} icon="brain" set=${(/** @type {string} */ value) => attempt(async () => session.setModel(value))} />`}
    ${rest.length > 0 && html`<button type="button" class="icon-button" aria-label="Options" title="Options of this session" aria-haspopup="dialog" onClick=${() => setOpen(true)}>
      <${Icon} name="settings" />
    </button>`}
    ${open && html`<${Dialog} title="Options of this session" onClose=${() => setOpen(false)}>
      ${rest.map((option) => html`<${OptionField} key=${option.id} option=${option} set=${(/** @type {any} */ value) => set(option.id, value)} />`)}
    <//>`}
  </div>`;
}

/** A select as a small button with a menu. @param {{option: any, icon: string, set: (value: string) => void}} props */
function Choice({ option, icon, set }) {
  const items = () => valuesOf(option).map((one) => ({
    label: one.name,
    detail: one.description ?? undefined,
    checked: one.value === option.currentValue,
    onSelect: () => { if (one.value !== option.currentValue) set(one.value); },
  }));
  return html`<${MenuButton} label=${`${option.name}: ${currentName(option)}`} class="button quiet choice-button" align="left" items=${items}>
    <${Icon} name=${icon} /><span class="truncate">${currentName(option)}</span><${Icon} name="chevron-down" class="chevron" />
  <//>`;
}

/**
 * One option as a field: a switch if it is on or off, else a select.
 *
 * @param {{option: ConfigOption, set: (value: any) => void}} props
 */
export function OptionField({ option, set }) {
  const hint = option.description && html`<p class="hint">${option.description}</p>`;
  if (option.type === "boolean") {
    return html`<div class="field">
      <label class="switch">
        <input type="checkbox" role="switch" checked=${option.currentValue === true} onChange=${(/** @type {any} */ event) => set(event.target.checked)} />
        <span class="track" /><span>${option.name}</span>
      </label>
      ${hint}
    </div>`;
  }
  return html`<div class="field">
    <label for=${`option-${option.id}`}>${option.name}</label>
    <${OptionSelect} option=${option} set=${set} />
    ${hint}
  </div>`;
}

/** @param {{option: ConfigOption, set: (value: string) => void}} props */
export function OptionSelect({ option, set }) {
  const entries = option.options ?? [];
  const one = (/** @type {any} */ value) => html`<option value=${value.value} selected=${value.value === option.currentValue} title=${value.description ?? ""}>${value.name}</option>`;
  return html`<select class="select" id=${`option-${option.id}`} value=${option.currentValue} onChange=${(/** @type {any} */ event) => set(event.target.value)}>
    ${entries.map((/** @type {any} */ entry) => (Array.isArray(entry.options) ? html`<optgroup label=${entry.name}>${entry.options.map(one)}</optgroup>` : one(entry)))}
  </select>`;
}
