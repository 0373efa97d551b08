/** The overlay with all keys, which `?` opens. */

import { html } from "../html.js";
import { Dialog } from "./dialog.js";

const GROUPS = [
  ["Everywhere", [
    ["?", "This list"],
    ["/", "Search sessions"],
    ["n", "New session"],
    ["g then l", "The list of sessions"],
    ["g then s", "Settings"],
    ["w", "The next session that waits for you"],
  ]],
  ["List of sessions", [
    ["j or ↓", "Next session"],
    ["k or ↑", "Previous session"],
    ["Enter", "Open it"],
    ["r", "Rename it"],
  ]],
  ["Session", [
    ["i", "Write a message"],
    ["Enter", "Send; Shift Enter breaks the line"],
    ["/", "Commands, at the start of a message"],
    ["@", "Files of the directory, in a message"],
    ["↑", "Your last message, while the field is empty"],
    ["Esc Esc", "Stop the turn"],
    ["d", "All changes of the session"],
  ]],
  ["Permission requests", [
    ["1 … 4", "Choose the option with this number"],
    ["y", "Allow, this once"],
    ["n", "Reject, this once"],
    ["Esc", "Put it aside; it keeps waiting"],
    ["p", "Back to what was put aside"],
  ]],
];

/** @param {{onClose: () => void}} props */
export function HelpDialog({ onClose }) {
  return html`<${Dialog} title="Keys" class="wide" onClose=${onClose}>
    <div class="key-groups">
      ${GROUPS.map(([name, keys]) => html`<section>
        <h3>${name}</h3>
        <dl class="keys">
          ${/** @type {string[][]} */ (keys).map(([key, what]) => html`<div>
            <dt>${key.split(" ").map((part) => (/^(then|or|…)$/.test(part) ? html`<span class="faint"> ${part} </span>` : html`<kbd>${part}</kbd>`))}</dt>
            <dd>${what}</dd>
          </div>`)}
        </dl>
      </section>`)}
    </div>
  <//>`;
}
