// The transcript of the page beyond the fold that Python has too: ends of turns, times, engines, repeated prompts, long sessions.

import assert from "node:assert/strict";
import test from "node:test";
import { effect } from "../../../src/antiphon/web/static/vendor/signals.js";
import { callState } from "../../../src/antiphon/web/static/js/present/calls.js";
import { LONG } from "../../../src/antiphon/web/static/js/state/fold.js";
import { Transcript } from "../../../src/antiphon/web/static/js/state/transcript.js";
import { agent, call, event, notice, patch, prompt } from "./peers.mjs";

function played(...frames) {
  const transcript = new Transcript();
  for (const frame of frames) transcript.applyFrame(frame);
  return transcript;
}

const TURN = [notice("turn_started", 1, { turn: "t1", from: "ann", prompt: "p" }), event(2, prompt("do it", "p"))];

test("a turn has its sender, its end and how long it took", () => {
  const transcript = played(...TURN, event(3, agent("done")));
  assert.deepEqual(transcript.turn, { id: "t1", from: "ann", started: 1001, prompt: "p" });
  transcript.applyFrame(notice("turn_ended", 9, { turn: "t1", from: "ann", result: { stopReason: "max_tokens", usage: { totalTokens: 5 } } }));
  const end = transcript.entries.at(-1);
  assert.deepEqual([end.type, end.stopReason, end.error, end.interrupted, end.duration, end.from], ["end", "max_tokens", null, false, 8, "ann"]);
  assert.equal(transcript.turn, null);
  assert.deepEqual(transcript.tokens, { totalTokens: 5 });
  assert.equal(transcript.entries[0].from, "me");
});

test("a turn that was interrupted says so", () => {
  const error = { code: -32603, message: "The turn was interrupted", data: { antiphon: { interrupted: true } } };
  const end = played(...TURN, notice("turn_ended", 3, { turn: "t1", error })).entries.at(-1);
  assert.deepEqual([end.stopReason, end.error.message, end.interrupted], [null, "The turn was interrupted", true]);
});

test("text after the end of a turn begins a new message", () => {
  const transcript = played(event(1, agent("one")), notice("turn_ended", 2, { turn: "t", result: {} }), event(3, agent("two")));
  assert.deepEqual(transcript.entries.map((entry) => entry.text ?? entry.type), ["one", "end", "two"]);
});

test("the end of a prompt that never began ends no turn of others", () => {
  const transcript = played(...TURN, notice("turn_ended", 3, { turn: "t2", result: { stopReason: "cancelled" } }));
  assert.equal(transcript.turn.id, "t1");
  assert.equal(transcript.entries.length, 1);
});

test("an agent that repeats the prompt does not make it appear twice", () => {
  const echo = (text, more) => ({ sessionUpdate: "user_message_chunk", content: { type: "text", text }, ...more });
  const transcript = played(...TURN, event(3, echo("do ", { messageId: "m" })), event(4, echo("it", { messageId: "m" })), event(5, agent("ok")));
  assert.equal(transcript.plain(), "> do it\nok");
  transcript.applyFrame(event(6, echo("something else")));
  assert.equal(transcript.plain(), "> do it\nok\n> something else");
});

test("a call knows when it began and ended", () => {
  const transcript = played(event(1, call("c")), event(5, patch("c", { status: "in_progress" })), event(8, patch("c", { status: "completed" })), event(9, patch("c", { title: "Done" })));
  const [entry] = transcript.entries;
  assert.deepEqual([entry.started, entry.ended, entry.duration], [1001, 1008, 7]);
});

test("a call that a person rejected has not failed", () => {
  const options = [{ optionId: "no", kind: "reject_once" }, { optionId: "yes", kind: "allow_once" }];
  const asked = (number, more) => notice("requested", number, { request: "r", method: "session/request_permission", params: { toolCall: { toolCallId: "c" }, options }, ...more });
  const answered = (number, optionId) => notice("resolved", number, { request: "r", result: { outcome: { outcome: "selected", optionId } } });
  const failed = patch("c", { status: "failed" });
  for (const [optionId, state] of [["no", "rejected"], ["yes", "failed"]]) {
    const frames = [event(1, call("c")), asked(2), answered(3, optionId), event(4, failed)];
    assert.equal(callState(played(...frames).entries[0]), state);
    const older = played(...frames.slice(3));
    older.prepend(frames.slice(0, 3));
    assert.equal(callState(older.entries[0]), state, "also where its beginning was loaded later");
  }
  const live = { method: "session/request_permission", params: { sessionId: "s", toolCall: { toolCallId: "c" }, options, _meta: { antiphon: { request: "r", number: 2, time: 1002 } } } };
  assert.equal(callState(played(event(1, call("c")), live, answered(3, "no"), event(4, failed)).entries[0]), "rejected");
});

test("engines that answer at once do not continue each other's messages, and their labels are no text", () => {
  const by = (engine, more = {}) => ({ _meta: { antiphon: { engine, ...more } } });
  const transcript = played(event(1, agent("Claude: ", by("claude", { label: true }))), event(2, agent("a", by("claude"))), event(3, agent("b", by("codex"))), event(4, call("c", by("codex"))));
  assert.deepEqual(transcript.entries.map((entry) => [entry.engine, entry.text ?? entry.label]), [["claude", "a"], ["codex", "b"], ["codex", "Read"]]);
});

test("a permission request may be the first message about a call", () => {
  const transcript = played(notice("requested", 1, { request: "r", method: "session/request_permission", params: { toolCall: { toolCallId: "c", title: "Write", kind: "edit" } } }));
  assert.deepEqual([transcript.entries[0].label, transcript.entries[0].kind, transcript.entries[0].announced], ["Write", "edit", false]);
});

test("what a terminal prints beside a call is added to it", () => {
  const output = (data) => patch("c", { _meta: { terminal_output: { terminal_id: "t", data } } });
  const [entry] = played(event(1, call("c")), event(2, output("one ")), event(3, output("two")), event(4, patch("c", { _meta: { terminal_exit: { terminal_id: "t", exit_code: 1 } } }))).entries;
  assert.equal(entry.terminals.get("t"), "one two");
  assert.deepEqual(entry.exits.get("t"), { code: 1, signal: null });
});

test("views are told once, of what changed alone", () => {
  const transcript = played(event(1, agent("one")), event(2, call("c")), event(3, agent("two")));
  const counts = [0, 0, 0];
  transcript.entries.forEach((entry, index) => effect(() => void (entry.version.value, counts[index]++)));
  transcript.publish();
  const before = [...counts];
  for (let number = 4; number < 100; number++) transcript.applyFrame(event(number, agent("x")));
  transcript.publish();
  assert.deepEqual(counts, [before[0], before[1], before[2] + 1]);
  const structure = transcript.structure.peek();
  transcript.applyFrame(event(100, call("d")));
  transcript.publish();
  assert.equal(transcript.structure.peek(), structure + 1);
});

test("a message that grows very long goes on in another entry, and nothing is lost", () => {
  const transcript = new Transcript();
  const line = `${"x".repeat(1023)}\n`;
  for (let number = 1; number <= 1024; number++) transcript.applyFrame(event(number, agent(line, { messageId: "m" })));
  assert.ok(transcript.entries.length >= 3);
  assert.ok(transcript.entries.every((entry) => entry.length <= 2 * LONG));
  assert.deepEqual(transcript.entries.map((entry) => entry.continued), [false, ...transcript.entries.slice(1).map(() => true)]);
  assert.ok(transcript.entries.map((entry) => entry.text).join("") === line.repeat(1024));
});

test("a very long message that was cut between two pages keeps its order", () => {
  const line = (number) => `${number} ${"x".repeat(2000)}\n`;
  const frames = Array.from({ length: 400 }, (_, index) => event(index + 1, agent(line(index), { messageId: "m" })));
  const transcript = played(...frames.slice(100));
  transcript.prepend(frames.slice(0, 100), 0);
  assert.ok(transcript.entries.length > 2);
  assert.deepEqual(transcript.entries.map((entry) => entry.continued), [false, ...transcript.entries.slice(1).map(() => true)]);
  assert.ok(transcript.entries.map((entry) => entry.text).join("") === frames.map((frame) => frame.params.update.content.text).join(""));
});

test("a merged piece begins at the number after the event before", () => {
  const transcript = new Transcript(10);
  transcript.applyFrame(event(20, agent("ten pieces")));
  transcript.applyFrame(event(21, call("c")));
  assert.deepEqual(transcript.entries.map((entry) => entry.number), [11, 21]);
});

test("the oldest turns of a long session are dropped, and come back as a page", () => {
  const frames = [];
  for (let turn = 0; turn < 50; turn++) {
    const at = turn * 4;
    frames.push(notice("turn_started", at + 1, { turn: `t${turn}`, from: "me" }), event(at + 2, prompt(`prompt ${turn}`, `p${turn}`, `t${turn}`)), event(at + 3, agent(`answer ${turn}`)), notice("turn_ended", at + 4, { turn: `t${turn}`, result: {} }));
  }
  const whole = played(...frames);
  const transcript = played(...frames);
  const first = transcript.trim(60);
  assert.ok(first > 0 && transcript.entries.length <= 60);
  assert.equal(transcript.entries[0].type, "message");
  assert.equal(transcript.entries[0].number, first);
  assert.equal(transcript.trim(60), 0);
  transcript.prepend(frames.filter((frame) => (frame.params.number ?? frame.params._meta.antiphon.number) < first));
  assert.equal(transcript.plain(), whole.plain());
  const keys = transcript.entries.map((entry) => entry.key);
  assert.deepEqual(keys, [...keys].sort((one, other) => one - other));
});

test("a turn that never ends is bounded too, and a call that was dropped while it ran ends where it stands", () => {
  const frames = [event(1, call("long", { status: "in_progress" }))];
  for (let number = 2; number <= 200; number++) frames.push(event(number, call(`c${number}`, { status: "completed" })));
  const transcript = played(...frames);
  const first = transcript.trim(50);
  assert.ok(transcript.entries.length <= 50);
  transcript.applyFrame(event(201, patch("long", { status: "completed" })));
  assert.ok(!transcript.entries.some((entry) => entry.id === "long"));
  transcript.prepend(frames.slice(0, first - 1));
  assert.equal(transcript.entries.length, 200);
  assert.equal(transcript.entries[0].status, "completed");
});

test("what is large is dropped by its size", () => {
  const transcript = new Transcript();
  for (let number = 1; number <= 100; number++) transcript.applyFrame(event(number, call(`c${number}`, { content: [{ type: "diff", path: "/a", newText: "x".repeat(10_000) }] })));
  assert.ok(transcript.trim(1000, 200_000) > 0);
  assert.ok(transcript.entries.reduce((sum, entry) => sum + entry.weight, 0) <= 200_000);
});

test("what is no update is no error", () => {
  for (const update of [null, 5, "x", {}, { sessionUpdate: "agent_message_chunk" }, { sessionUpdate: "tool_call" }, { sessionUpdate: "plan", entries: "x" }, { sessionUpdate: "available_commands_update", availableCommands: [null, {}] }, agent(5)]) {
    const transcript = played(event(1, update));
    assert.equal(transcript.plain(), "");
  }
  assert.equal(played({ method: "session/update" }, { method: "session/request_permission", params: {} }, {}).entries.length, 0);
});
