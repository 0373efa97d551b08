/**
 * What a program wrote to a terminal, as lines of coloured spans.
 *
 * Colours and styles are kept, and so are the movements that programs use for progress: carriage return, backspace, erasing a line, going
 * up some lines. Everything else that a terminal would obey is removed: titles, links (OSC 8), the clipboard (OSC 52), queries, modes.
 * What is left and could hide something is made visible as in `text.js`.
 */

import { prose } from "./text.js";

/** Lines and characters that are kept: the last ones, which say how it ended. */
export const MAX_LINES = 5_000;
export const MAX_CHARACTERS = 400_000;
/** Columns that a movement may reach: a program could ask for billions of blanks. */
const MAX_COLUMN = 500;

/** A colour: one of the 16 of the theme, or its own. @typedef {number | string | null} Colour */

/**
 * Text in one style. `fg` and `bg` are null (the usual one), 0 … 15 (of the theme) or `#rrggbb`.
 *
 * @typedef {{text: string, fg: Colour, bg: Colour, bold: boolean, dim: boolean, italic: boolean, underline: boolean, strike: boolean, inverse: boolean}} Span
 */

/** @typedef {Omit<Span, "text">} Style */

/** @type {Style} */
const PLAIN = Object.freeze({ fg: null, bg: null, bold: false, dim: false, italic: false, underline: false, strike: false, inverse: false });

// A sequence for the terminal: with parameters (CSI), a string that ends with BEL or ST (OSC, DCS, SOS, PM, APC), or a short one.
const SEQUENCE = /\x1b(?:\[([0-?]*)([ -/]*)([@-~])|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-Z\\^-~])/y;

/**
 * The lines of what a program wrote.
 *
 * @param {string} text
 * @returns {Span[][]}
 */
export function terminalLines(text) {
  const screen = new Screen();
  screen.write(text.length > MAX_CHARACTERS ? lastPart(text) : text);
  return screen.lines();
}

/** @param {string} text @returns {string} its end, from the beginning of a line */
function lastPart(text) {
  const part = text.slice(-MAX_CHARACTERS);
  return part.slice(part.indexOf("\n") + 1);
}

/** The same without colours. @param {string} text @returns {string[]} */
export function terminalText(text) {
  return terminalLines(text).map((line) => line.map((span) => span.text).join(""));
}

/** One line while it is written: its characters, and the style of each. @typedef {{signs: string[], styles: Style[]}} Line */

/** A terminal of any height that cannot be asked anything. */
class Screen {
  constructor() {
    /** @type {Line[]} */
    this._lines = [{ signs: [], styles: [] }];
    this._row = 0;
    this._column = 0;
    /** @type {Style} */
    this._style = PLAIN;
  }

  /** @param {string} text */
  write(text) {
    for (let index = 0; index < text.length; ) {
      const code = text.charCodeAt(index);
      if (code === 0x1b) {
        SEQUENCE.lastIndex = index;
        const found = SEQUENCE.exec(text);
        if (found === null) {
          index++; // it begins nothing: what follows is shown
        } else {
          if (found[3] !== undefined && found[2] === "") this._control(found[3], found[1]);
          index += found[0].length;
        }
      } else if (code === 0x0a) {
        this._newLine();
        index++;
      } else if (code === 0x0d) {
        this._column = 0;
        index++;
      } else if (code === 0x08) {
        this._column = Math.max(this._column - 1, 0);
        index++;
      } else if (code === 0x07) {
        index++; // a bell
      } else {
        const sign = String.fromCodePoint(/** @type {number} */ (text.codePointAt(index)));
        this._put(sign);
        index += sign.length;
      }
    }
  }

  /** @returns {Span[][]} without empty lines at the end */
  lines() {
    const lines = this._lines.map(spansOf);
    while (lines.length > 0 && lines.at(-1)?.length === 0) lines.pop();
    return lines;
  }

  /** @param {string} sign */
  _put(sign) {
    const line = this._lines[this._row];
    while (line.signs.length < this._column) {
      line.signs.push(" ");
      line.styles.push(PLAIN);
    }
    line.signs[this._column] = sign;
    line.styles[this._column] = this._style;
    this._column++;
  }

  _newLine() {
    this._column = 0;
    this._row++;
    if (this._row < this._lines.length) return;
    this._lines.push({ signs: [], styles: [] });
    if (this._lines.length > MAX_LINES) {
      this._lines.splice(0, MAX_LINES / 10);
      this._row = this._lines.length - 1;
    }
  }

  /** @param {string} end @param {string} parameters */
  _control(end, parameters) {
    if (end === "m") {
      this._style = styled(this._style, parameters);
      return;
    }
    if (!/^[0-9;]*$/.test(parameters)) return; // private ones
    const given = Number.parseInt(parameters, 10);
    const count = Math.max(Number.isNaN(given) ? 1 : given, 1);
    switch (end) {
      case "K":
        this._eraseLine(Number.isNaN(given) ? 0 : given);
        break;
      case "J":
        this._eraseScreen(Number.isNaN(given) ? 0 : given);
        break;
      case "A":
      case "F":
        this._row = Math.max(this._row - count, 0);
        if (end === "F") this._column = 0;
        break;
      case "B":
      case "E":
        this._row = Math.min(this._row + count, this._lines.length - 1);
        if (end === "E") this._column = 0;
        break;
      case "C":
        this._column = Math.min(this._column + count, Math.max(MAX_COLUMN, this._column));
        break;
      case "D":
        this._column = Math.max(this._column - count, 0);
        break;
      case "G":
        this._column = Math.min(count - 1, MAX_COLUMN);
        break;
      default: // modes, queries, places on a screen that is not there
    }
  }

  /** @param {number} part 0: what follows, 1: what is before, 2: all */
  _eraseLine(part) {
    const line = this._lines[this._row];
    if (part === 0 || part === 2) {
      const from = part === 2 ? 0 : this._column;
      line.signs.length = Math.min(line.signs.length, from);
      line.styles.length = line.signs.length;
    } else if (part === 1) {
      for (let column = 0; column <= this._column && column < line.signs.length; column++) {
        line.signs[column] = " ";
        line.styles[column] = PLAIN;
      }
    }
  }

  /** @param {number} part */
  _eraseScreen(part) {
    if (part === 0) {
      this._eraseLine(0);
      this._lines.length = this._row + 1;
    } else if (part === 2 || part === 3) {
      this._lines = [{ signs: [], styles: [] }];
      this._row = 0;
    }
  }
}

/** @param {Line} line @returns {Span[]} */
function spansOf(line) {
  /** @type {Span[]} */
  const spans = [];
  for (let from = 0; from < line.signs.length; ) {
    const style = line.styles[from];
    let to = from + 1;
    while (to < line.signs.length && line.styles[to] === style) to++;
    const before = spans.at(-1)?.text ?? "";
    spans.push({ text: prose(line.signs.slice(from, to).join(""), before), ...style });
    from = to;
  }
  return spans;
}

/** Styles that were used, so that equal ones are one object. @type {Map<string, Style>} */
const STYLES = new Map();

/** @param {Style} style @returns {Style} */
function known(style) {
  const key = Object.values(style).join();
  const found = STYLES.get(key);
  if (found !== undefined) return found;
  if (STYLES.size > 2000) STYLES.clear(); // true colours have no end
  STYLES.set(key, style);
  return style;
}

/** @param {Style} style @param {string} parameters @returns {Style} */
function styled(style, parameters) {
  const codes = parameters.split(/[;:]/).map((code) => (code === "" ? 0 : Number.parseInt(code, 10)));
  let next = { ...style };
  for (let index = 0; index < codes.length; index++) {
    const code = codes[index];
    if (code === 0) next = { ...PLAIN };
    else if (code === 1) next.bold = true;
    else if (code === 2) next.dim = true;
    else if (code === 3) next.italic = true;
    else if (code === 4) next.underline = true;
    else if (code === 7) next.inverse = true;
    else if (code === 9) next.strike = true;
    else if (code === 21 || code === 22) next.bold = next.dim = false;
    else if (code === 23) next.italic = false;
    else if (code === 24) next.underline = false;
    else if (code === 27) next.inverse = false;
    else if (code === 29) next.strike = false;
    else if (code >= 30 && code <= 37) next.fg = code - 30;
    else if (code === 39) next.fg = null;
    else if (code >= 40 && code <= 47) next.bg = code - 40;
    else if (code === 49) next.bg = null;
    else if (code >= 90 && code <= 97) next.fg = code - 82;
    else if (code >= 100 && code <= 107) next.bg = code - 92;
    else if (code === 38 || code === 48) {
      const [colour, used] = colourOf(codes.slice(index + 1));
      if (colour !== undefined) next[code === 38 ? "fg" : "bg"] = colour;
      index += used;
    }
  }
  return known(next);
}

/** @param {number[]} codes what follows 38 or 48 @returns {[Colour | undefined, number]} the colour, and how many codes it took */
function colourOf(codes) {
  if (codes[0] === 5) return [ofPalette(codes[1]), 2];
  if (codes[0] === 2 && codes.length >= 4) return [hex(codes[1], codes[2], codes[3]), 4];
  return [undefined, codes.length];
}

/** @param {number} index @returns {Colour | undefined} one of the 256 colours */
function ofPalette(index) {
  if (!(index >= 0 && index <= 255)) return undefined;
  if (index < 16) return index;
  if (index >= 232) return hex(8 + (index - 232) * 10, 8 + (index - 232) * 10, 8 + (index - 232) * 10);
  const level = (/** @type {number} */ step) => (step === 0 ? 0 : 55 + step * 40);
  const cube = index - 16;
  return hex(level(Math.floor(cube / 36)), level(Math.floor(cube / 6) % 6), level(cube % 6));
}

/** @param {number[]} parts @returns {string} */
function hex(...parts) {
  return `#${parts.map((part) => Math.min(Math.max(part || 0, 0), 255).toString(16).padStart(2, "0")).join("")}`;
}
