/**
 * Forms as fields: what each asks for, and what a typed line means. The twin of `src/antiphon/transcript/forms.py`, with the same sentences.
 *
 * A view may use controls of its own; `check` takes the values of those, `read` a typed line.
 */

/** @typedef {string | number | boolean | string[]} FieldValue */

/** @type {Record<string, boolean>} */
const YES = { y: true, yes: true, true: true, on: true, n: false, no: false, false: false, off: false };

/** @type {Record<string, RegExp>} */
const FORMATS = {
  email: /^[^@\s]+@[^@\s]+$/u,
  uri: /^[A-Za-z][\p{L}\p{N}_+.-]*:\S+$/u,
  date: /^\p{Nd}{4}-\p{Nd}\p{Nd}-\p{Nd}\p{Nd}$/u,
  "date-time": /^\p{Nd}{4}-\p{Nd}\p{Nd}-\p{Nd}\p{Nd}[Tt ]\p{Nd}\p{Nd}:\p{Nd}\p{Nd}\S*$/u,
};

/** The given value does not fit the field; the message is the reason. */
export class Wrong extends Error {}

/** One field of a form. */
export class Field {
  /** @param {string} key @param {any} asked the property of the schema @param {boolean} required */
  constructor(key, asked, required) {
    this.key = key;
    this.asked = typeof asked === "object" && asked !== null ? asked : {};
    this.required = required;
    /** The values to choose from → the words for them. @type {Map<string, string>} */
    this.choices = choicesOf(this.asked);
  }

  /** @returns {"text" | "number" | "integer" | "yes-no" | "one" | "several" | "unknown"} the control that fits */
  get kind() {
    switch (this.asked.type) {
      case "boolean":
        return "yes-no";
      case "integer":
      case "number":
        return this.asked.type;
      case "array":
        return "several";
      case "string":
        return this.choices.size > 0 ? "one" : "text";
      default:
        return "unknown";
    }
  }

  /** @returns {string} */
  get title() {
    return this.asked.title || this.key;
  }

  /** What stands before the cursor. @returns {string} */
  get prompt() {
    const given = shown(this.asked.default);
    return `${this.title}${this.required ? " *" : ""}${given ? ` [${given}]` : ""}`;
  }

  /** What to know before typing. @returns {string[]} */
  get explained() {
    const lines = this.asked.description ? [String(this.asked.description)] : [];
    let index = 1;
    for (const [value, words] of this.choices) lines.push(`${index++}  ${words}${words !== value ? ` (${value})` : ""}`);
    if (this.asked.type === "array") lines.push("several, with commas between them");
    return lines;
  }

  /**
   * What a typed line means.
   *
   * @param {string} line
   * @returns {FieldValue | null} null: nothing, and it need not
   * @throws {Wrong} it does not fit
   */
  read(line) {
    if (!line) return this._default();
    switch (this.asked.type) {
      case "boolean":
        if (!Object.hasOwn(YES, line.toLowerCase())) throw new Wrong("answer yes or no");
        return YES[line.toLowerCase()];
      case "integer":
      case "number":
        return readNumber(line, this.asked);
      case "array":
        return checkSeveral(distinct(line.split(",").map((word) => word.trim()).filter(Boolean).map((word) => readOne(word, this.choices))), this.asked);
      case "string":
        return readText(line, this.asked, this.choices);
      default:
        return line;
    }
  }

  /**
   * Check the value of a control: a string, a boolean, or a list of chosen values; null where nothing was given.
   *
   * @param {FieldValue | null} value
   * @returns {FieldValue | null}
   * @throws {Wrong} it does not fit
   */
  check(value) {
    if (value === null || value === "" || (Array.isArray(value) && value.length === 0 && !this.required && !this.asked.minItems)) {
      if (this.required && this.asked.default == null) throw new Wrong("this cannot be left out");
      return null;
    }
    if (Array.isArray(value)) return checkSeveral(value, this.asked);
    return typeof value === "boolean" ? value : this.read(String(value));
  }

  /** @returns {FieldValue | null} */
  _default() {
    const given = this.asked.default ?? null;
    if (given === null && this.required) throw new Wrong("this cannot be left out");
    return given;
  }
}

/**
 * The fields of a form, in its order.
 *
 * @param {any} form the `requestedSchema` of a question
 * @returns {Field[]}
 */
export function fieldsOf(form) {
  const required = Array.isArray(form?.required) ? form.required : [];
  return Object.entries(form?.properties ?? {}).map(([key, asked]) => new Field(key, asked, required.includes(key)));
}

/** @param {any} asked @returns {Map<string, string>} */
function choicesOf(asked) {
  const titled = (/** @type {any[]} */ options) =>
    new Map(options.filter((option) => typeof option?.const === "string").map((option) => [option.const, `${option.title}${option.description ? `: ${option.description}` : ""}`]));
  const plain = (/** @type {string[]} */ values) => new Map(values.filter((value) => typeof value === "string").map((value) => [value, value]));
  if (asked.type === "string" && Array.isArray(asked.enum)) return plain(asked.enum);
  if (asked.type === "string" && Array.isArray(asked.oneOf)) return titled(asked.oneOf);
  if (asked.type === "array" && Array.isArray(asked.items?.anyOf)) return titled(asked.items.anyOf);
  if (asked.type === "array" && Array.isArray(asked.items?.enum)) return plain(asked.items.enum);
  return new Map();
}

/** @param {string} line @param {any} asked @returns {number} */
function readNumber(line, asked) {
  const whole = asked.type === "integer";
  const text = line.trim();
  const isNumber = whole ? /^[+-]?\d+(_\d+)*$/.test(text) : /^[+-]?(\d+(_\d+)*\.?(\d+(_\d+)*)?|\.\d+(_\d+)*)([eE][+-]?\d+(_\d+)*)?$/.test(text);
  const special = whole ? undefined : SPECIAL[text.toLowerCase()];
  if (!isNumber && special === undefined) throw new Wrong(whole ? "this is not a whole number" : "this is not a number");
  const value = special ?? Number(text.replaceAll("_", ""));
  if (Number.isNaN(value) || (typeof asked.minimum === "number" && value < asked.minimum)) throw new Wrong(`at least ${limit(asked.minimum, whole)}`);
  if (typeof asked.maximum === "number" && value > asked.maximum) throw new Wrong(`at most ${limit(asked.maximum, whole)}`);
  return value;
}

/** @type {Record<string, number>} */
const SPECIAL = { inf: Infinity, "+inf": Infinity, infinity: Infinity, "+infinity": Infinity, "-inf": -Infinity, "-infinity": -Infinity, nan: NaN, "+nan": NaN, "-nan": NaN };

/** @param {number | null | undefined} value @param {boolean} whole @returns {string} a limit as Python writes it: floats have a point */
function limit(value, whole) {
  if (value == null) return "None";
  return !whole && Number.isInteger(value) ? `${value}.0` : String(value);
}

/** A choice, by its value, its number or its words. @param {string} line @param {Map<string, string>} choices @returns {string} */
function readOne(line, choices) {
  const values = [...choices.keys()];
  if (choices.has(line)) return line;
  if (/^[0-9]+$/.test(line) && Number(line) >= 1 && Number(line) <= values.length) return values[Number(line) - 1];
  for (const [value, words] of choices) if (words.toLowerCase().split(":")[0] === line.toLowerCase()) return value;
  throw new Wrong(`choose one of ${values.join(", ")}, or a number`);
}

/** @param {string[]} chosen @param {any} asked @returns {string[]} */
function checkSeveral(chosen, asked) {
  if (chosen.length < (asked.minItems ?? 0)) throw new Wrong(`choose at least ${asked.minItems}`);
  if (typeof asked.maxItems === "number" && chosen.length > asked.maxItems) throw new Wrong(`choose at most ${asked.maxItems}`);
  return chosen;
}

/** @param {string[]} values @returns {string[]} */
function distinct(values) {
  return [...new Set(values)];
}

/** @param {string} line @param {any} asked @param {Map<string, string>} choices @returns {string} */
function readText(line, asked, choices) {
  if (choices.size > 0) return readOne(line, choices);
  const length = [...line].length;
  if (length < (asked.minLength ?? 0)) throw new Wrong(`at least ${asked.minLength} letters`);
  if (typeof asked.maxLength === "number" && length > asked.maxLength) throw new Wrong(`at most ${asked.maxLength} letters`);
  const format = typeof asked.format === "string" && Object.hasOwn(FORMATS, asked.format) ? FORMATS[asked.format] : null;
  if (format !== null && !format.test(line)) throw new Wrong(`this is no ${asked.format}`);
  // A pattern is the agent's to check: some of them would keep us busy for ever.
  return line;
}

/** @param {any} value @returns {string} */
function shown(value) {
  if (value == null) return "";
  if (typeof value === "boolean") return value ? "yes" : "no";
  return Array.isArray(value) ? value.map(String).join(",") : String(value);
}
