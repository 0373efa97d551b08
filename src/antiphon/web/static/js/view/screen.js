/** The frame of a screen that is not a session: a heading, a way back on a phone, and a column of content. */

import { html } from "../html.js";
import { Icon } from "./icons.js";

/**
 * @param {{title: string, children?: any, actions?: any, back?: boolean, wide?: boolean}} props
 */
export function Screen({ title, children, actions, wide = false }) {
  return html`<div class="screen">
    <header class="screen-head">
      <a class="icon-button back" href="#/" aria-label="Back to the sessions"><${Icon} name="arrow-left" /></a>
      <h1 tabindex="-1">${title}</h1>
      ${actions}
    </header>
    <div class="screen-body"><div class="column ${wide ? "wide" : ""}">${children}</div></div>
  </div>`;
}
