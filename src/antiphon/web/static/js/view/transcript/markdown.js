/**
 * Markdown as elements, while it is being written.
 *
 * marked's lexer makes tokens, the tokens become elements: there is no string of HTML anywhere, and HTML in a message is shown as text.
 *
 * A message grows by a few words per frame. `Blocks` keeps the tokens of finished blocks (paragraphs, lists, code …) and lexes only the last
 * one again, so a frame costs the length of that block and not of the message.
 */

import { Lexer } from "../../../vendor/marked.js";
import { Component, html, useEffect, useRef, useState } from "../../html.js";
import { prose } from "../../present/text.js";
import { CodeBlock } from "./code.js";

/** Characters that are lexed in one go. A message that arrives whole is done in pieces, so that no task is long. */
const SLICE = 24_000;

/** Milliseconds of lexing in one task. */
const BUDGET = 24;

/** A paragraph above this is shown as it was written: marks in it would be searched again with each piece. */
const LONGEST_PARAGRAPH = 24_000;

/** Blocks that are drawn together. */
const GROUP = 32;

/** Marks of emphasis in one paragraph: the lexer looks for the partner of each among all others. 24 kB of them took nine seconds. */
const MOST_MARKS = 800;

/** Characters after which a block that does not end, such as a list of thousands of items, goes on as another one. */
const LONGEST_BLOCK = 60_000;

/** Nesting of lists, quotes and emphasis that is shown; below that, the text as it was written. */
const DEEPEST = 24;

/** What an image may be. SVG is not among it: it is a document that may hold others. */
const IMAGE = /^data:image\/(?:png|jpeg|gif|webp);base64,[a-z0-9+/=\s]+$/i;

const OPTIONS = { gfm: true, breaks: false, async: false };

/**
 * @typedef {{type: string, raw: string, text?: string, tokens?: Token[], [name: string]: any}} Token
 */

/** The blocks of a text that grows at its end. */
export class Blocks {
  constructor() {
    /** @type {Token[]} Finished blocks, in order. A token in here never changes. */
    this.done = [];
    /** @type {Token[]} The block that may still grow; with blank lines around it. */
    this.rest = [];
    /** The text that the finished blocks were made of. */
    this.doneText = "";
    /** @type {Record<string, any>} Link definitions so far. */
    this.links = {};
    this.text = "";
    this.lexed = 0;
    this.isOpen = true;
    /** Changes with `rest`, and with everything when the text began anew. */
    this.version = 0;
    this.epoch = 0;
  }

  /** The block at a place, finished or not. @param {number} place @returns {Token} */
  at(place) {
    return place < this.done.length ? this.done[place] : this.rest[place - this.done.length];
  }

  /**
   * Take the text as it is now. Returns whether all of it is lexed; if not, call `advance` again in a later task.
   *
   * @param {string} text
   * @param {boolean} open  whether more may follow
   * @param {number} budget  milliseconds
   */
  advance(text, open, budget = BUDGET) {
    text = text.includes("\r") ? text.replace(/\r\n?/g, "\n") : text;
    if (text !== this.text || open !== this.isOpen) {
      if (!text.startsWith(this.doneText)) this.reset();
      // Only a whole text shows which links its definitions were for: lex it once more when it ends, if it has any.
      if (!open && this.isOpen && Object.keys(this.links).length) this.reset(this.links);
      this.text = text;
      this.isOpen = open;
      this.lexed = Math.min(this.lexed, this.doneText.length);
    }
    const deadline = performance.now() + budget;
    while (this.lexed < text.length) {
      this.step();
      if (performance.now() > deadline) break;
    }
    return this.lexed >= text.length;
  }

  /** @param {Record<string, any>} [links] */
  reset(links = {}) {
    this.done = [];
    this.rest = [];
    this.doneText = "";
    this.lexed = 0;
    this.links = links;
    this.epoch += 1;
  }

  /** Lex the next slice: from the end of what is finished to the end of a line. */
  step() {
    this.version += 1;
    const { text } = this;
    const from = this.doneText.length;
    const plain = plainLength(text, from);
    if (plain) {
      this.finish([{ type: "plain", raw: text.slice(from, from + plain), text: text.slice(from, from + plain) }]);
      this.lexed = this.doneText.length;
      this.rest = [];
      return;
    }
    // A slice that finished nothing was all of one block: the next one is larger.
    const goal = this.lexed + Math.max(SLICE, this.lexed - from);
    const to = goal < text.length ? lineEnd(text, goal) : text.length;
    const tokens = lex(text.slice(from, to), this.links);
    const isEndless = to - from > LONGEST_BLOCK && tokens.at(-1)?.type !== "code";
    const cut = isEndless || (to >= text.length && !this.isOpen) ? tokens.length : lastOpen(tokens);
    this.finish(tokens.slice(0, cut));
    this.rest = tokens.slice(cut).filter(isShown);
    this.lexed = to;
  }

  /** @param {Token[]} tokens */
  finish(tokens) {
    if (!tokens.length) return;
    let length = this.doneText.length;
    for (const token of tokens) {
      length += token.raw.length;
      if (isShown(token)) this.done.push(token);
    }
    this.doneText = this.text.slice(0, length);
  }
}

/** @param {Token} token */
function isShown(token) {
  return token.type !== "space" && token.type !== "def";
}

/** The place of the first token that what follows may still change. @param {Token[]} tokens */
function lastOpen(tokens) {
  let last = tokens.length - 1;
  while (last > 0 && !isShown(tokens[last])) last -= 1;
  // The beginning of the next item of a list looks like a paragraph: "2" before "2. Then". The list is still open.
  if (last > 0 && tokens[last].type === "paragraph" && /^\s*(?:\d{1,9}[.)]?|[-+*])\s*$/.test(tokens[last].raw)) {
    let before = last - 1;
    while (before > 0 && !isShown(tokens[before])) before -= 1;
    if (tokens[before].type === "list") last = before;
  }
  return Math.max(last, 0);
}

/** How much of the text from here on is one paragraph that is too long to be lexed; 0 for everything else. @param {string} text @param {number} from */
function plainLength(text, from) {
  if (text.length - from <= LONGEST_PARAGRAPH) return 0;
  const start = /\S/g;
  start.lastIndex = from;
  const first = start.exec(text);
  if (!first || /^(?:```|~~~)/.test(text.slice(first.index, first.index + 3))) return 0;
  const blank = text.indexOf("\n\n", first.index);
  const end = blank < 0 ? text.length : blank;
  if (end - first.index <= LONGEST_PARAGRAPH) return 0;
  const line = text.lastIndexOf("\n", from + LONGEST_PARAGRAPH);
  return (line > from ? line + 1 : from + LONGEST_PARAGRAPH) - from;
}

/** @param {string} text @param {number} from */
function lineEnd(text, from) {
  const end = text.indexOf("\n", from);
  return end < 0 ? text.length : end + 1;
}

/** A lexer that leaves text with very many marks as it was written. */
class PlainLexer extends Lexer {
  /** @param {string} text @param {any[]} [tokens] */
  inlineTokens(text, tokens = []) {
    let marks = 0;
    for (const mark of text.matchAll(/[*_~]+/g)) {
      if (++marks <= MOST_MARKS) continue;
      tokens.push({ type: "text", raw: text, text: mark.input });
      return tokens;
    }
    return super.inlineTokens(text, tokens);
  }
}

/** Lex some blocks. What the lexer cannot take is shown as it was written. @param {string} text @param {Record<string, any>} links @returns {Token[]} */
function lex(text, links) {
  try {
    const lexer = new PlainLexer(OPTIONS);
    /** @type {any} */ (lexer.tokens).links = links;
    const tokens = /** @type {Token[]} */ ([...lexer.lex(text)]);
    // What is finished is counted by the raw text of the tokens: if that is not all of the text, the count would be wrong.
    return tokens.reduce((sum, token) => sum + token.raw.length, 0) === text.length ? tokens : [{ type: "plain", raw: text, text }];
  } catch {
    return [{ type: "plain", raw: text, text }];
  }
}

/**
 * A text in Markdown.
 *
 * @param {{text: string, open?: boolean}} props  `open`: more of it may follow
 */
export function Markdown({ text, open = false }) {
  const kept = useRef(/** @type {Blocks | null} */ (null));
  const [, again] = useState(0);
  const blocks = (kept.current ??= new Blocks());
  const isWhole = blocks.advance(text, open);
  useEffect(() => {
    if (isWhole) return undefined;
    const timer = setTimeout(() => again((round) => round + 1));
    return () => clearTimeout(timer);
  });
  const total = blocks.done.length + blocks.rest.length;
  const groups = [];
  for (let from = 0; from < total; from += GROUP) {
    const to = Math.min(from + GROUP, total);
    const stamp = to <= blocks.done.length && to - from === GROUP ? `done ${blocks.epoch}` : `${blocks.version} ${open}`;
    groups.push(html`<${Group} key=${from} blocks=${blocks} from=${from} to=${to} stamp=${stamp} open=${open} />`);
  }
  return html`<div class="md" data-open=${open ? "" : undefined}>${groups}${!isWhole && html`<p class="t-faint">…</p>`}</div>`;
}

/** Some blocks. A group that is finished costs nothing while the message goes on: a long one has thousands of blocks. */
class Group extends Component {
  /** @param {any} next */
  shouldComponentUpdate(next) {
    return next.stamp !== this.props.stamp;
  }

  /** @param {any} props */
  render({ blocks, from, to, open }) {
    const drawn = [];
    for (let place = from; place < to; place += 1) drawn.push(html`<${Block} key=${place} token=${blocks.at(place)} open=${open && place >= blocks.done.length} />`);
    return drawn;
  }
}

/** One block. It is drawn again only when its token is another one, which a finished block's never is. */
class Block extends Component {
  /** @param {any} next */
  shouldComponentUpdate(next) {
    return next.token !== this.props.token || next.open !== this.props.open;
  }

  /** @param {any} props */
  render({ token, open }) {
    return block(token, 0, open);
  }
}

/** @param {Token[] | undefined} tokens @param {number} depth @returns {any[]} */
function blocksOf(tokens, depth) {
  return (tokens || []).map((token) => block(token, depth, false));
}

/**
 * @param {Token} token
 * @param {number} depth
 * @param {boolean} [open]
 * @returns {any}
 */
function block(token, depth, open) {
  if (depth > DEEPEST) return html`<p class="md-plain">${prose(token.raw)}</p>`;
  switch (token.type) {
    case "space":
    case "def":
    case "checkbox":
      return null;
    case "code":
      return html`<${CodeBlock} text=${token.text} name=${token.lang || ""} open=${open} />`;
    case "heading":
      // The page, the turn and the message have the levels above.
      return html`<${`h${Math.min(token.depth + 3, 6)}`} class="md-h${token.depth}">${inline(token.tokens, depth)}<//>`;
    case "hr":
      return html`<hr />`;
    case "blockquote":
      return html`<blockquote>${blocksOf(token.tokens, depth + 1)}</blockquote>`;
    case "list":
      return list(token, depth);
    case "table":
      return table(token, depth);
    case "paragraph":
      return html`<p dir="auto">${inline(token.tokens, depth)}</p>`;
    case "text":
      return token.tokens ? inline(token.tokens, depth) : words(token.text);
    case "plain":
      return html`<p class="md-plain" dir="auto">${prose(token.text || "")}</p>`;
    default: // HTML among them: it is shown, never obeyed
      return html`<p class="md-plain">${prose(token.raw.replace(/\n+$/, ""))}</p>`;
  }
}

/** @param {Token} token @param {number} depth */
function list(token, depth) {
  const items = token.items.map((/** @type {Token} */ item) => {
    const inner = blocksOf(item.tokens, depth + 1);
    return item.task
      ? html`<li class="md-task"><input type="checkbox" disabled checked=${item.checked} aria-label=${item.checked ? "done" : "to do"} /><div>${inner}</div></li>`
      : html`<li>${inner}</li>`;
  });
  const tasks = token.items.some((/** @type {Token} */ item) => item.task) ? "md-tasks" : undefined;
  return token.ordered ? html`<ol start=${token.start || 1} class=${tasks}>${items}</ol>` : html`<ul class=${tasks}>${items}</ul>`;
}

/** @param {Token} token @param {number} depth */
function table(token, depth) {
  const cell = (/** @type {string} */ tag) => (/** @type {Token} */ each, /** @type {number} */ column) =>
    html`<${tag} class=${token.align[column] ? `md-${token.align[column]}` : undefined} scope=${tag === "th" ? "col" : undefined}>${inline(each.tokens, depth + 1)}<//>`;
  // A table may be wider than a phone: it scrolls, and the keyboard can scroll it too.
  return html`<div class="md-table" tabindex="0" role="region" aria-label="Table"><table>
    <thead><tr>${token.header.map(cell("th"))}</tr></thead>
    <tbody>${token.rows.map((/** @type {Token[]} */ row) => html`<tr>${row.map(cell("td"))}</tr>`)}</tbody>
  </table></div>`;
}

/** @param {Token[] | undefined} tokens @param {number} depth @returns {any[]} */
function inline(tokens, depth) {
  return (tokens || []).map((token) => span(token, depth + 1));
}

/** @param {Token} token @param {number} depth @returns {any} */
function span(token, depth) {
  if (depth > DEEPEST) return prose(token.raw);
  switch (token.type) {
    case "text":
      return token.tokens ? inline(token.tokens, depth) : words(token.text);
    case "escape":
      return prose(token.text || "");
    case "strong":
      return html`<strong>${inline(token.tokens, depth)}</strong>`;
    case "em":
      return html`<em>${inline(token.tokens, depth)}</em>`;
    case "del":
      return html`<del>${inline(token.tokens, depth)}</del>`;
    case "codespan":
      return html`<code>${prose(token.text || "")}</code>`;
    case "br":
      return html`<br />`;
    case "link":
      return html`<${Link} href=${token.href} text=${token.text} title=${token.title}>${inline(token.tokens, depth)}<//>`;
    case "image":
      return image(token);
    case "checkbox":
      return null;
    default:
      return prose(token.raw);
  }
}

/**
 * A link, if it leads to the web or to a mail address. Any other address is shown beside the words and leads nowhere.
 *
 * @param {{href: string, text?: string, title?: string, children?: any}} props
 */
export function Link({ href, text = "", title = "", children }) {
  const address = webAddress(href);
  const written = prose(href);
  if (!address) {
    const same = text.trim() === href.trim();
    return html`<span class="md-nolink">${children}${!same && html` <span class="md-address">(${written})</span>`}</span>`;
  }
  // Words that look like an address must not hide that the link leads elsewhere.
  const other = /^\s*(?:https?:\/\/|www\.)/i.test(text) && hostOf(text) !== hostOf(address);
  return html`<a href=${address} target="_blank" rel="noopener noreferrer" title=${title ? `${prose(title)}\n${written}` : written}>${children}</a>${
    other && html` <span class="md-address">(${prose(hostOf(address))})</span>`
  }`;
}

/**
 * The address of a link that may be followed; null for every other.
 *
 * @param {string} href
 * @returns {string | null}
 */
export function webAddress(href) {
  try {
    const url = new URL(href.trim());
    return ["http:", "https:", "mailto:"].includes(url.protocol) ? url.href : null;
  } catch {
    return null; // relative ones too: they would lead into this page
  }
}

/** @param {string} text */
function hostOf(text) {
  try {
    return new URL(/^\s*www\./i.test(text) ? `https://${text.trim()}` : text.trim()).host;
  } catch {
    return "";
  }
}

/** @param {Token} token */
function image(token) {
  const text = prose(token.text || "image");
  if (IMAGE.test(token.href)) return html`<img class="t-image" src=${token.href} alt=${text} loading="lazy" />`;
  // Nothing is fetched from elsewhere: it would tell others who reads this.
  return html`<${Link} href=${token.href} text=${token.text} title=${token.title}>Image: ${text}<//>`;
}

const ENTITIES = {
  amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: "\u00a0", copy: "©", reg: "®", trade: "™", hellip: "…", mdash: "—", ndash: "–",
  lsquo: "‘", rsquo: "’", ldquo: "“", rdquo: "”", laquo: "«", raquo: "»", bull: "•", middot: "·", times: "×", divide: "÷", deg: "°", plusmn: "±",
  rarr: "→", larr: "←", uarr: "↑", darr: "↓", harr: "↔", rArr: "⇒", le: "≤", ge: "≥", ne: "≠", infin: "∞", check: "✓", euro: "€", pound: "£", sect: "§",
};

/** Words with their character references as characters, as Markdown has them. @param {string | undefined} text */
function words(text) {
  if (!text) return "";
  if (!text.includes("&")) return prose(text);
  const read = text.replace(/&(?:#(\d{1,7})|#x([\da-f]{1,6})|([a-z]{2,8}));/gi, (whole, decimal, hex, name) => {
    if (name) return Object.hasOwn(ENTITIES, name) ? ENTITIES[/** @type {keyof typeof ENTITIES} */ (name)] : whole;
    const code = decimal ? Number(decimal) : Number.parseInt(hex, 16);
    return code > 0 && code <= 0x10ffff && !(code >= 0xd800 && code < 0xe000) ? String.fromCodePoint(code) : "\ufffd";
  });
  return prose(read);
}
