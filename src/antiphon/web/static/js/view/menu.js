/**
 * A button that opens a menu, with the keys that menus have: arrows, Home, End, a letter, Esc, Tab.
 */

import { html, useEffect, useLayoutEffect, useRef, useState } from "../html.js";
import { Icon } from "./icons.js";

/**
 * @typedef {{
 *   label: string, detail?: string, icon?: string, danger?: boolean, disabled?: boolean, checked?: boolean, onSelect?: () => void, href?: string, key?: string,
 * }} MenuItem  `checked`: one of several choices, and whether it is the chosen one
 */

/**
 * A button with a menu below or above it. The items are computed when it opens and stay as they are: one that came while a finger is on its way would
 * have the next one chosen.
 *
 * @param {{label: string, items: () => (MenuItem | null | false)[], icon?: string, class?: string, children?: any, align?: "left" | "right"}} props
 */
export function MenuButton({ label, items, icon = "more", class: extra = "icon-button", children, align = "right" }) {
  const [open, setOpen] = useState(/** @type {MenuItem[] | null} */ (null));
  const button = useRef(/** @type {HTMLButtonElement | null} */ (null));
  const shown = () => items().filter((item) => item !== null && item !== false);
  const close = (/** @type {boolean} */ refocus) => {
    setOpen(null);
    if (refocus) button.current?.focus();
  };
  const pressed = (/** @type {KeyboardEvent} */ event) => {
    if (!open && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
      event.preventDefault();
      setOpen(shown());
    }
  };
  const clicked = (/** @type {MouseEvent} */ event) => {
    event.preventDefault(); // it may stand inside of a link
    event.stopPropagation();
    setOpen(open ? null : shown());
  };
  return html`<span class="menu-anchor">
    <button ref=${button} type="button" class=${extra} aria-haspopup="menu" aria-expanded=${open !== null} aria-label=${label} title=${label}
      onClick=${clicked} onKeyDown=${pressed}>
      ${children ?? html`<${Icon} name=${icon} />`}
    </button>
    ${open && html`<${Menu} label=${label} items=${open} anchor=${button.current} align=${align} onClose=${close} />`}
  </span>`;
}

/**
 * @param {{label: string, items: any[], anchor: HTMLElement | null, align: string, onClose: (refocus: boolean) => void}} props
 */
function Menu({ label, items, anchor, align, onClose }) {
  const ref = useRef(/** @type {HTMLDivElement | null} */ (null));

  useLayoutEffect(() => {
    const menu = /** @type {HTMLDivElement} */ (ref.current);
    const place = anchor?.getBoundingClientRect();
    if (place) {
      const { width, height } = menu.getBoundingClientRect();
      const left = align === "right" ? place.right - width : place.left;
      const below = place.bottom + 4;
      const top = below + height > innerHeight - 8 ? Math.max(8, place.top - height - 4) : below;
      menu.style.left = `${Math.min(Math.max(8, left), innerWidth - width - 8)}px`;
      menu.style.top = `${top}px`;
    }
    const chosen = menu.querySelector("[aria-checked=true]") ?? menu.querySelector("[role^=menuitem]");
    /** @type {HTMLElement | null} */ (chosen)?.focus();
  }, []);

  useEffect(() => {
    const outside = (/** @type {Event} */ event) => {
      const target = /** @type {Node} */ (event.target);
      if (!ref.current?.contains(target) && !anchor?.contains(target)) onClose(false);
    };
    const moved = () => onClose(false);
    document.addEventListener("pointerdown", outside, true);
    addEventListener("resize", moved);
    return () => {
      document.removeEventListener("pointerdown", outside, true);
      removeEventListener("resize", moved);
    };
  }, []);

  const pressed = (/** @type {KeyboardEvent} */ event) => {
    const all = /** @type {HTMLElement[]} */ ([...(ref.current?.querySelectorAll("[role^=menuitem]:not([disabled])") ?? [])]);
    const at = all.indexOf(/** @type {HTMLElement} */ (document.activeElement));
    /** @type {Record<string, number>} */
    const steps = { ArrowDown: at + 1, ArrowUp: at - 1 + all.length, Home: 0, End: all.length - 1 };
    event.stopPropagation();
    if (event.key in steps && all.length) {
      event.preventDefault();
      all[steps[event.key] % all.length].focus();
    } else if (event.key === "Escape") {
      event.preventDefault();
      onClose(true);
    } else if (event.key === "Tab") {
      onClose(true);
    } else if (event.key.length === 1 && event.key !== " ") {
      const letter = event.key.toLowerCase();
      const next = [...all.slice(at + 1), ...all].find((item) => item.textContent?.trim().toLowerCase().startsWith(letter));
      next?.focus();
    }
  };
  const select = (/** @type {MenuItem} */ item, /** @type {MouseEvent} */ event) => {
    event.stopPropagation();
    // The focus goes back first: what the item does may move it on, into a dialog or a field.
    onClose(true);
    item.onSelect?.();
  };

  return html`<div ref=${ref} class="menu" role="menu" aria-label=${label} onKeyDown=${pressed}>
    ${items.map((item) => {
      const body = html`
        ${item.icon && html`<${Icon} name=${item.icon} />`}
        <span class="menu-text"><span class="truncate">${item.label}</span>${item.detail && html`<span class="menu-detail">${item.detail}</span>`}</span>
        ${item.checked && html`<${Icon} name="check" class="menu-check" />`}
        ${item.key && html`<kbd aria-hidden="true">${item.key}</kbd>`}`;
      const role = item.checked === undefined ? "menuitem" : "menuitemradio";
      const shared = { class: `menu-item ${item.danger ? "danger" : ""}`, role, tabIndex: -1, "aria-checked": item.checked };
      return item.href
        ? html`<a ...${shared} href=${item.href} onClick=${(/** @type {MouseEvent} */ event) => select(item, event)}>${body}</a>`
        : html`<button type="button" ...${shared} disabled=${item.disabled}
            onClick=${(/** @type {MouseEvent} */ event) => select(item, event)}>${body}</button>`;
    })}
  </div>`;
}
