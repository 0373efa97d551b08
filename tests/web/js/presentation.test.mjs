// What a person is shown of things is the same on the page, in the terminal and in an export: `tests/transcript/test_presentation_cases.py`
// runs the same cases in Python.

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import test from "node:test";
import { callLine, changesOf, writtenLines } from "../../../src/antiphon/web/static/js/present/calls.js";
import { diffHead, diffRows, diffText } from "../../../src/antiphon/web/static/js/present/diffs.js";
import { Wrong, fieldsOf } from "../../../src/antiphon/web/static/js/present/forms.js";
import { shownPath } from "../../../src/antiphon/web/static/js/present/paths.js";
import { terminalLines } from "../../../src/antiphon/web/static/js/present/terminal.js";
import { exact, exactLine, oneLine, prose, sizeInWords, stripAnsi } from "../../../src/antiphon/web/static/js/present/text.js";
import { planLine, usageLine } from "../../../src/antiphon/web/static/js/present/usage.js";
import { fold } from "../../../src/antiphon/web/static/js/state/transcript.js";

const CASES = new URL("../../presentation_cases/", import.meta.url);

const FUNCTIONS = {
  exact: (given) => exact(given),
  exact_line: (given) => exactLine(given),
  prose: (given) => prose(given.text, given.before),
  one_line: (given) => oneLine(given),
  strip_ansi: (given) => stripAnsi(given),
  size_in_words: (given) => sizeInWords(given),
  shown_path: (given) => shownPath(given.path, given.cwd),
  call_line: (given) => callLine(fold(given.updates).entries[0], given.cwd),
  plan_line: (given) => planLine(given),
  usage_line: (given) => usageLine(given.usage, given.tokens),
  written_lines: (given) => writtenLines(given),
  changes: (given) => changesOf(fold(given).entries),
  diff_lines: ({ path, diff, times = 1 }) => {
    const rows = diffRows(diff.oldText, diff.newText.repeat(times));
    return [diffHead(path, rows), ...diffText(rows)];
  },
  forms: (given) => fieldsOf(given.form).map((field) => ({ prompt: field.prompt, explained: field.explained, read: readAll(field, given.lines[field.key] ?? []) })),
  transcript: (given) => fold(given).plain(),
  terminal: (given) => terminalLines(given).map((line) => line.map(briefly)),
};

function readAll(field, lines) {
  return lines.map((line) => {
    try {
      const value = field.read(line);
      return [line, value === Infinity ? null : value]; // JSON has no word for it
    } catch (error) {
      if (!(error instanceof Wrong)) throw error;
      return [line, { wrong: error.message }];
    }
  });
}

/** A span with the styles that it has, and no others. */
function briefly(span) {
  return Object.fromEntries(Object.entries(span).filter(([name, value]) => name === "text" || (value !== null && value !== false)));
}

for (const file of readdirSync(CASES).sort()) {
  const name = file.replace(".json", "");
  for (const { name: label, input, expected, side = "javascript" } of JSON.parse(readFileSync(new URL(file, CASES), "utf-8"))) {
    if (side === "javascript") test(`${name}: ${label}`, () => assert.deepEqual(FUNCTIONS[name](input), expected));
  }
}
