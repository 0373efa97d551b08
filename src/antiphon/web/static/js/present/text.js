/**
 * Text for people: invisible characters made visible, ANSI codes removed. The twin of `src/antiphon/text.py`; both are tested with the
 * cases in `tests/presentation_cases`.
 *
 * - `exact`, for what a person decides by (a command, a path, an address): nothing is invisible.
 * - `prose`, for everything else: an invisible character is kept only where it is needed to write something. That is a joiner
 *   inside an emoji or between letters of a script that joins them, one variation selector behind a character that has forms,
 *   a direction mark beside a right-to-left letter, the tags of a flag. Elsewhere it can only hide something, so its number is shown.
 */

/** @param {string} sign @returns {string} */
function number(sign) {
  const code = /** @type {number} */ (sign.codePointAt(0));
  return `<U+${code.toString(16).toUpperCase().padStart(4, "0")}>`;
}

/** @param {string} sign @returns {string} the picture of a control character */
function picture(sign) {
  const code = sign.charCodeAt(0);
  return code === 0x7f ? "\u2421" : String.fromCharCode(0x2400 + code);
}

// What a terminal would obey. Line ends and tabs stay.
const CONTROLS = /[\x00-\x08\x0b-\x1f\x7f]/g;
// C1 controls, and what turns text around: with embeddings, overrides and isolates a line can be shown in another order than it is
// read by the shell.
const TURNING = "\u202a-\u202e\u2066-\u2069";
const C1_AND_TURNING = new RegExp(`[\\x80-\\x9f${TURNING}]`, "g");
const BREAKS = /[\u2028\u2029\x85]/g;
// Characters that look like a space and are not: to a shell they are part of a word.
const BLANKS = "\u00a0\u1680\u2000-\u200a\u202f\u205f\u2800";
// Characters that are shown as nothing at all. U+FE0F is not among them: it makes emoji of signs, and is in many sentences.
const NOTHING =
  "\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200b-\\u200f\\u2060-\\u2065\\u206a-\\u206f\\u3164\\ufe00-\\ufe0e\\ufeff" +
  "\\uffa0\\ufff0-\\ufffb\\u{13430}-\\u{1343f}\\u{1bca0}-\\u{1bca3}\\u{1d173}-\\u{1d17a}";
const EMOJI = "\\u00a9\\u00ae\\u203c-\\u2bff\\u3030\\u303d\\u3297\\u3299\\u{1f000}-\\u{1faff}";
const EXACT_ONLY = new RegExp(`[\\x80-\\x9f${TURNING}${BLANKS}\\u2028\\u2029${NOTHING}\\u{e0000}-\\u{e0fff}]|(?<![${EMOJI}])\\ufe0f`, "gu");

// Scripts that join letters, or keep them apart, by characters that show nothing: Arabic, the scripts of India, Khmer, Mongolian …
const JOINING = "\\u0620-\\u109f\\u1780-\\u17b3\\u17b6-\\u17ff\\u1820-\\u18af\\ua840-\\uabff\\ufb50-\\ufdff\\ufe70-\\ufefc\\u{10a00}-\\u{11fff}";
const LEFTWARDS = "\\u0590-\\u061b\\u061d-\\u08ff\\ufb1d-\\ufdff\\ufe70-\\ufefc\\u{10800}-\\u{10fff}\\u{1e800}-\\u{1efff}";
const IDEOGRAPHS = "\\u3400-\\u9fff\\uf900-\\ufaff\\u{20000}-\\u{3ffff}";
// What has forms to choose from by the selectors 1 to 14: signs of mathematics, punctuation of full width, ideographs …
const VARYING = `\\u1000-\\u109f\\u2200-\\u2aff\\u3000-\\u303f\\ua840-\\ua87f\\uff00-\\uff9f\\uffa1-\\uffef${IDEOGRAPHS}`;

// Characters that show nothing. The group `needless` is set where the character is not needed to write something.
const HIDDEN = new RegExp(
  [
    `(?<=[${EMOJI}])\\ufe0f?\\u200d(?=[${EMOJI}]|$)`, // parts of an emoji
    `(?<=[${EMOJI}]\\ufe0f)\\u200d(?=[${EMOJI}]|$)`,
    `(?<=[${JOINING}])[\\u200c\\u200d](?=[${JOINING}]|$)`,
    `(?<=[${LEFTWARDS}])[\\u200e\\u200f\\u061c]|[\\u200e\\u200f\\u061c](?=[${LEFTWARDS}])`,
    "(?<=[\\u1820-\\u18af])[\\u180b-\\u180d\\u180f]",
    `(?<=[${EMOJI}0-9#*])[\\ufe0e\\ufe0f]`, // one selector behind a character that has forms to choose from
    `(?<=[${VARYING}])[\\ufe00-\\ufe0d]|(?<=[${IDEOGRAPHS}])[\\u{e0100}-\\u{e01ef}]`,
    "(?<=\\u{1f3f4})[\\u{e0030}-\\u{e0039}\\u{e0061}-\\u{e007a}]{2,6}\\u{e007f}", // the flag of a region
    `(?<needless>[${NOTHING}\\ufe0f\\u{e0000}-\\u{e0fff}])`,
  ].join("|"),
  "gu",
);

const ASCII = /^[\x00-\x7f]*$/;
/** A half of a surrogate pair, which no message can carry. */
const HALVES = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

/**
 * Text that a person decides by, with its lines and tabs.
 *
 * @param {string} text
 * @returns {string}
 */
export function exact(text) {
  const plain = text.replaceAll("\r\n", "\n").replace(HALVES, "?").replace(CONTROLS, picture);
  return ASCII.test(plain) ? plain : plain.replace(EXACT_ONLY, number);
}

/**
 * Words, with their lines and tabs.
 *
 * @param {string} text
 * @param {string} [before] what was shown just before them: words come in pieces, also emoji
 * @returns {string}
 */
export function prose(text, before = "") {
  const plain = text.replaceAll("\r\n", "\n").replace(CONTROLS, picture);
  if (ASCII.test(plain)) return plain;
  return shown(plain.replace(BREAKS, "\n").replace(C1_AND_TURNING, number), before);
}

/** @param {string} text @param {string} before @returns {string} */
function shown(text, before) {
  const kept = Array.from(before).slice(-2).join("");
  const whole = kept + text;
  let written = "";
  let place = kept.length;
  HIDDEN.lastIndex = place;
  for (let found = HIDDEN.exec(whole); found !== null; found = HIDDEN.exec(whole)) {
    if (found.groups?.needless === undefined) continue; // needed where it stands
    written += whole.slice(place, found.index) + Array.from(found[0], number).join("");
    place = found.index + found[0].length;
  }
  return written + whole.slice(place);
}

/** Prose on one line, with single spaces. @param {string} text @returns {string} */
export function oneLine(text) {
  return words(prose(text)).join(" ");
}

/** A command, a path or an address on one line, with single spaces and nothing invisible. @param {string} text @returns {string} */
export function exactLine(text) {
  return words(exact(text)).join(" ");
}

/** @param {string} text @returns {string[]} what stands between blanks, as Python's `split` sees them */
function words(text) {
  return text.split(/[\s\x1c-\x1f\x85]+/u).filter((word) => word !== "" && word !== "\ufeff");
}

const ANSI = /\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[ -/]*[0-~]/g;

/** Remove the escape sequences that only a terminal understands. @param {string} text @returns {string} */
export function stripAnsi(text) {
  return text.includes("\x1b") ? text.replace(ANSI, "") : text;
}

/** A number of bytes as people read it: `39.1 KiB`. @param {number} size @returns {string} */
export function sizeInWords(size) {
  if (size < 1024) return size === 1 ? "1 byte" : `${size} bytes`;
  const [unit, name] = size >= 1000 * 1024 ? [1024 * 1024, "MiB"] : [1024, "KiB"];
  return size >= 100 * unit ? `${Math.floor((size + Math.floor(unit / 2)) / unit)} ${name}` : `${significant(size / unit, 3)} ${name}`;
}

/**
 * A number with so many digits that count, as Python's `g` writes it for numbers that people read.
 *
 * @param {number} value
 * @param {number} digits
 * @returns {string}
 */
export function significant(value, digits) {
  if (value === 0) return Object.is(value, -0) ? "-0" : "0";
  const sign = value < 0 ? "-" : "";
  const [written, power] = rounded(Math.abs(value), digits);
  const cut = written.replace(/0+$/, "");
  if (power >= digits) return `${sign}${cut[0]}${cut.length > 1 ? `.${cut.slice(1)}` : ""}e+${String(power).padStart(2, "0")}`;
  if (power < -4) return `${sign}${cut[0]}${cut.length > 1 ? `.${cut.slice(1)}` : ""}e-${String(-power).padStart(2, "0")}`;
  if (power < 0) return `${sign}0.${"0".repeat(-power - 1)}${cut}`;
  const whole = written.slice(0, power + 1);
  const part = written.slice(power + 1).replace(/0+$/, "");
  return `${sign}${whole}${part ? `.${part}` : ""}`;
}

/**
 * The first digits of a number and its power of ten. Halves go to the even digit as in Python; `toPrecision` rounds them up.
 *
 * @param {number} value
 * @param {number} digits
 * @returns {[string, number]}
 */
function rounded(value, digits) {
  const [mantissa, exponent] = value.toExponential(60).split("e"); // all digits that a number of this size has
  const all = mantissa.replace(".", "");
  const [head, rest] = [all.slice(0, digits), all.slice(digits)];
  const half = `5${"0".repeat(rest.length - 1)}`;
  const up = rest > half || (rest === half && Number(head.at(-1)) % 2 === 1);
  const next = up ? String(BigInt(head) + 1n) : head;
  return next.length > digits ? [next.slice(0, digits), Number(exponent) + 1] : [next, Number(exponent)];
}

/** How long something took, as people read it: `0.4 s`, `12 s`, `3 min 5 s`. @param {number} seconds @returns {string} */
export function durationInWords(seconds) {
  if (seconds < 10) return `${seconds < 0.05 ? "0" : (Math.round(seconds * 10) / 10).toString()} s`;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  const minutes = Math.floor(whole / 60);
  if (minutes < 60) return whole % 60 === 0 ? `${minutes} min` : `${minutes} min ${whole % 60} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
