// Folds lists of updates for `tests/web/test_fold.py`: one list of events in each line of the input, what a screen shows of them in each line of
// the output. With `cut`, the events after it are folded first and those before it are put in front, as older pages are.

import { createInterface } from "node:readline";
import { Transcript } from "../../../src/antiphon/web/static/js/state/transcript.js";

function shown(entry) {
  const { type, text, blocks, engine, from } = entry;
  switch (type) {
    case "message":
      return { type, speaker: entry.speaker, messageId: entry.messageId, text, blocks, engine, from };
    case "thought":
      return { type, messageId: entry.messageId, text, blocks, engine };
    case "call": {
      const { id, title, label, kindWord, kind, statusWord, status, name, content, locations, denied, announced, finished } = entry;
      const raw = [entry.rawInput === undefined ? [] : [entry.rawInput], entry.rawOutput === undefined ? [] : [entry.rawOutput]];
      return { type, id, title, label, kindWord, kind, statusWord, status, name, content, locations, raw, denied, announced, finished };
    }
    case "notice":
      return { type, severity: entry.severityWord, title: entry.title, description: entry.description };
    case "compaction":
      return { type, id: entry.id, status: entry.status, error: entry.error, text, blocks };
    default:
      return { type, turn: entry.turn, stopReason: entry.stopReason, error: entry.error, duration: entry.duration, from: entry.from };
  }
}

function state(transcript) {
  const { plan, usage, mode, model, commands, configOptions, title, unshown } = transcript;
  return { plan, plans: Object.fromEntries(transcript.plans), usage, mode, model, commands, configOptions, title, unshown };
}

function folded(frames, cut) {
  const transcript = new Transcript();
  for (const frame of frames.slice(cut)) transcript.applyFrame(frame);
  if (cut > 0) transcript.prepend(frames.slice(0, cut));
  const keys = transcript.entries.map((entry) => entry.key);
  const ordered = keys.every((key, index) => index === 0 || key > keys[index - 1]);
  return { entries: transcript.entries.map(shown), state: state(transcript), plain: transcript.plain(), ordered };
}

for await (const line of createInterface({ input: process.stdin })) {
  const { frames, cut = 0 } = JSON.parse(line);
  process.stdout.write(`${JSON.stringify(folded(frames, cut))}\n`);
}
