/**
 * What views are made of: `html` (tagged templates that become elements), and the parts of Preact, its hooks and its signals that
 * views use. Views import from here alone, so that one place knows which library is behind it.
 *
 * A template is never a string of HTML: `html` makes elements, and text in it stays text.
 */

import htm from "../vendor/htm.js";
import { h } from "../vendor/preact.js";

export { Component, Fragment, cloneElement, createContext, createRef, h, render, toChildArray } from "../vendor/preact.js";
export {
  useCallback, useContext, useEffect, useErrorBoundary, useId, useImperativeHandle, useLayoutEffect, useMemo, useReducer, useRef, useState,
} from "../vendor/hooks.js";
export { Signal, batch, computed, effect, signal, untracked, useComputed, useSignal, useSignalEffect } from "../vendor/signals.js";

/**
 * Make elements of a template: html`<p class="note">${text}</p>`.
 *
 * @type {(strings: TemplateStringsArray, ...values: any[]) => import("../vendor/preact.js").VNode<any>}
 */
// A template with several roots gives an array. Views have one root; where they do not, Preact takes the array as children.
export const html = /** @type {any} */ (htm.bind(/** @type {any} */ (h)));
