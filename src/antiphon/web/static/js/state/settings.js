/**
 * The settings of a session: modes, models, options. Agents have them in two forms, lists of modes and models of their own or config
 * options of these categories; views see one.
 */

import { batch, computed, signal } from "../../vendor/signals.js";

/** @typedef {import("../types.js").Choice} Choice */
/** @typedef {import("../types.js").ConfigOption} ConfigOption */
/** @typedef {import("../types.js").Settings} Settings */
/** @template T @typedef {import("../types.js").Signal<T>} Signal */

/**
 * The values of an option, without their groups.
 *
 * @param {ConfigOption | undefined} option
 * @returns {Choice[]}
 */
export function valuesOf(option) {
  const entries = Array.isArray(option?.options) ? option.options : [];
  const values = entries.flatMap((entry) => (Array.isArray(entry?.options) ? entry.options : [entry]));
  return values
    .filter((value) => typeof value?.value === "string")
    .map((value) => ({ id: value.value, name: value.name ?? value.value, description: value.description ?? null }));
}

/** The settings of one session, as signals. */
export class SessionSettings {
  /** @param {(method: string, params: any) => Promise<any>} request sends a request about the session */
  constructor(request) {
    this._request = request;
    /** @type {Signal<Settings>} */
    this._settings = signal(/** @type {Settings} */ ({}));
    /** Every config option as the agent sent it. @type {Signal<ConfigOption[]>} */
    this.allOptions = computed(() => this._settings.value.configOptions ?? []);
    const optionOf = (/** @type {string} */ category) =>
      computed(() => this.allOptions.value.find((option) => option.category === category && option.type === "select"));
    /** @type {Signal<ConfigOption | undefined>} */
    this._modeOption = optionOf("mode");
    /** @type {Signal<ConfigOption | undefined>} */
    this._modelOption = optionOf("model");
    /** @type {Signal<Choice[]>} */
    this.modes = computed(() => this._settings.value.modes?.availableModes ?? valuesOf(this._modeOption.value));
    /** @type {Signal<string | null>} */
    this.mode = computed(() => this._settings.value.modes?.currentModeId ?? stringOf(this._modeOption.value?.currentValue));
    /** @type {Signal<Choice[]>} */
    this.models = computed(() => {
      const models = this._settings.value.models?.availableModels;
      return models === undefined
        ? valuesOf(this._modelOption.value)
        : models.map(({ modelId, name, description }) => ({ id: modelId, name, description }));
    });
    /** @type {Signal<string | null>} */
    this.model = computed(() => this._settings.value.models?.currentModelId ?? stringOf(this._modelOption.value?.currentValue));
    /** The config options that are not shown as the mode or the model already. @type {Signal<ConfigOption[]>} */
    this.options = computed(() =>
      this.allOptions.value.filter((option) => option !== this._modeOption.value && option !== this._modelOption.value),
    );
  }

  /** Take the settings as a response has them. @param {any} given */
  opened(given) {
    if (typeof given !== "object" || given === null) return;
    /** @type {Settings} */
    const settings = { ...this._settings.peek() };
    if (given.modes) settings.modes = { ...given.modes, availableModes: listOf(given.modes.availableModes) };
    if (given.models) settings.models = { ...given.models, availableModels: listOf(given.models.availableModels) };
    if (Array.isArray(given.configOptions)) settings.configOptions = optionsOf(given.configOptions);
    this._settings.value = settings;
  }

  /** Take what an update changes. @param {any} update */
  note(update) {
    if (update?.sessionUpdate === "current_mode_update") this._choose("mode", update.currentModeId);
    else if (update?.sessionUpdate === "current_model_update") this._choose("model", update.currentModelId);
    else if (update?.sessionUpdate === "config_option_update") this.opened({ configOptions: update.configOptions });
  }

  /** Change the mode. What is shown changes at once, and back if the agent refuses. @param {string} id @returns {Promise<void>} */
  async setMode(id) {
    const settings = this._settings.peek();
    const option = this._modeOption.peek();
    if (settings.modes === undefined && option !== undefined) return this.setOption(option.id, id);
    await this._set("session/set_mode", { modeId: id }, () => this._choose("mode", id));
  }

  /** Change the model. @param {string} id @returns {Promise<void>} */
  async setModel(id) {
    const settings = this._settings.peek();
    const option = this._modelOption.peek();
    if (settings.models === undefined && option !== undefined) return this.setOption(option.id, id);
    await this._set("session/set_model", { modelId: id }, () => this._choose("model", id));
  }

  /** Change an option. @param {string} id @param {string | boolean} value @returns {Promise<void>} */
  async setOption(id, value) {
    const type = typeof value === "boolean" ? { type: "boolean" } : {};
    await this._set("session/set_config_option", { configId: id, value, ...type }, () => {
      const options = (this._settings.peek().configOptions ?? []).map((option) =>
        option.id === id ? { ...option, currentValue: value } : option,
      );
      this._settings.value = { ...this._settings.peek(), configOptions: options };
    });
  }

  /** @param {string} method @param {any} params @param {() => void} show @returns {Promise<void>} */
  async _set(method, params, show) {
    const before = this._settings.peek();
    batch(show);
    const shown = this._settings.peek();
    try {
      this.opened(await this._request(method, params));
    } catch (error) {
      if (this._settings.peek() === shown) this._settings.value = before;
      throw error;
    }
  }

  /** @param {"mode" | "model"} what @param {string} id */
  _choose(what, id) {
    const settings = { ...this._settings.peek() };
    if (what === "mode" && settings.modes !== undefined) settings.modes = { ...settings.modes, currentModeId: id };
    if (what === "model" && settings.models !== undefined) settings.models = { ...settings.models, currentModelId: id };
    const option = what === "mode" ? this._modeOption.peek() : this._modelOption.peek();
    if (option !== undefined && valuesOf(option).some((value) => value.id === id)) {
      settings.configOptions = (settings.configOptions ?? []).map((each) => (each === option ? { ...each, currentValue: id } : each));
    }
    this._settings.value = settings;
  }
}

/** @param {any} value @returns {string | null} */
function stringOf(value) {
  return typeof value === "string" ? value : null;
}

/** @param {any} value @returns {any[]} */
function listOf(value) {
  return Array.isArray(value) ? value.filter((each) => typeof each === "object" && each !== null) : [];
}

/** @param {any[]} options @returns {ConfigOption[]} */
function optionsOf(options) {
  return listOf(options).filter((option) => typeof option.id === "string" && (option.type === "select" || option.type === "boolean"));
}
