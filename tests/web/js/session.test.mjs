// A session as the page follows it, with a gateway that is played by the test: order, gaps, floods, prompts, requests.

import assert from "node:assert/strict";
import test from "node:test";
import { Gateway } from "../../../src/antiphon/web/static/js/net/gateway.js";
import { ENTRIES_KEPT, SessionState, TEXT_KEPT } from "../../../src/antiphon/web/static/js/state/session.js";
import { ScriptedSocket, agent, call, event, notice, patch, prompt, settle, welcome } from "./peers.mjs";

const SETTINGS = { modes: { currentModeId: "ask", availableModes: [{ id: "ask", name: "Ask" }, { id: "plan", name: "Plan" }] } };

function attached(more = {}) {
  return { number: 0, after: 0, turn: null, queued: 0, queue: [], prompts: [], requests: [], settings: SETTINGS, ...more };
}

async function connect(t) {
  ScriptedSocket.all = [];
  const gateway = new Gateway({ origin: "http://gateway", WebSocket: ScriptedSocket, fetch: async () => ({ ok: true, status: 200, json: async () => ({}) }) });
  const session = new SessionState(gateway, "a", "s");
  t.after(() => {
    session.close();
    for (const connection of gateway._connections.peek()) connection.close();
  });
  await welcome(ScriptedSocket.last);
  return session;
}

async function live(t, more) {
  const session = await connect(t);
  ScriptedSocket.last.respond("_antiphon/session/attach", attached(more));
  await settle();
  session.flush(true);
  return session;
}

function receive(session, ...messages) {
  for (const message of messages) ScriptedSocket.last.receive(message);
  session.flush(true);
}

/** Lose the connection, and get another one. */
async function reconnect(session) {
  ScriptedSocket.last.fail();
  await settle();
  assert.equal(session.status.peek(), "reconnecting");
  session.gateway.reconnect();
  await welcome(ScriptedSocket.last);
}

function texts(session) {
  return session.transcript.entries.map((entry) => entry.text ?? entry.type);
}

test("a session is attached with its last events, and is live when it has them", async (t) => {
  const session = await connect(t);
  const [request] = ScriptedSocket.last.requests("_antiphon/session/attach");
  assert.equal(request.params.last, 400);
  assert.equal(request.params.after, undefined);
  assert.deepEqual(request.params._meta, { antiphon: { merged: true } });
  ScriptedSocket.last.respond("_antiphon/session/attach", attached({ number: 12, after: 10, title: "T", commands: [{ name: "help", description: "" }], plan: [{ content: "x", status: "pending" }] }));
  session.flush(true);
  assert.equal(session.status.peek(), "attaching");
  receive(session, event(12, agent("two pieces")));
  assert.equal(session.status.peek(), "live");
  assert.equal(session.hasOlder.peek(), true);
  assert.equal(session.mode.peek(), "ask");
  assert.equal(session.title.peek(), "T");
  assert.equal(session.commands.peek()[0].name, "help");
  assert.equal(session.plan.peek()[0].content, "x");
});

test("an event that was seen is dropped", async (t) => {
  const session = await live(t);
  receive(session, event(1, agent("a")), event(2, agent("b")), event(2, agent("b")), event(1, agent("a")), event(3, agent("c")));
  assert.deepEqual(texts(session), ["abc"]);
});

test("a gap makes the session attach again after the last event, once", async (t) => {
  const session = await live(t);
  receive(session, event(1, agent("a")), event(3, call("c")), event(4, call("d")));
  const [request] = ScriptedSocket.last.requests("_antiphon/session/attach");
  assert.equal(request.params.after, 1);
  assert.deepEqual(texts(session), ["a"]);
  ScriptedSocket.last.respond("_antiphon/session/attach", attached({ number: 4 }));
  receive(session, event(2, agent("b")), event(3, call("c")), event(4, call("d")));
  assert.deepEqual(texts(session), ["ab", "call", "call"]);
  assert.equal(ScriptedSocket.last.requests("_antiphon/session/attach").length, 0);
});

test("an event that this version never gets is no gap for ever", async (t) => {
  const session = await live(t);
  receive(session, event(2, call("c")));
  ScriptedSocket.last.respond("_antiphon/session/attach", attached({ number: 2 }));
  receive(session, event(2, call("c")), event(3, call("d")));
  assert.equal(ScriptedSocket.last.requests("_antiphon/session/attach").length, 0);
  assert.deepEqual(session.transcript.entries.map((entry) => entry.id), ["c", "d"]);
});

test("an event that the gateway could not read counts, and shows nothing", async (t) => {
  const unreadable = (number) => ({ method: "_antiphon/session/unreadable", params: { sessionId: "s", number } });
  const session = await connect(t);
  ScriptedSocket.last.respond("_antiphon/session/attach", attached({ number: 2 }));
  receive(session, event(1, agent("a")), unreadable(2));
  assert.equal(session.status.peek(), "live", "the last event of the history may be one");
  receive(session, unreadable(3), event(4, agent("b")), unreadable(5), event(6, call("c")));
  assert.equal(ScriptedSocket.last.requests("_antiphon/session/attach").length, 0);
  assert.deepEqual(texts(session), ["ab", "call"]);
  await reconnect(session);
  assert.equal(ScriptedSocket.last.requests("_antiphon/session/attach")[0].params.after, 6);
});

test("a merged piece of text stands for the events before it", async (t) => {
  const session = await live(t);
  receive(session, event(1, agent("a")), event(50, agent("b … z")), event(51, call("c")));
  assert.equal(ScriptedSocket.last.requests("_antiphon/session/attach").length, 0);
  assert.deepEqual(texts(session), ["ab … z", "call"]);
});

test("settings that came with attach are newer than those of the events before", async (t) => {
  const session = await connect(t);
  ScriptedSocket.last.respond("_antiphon/session/attach", attached({ number: 1 }));
  receive(session, event(1, { sessionUpdate: "current_mode_update", currentModeId: "plan" }));
  assert.equal(session.mode.peek(), "ask");
  receive(session, event(2, { sessionUpdate: "current_mode_update", currentModeId: "plan" }));
  assert.equal(session.mode.peek(), "plan");
});

test("after a loss it goes on behind the last event", async (t) => {
  const session = await live(t);
  receive(session, event(1, agent("a")));
  await reconnect(session);
  const [request] = ScriptedSocket.last.requests("_antiphon/session/attach");
  assert.equal(request.params.after, 1);
  assert.equal(request.params.last, undefined);
  ScriptedSocket.last.respond("_antiphon/session/attach", attached({ number: 3 }));
  receive(session, event(3, agent("bc")));
  assert.deepEqual(texts(session), ["abc"]);
  assert.equal(session.status.peek(), "live");
});

test("a gateway with other data than before makes it begin again", async (t) => {
  const session = await live(t);
  receive(session, event(1, agent("old")));
  await reconnect(session);
  ScriptedSocket.last.respond("_antiphon/session/attach", Object.assign(new Error("`after` has to be a number from 0 to 0"), { code: -32602 }));
  await settle();
  assert.equal(ScriptedSocket.last.requests("_antiphon/session/attach")[0].params.last, 400);
  ScriptedSocket.last.respond("_antiphon/session/attach", attached({ number: 1 }));
  receive(session, event(1, agent("new")));
  assert.deepEqual(texts(session), ["new"]);
  assert.equal(session.renewed.peek(), 1);
});

test("the response to a prompt is the end of its turn, in its place among the events", async (t) => {
  const session = await live(t);
  await session.prompt([{ type: "text", text: "hi" }]);
  await settle();
  const [request] = ScriptedSocket.last.requests("session/prompt");
  const name = request.params._meta.antiphon.prompt;
  receive(session, notice("turn_started", 1, { turn: "t1", from: "me", prompt: name }), event(2, prompt("hi", name)));
  assert.deepEqual(session.outgoing.peek(), []);
  assert.equal(session.turn.peek().id, "t1");
  receive(session, event(3, agent("hello")));
  ScriptedSocket.last.respond("session/prompt", { stopReason: "end_turn", _meta: { antiphon: { number: 4, time: 1010 } } });
  receive(session, event(5, agent("later")));
  assert.deepEqual(texts(session), ["hi", "hello", "end", "later"]);
  assert.equal(session.transcript.entries[2].duration, 9);
  assert.equal(session.turn.peek(), null);
});

test("a prompt that the gateway refuses has failed, and can be sent again or taken back", async (t) => {
  const session = await live(t);
  await session.prompt([{ type: "text", text: "hi" }]);
  await settle();
  ScriptedSocket.last.respond("session/prompt", new Error("too many prompts"));
  await settle();
  assert.deepEqual(session.outgoing.peek().map(({ state, error }) => [state, error]), [["failed", "too many prompts"]]);
  session.retry(session.outgoing.peek()[0].name);
  await settle();
  assert.equal(ScriptedSocket.last.requests("session/prompt").length, 1);
  ScriptedSocket.last.respond("session/prompt", new Error("still too many"));
  await settle();
  assert.equal(session.discard(session.outgoing.peek()[0].name)[0].text, "hi");
  assert.deepEqual(session.outgoing.peek(), []);
});

test("a prompt that a gateway refuses because it stops is kept, and sent to the next one", async (t) => {
  const session = await live(t);
  await session.prompt([{ type: "text", text: "hi" }]);
  await settle();
  const data = { recoverable: true, action: "reconnect" };
  ScriptedSocket.last.respond("session/prompt", Object.assign(new Error("the gateway is shutting down"), { data }));
  await settle();
  assert.deepEqual(session.outgoing.peek().map(({ text, state }) => [text, state]), [["hi", "kept"]]);
  await reconnect(session);
  ScriptedSocket.last.respond("_antiphon/session/attach", attached());
  session.flush(true);
  await settle();
  assert.equal(ScriptedSocket.last.requests("session/prompt")[0].params.prompt[0].text, "hi");
  assert.deepEqual(session.outgoing.peek().map(({ state }) => state), ["sending"]);
});

test("stopping the turn puts the messages that wait back into the field, with what was sent along", async (t) => {
  const session = await live(t, { number: 0 });
  receive(session, notice("turn_started", 1, { turn: "t1", from: "me", prompt: "other" }));
  const picture = { type: "image", mimeType: "image/png", data: "AAAA" };
  await session.prompt([{ type: "text", text: "first, see " }, { type: "resource_link", uri: "file:///w/a.py", name: "a.py" }]);
  await session.prompt([{ type: "text", text: "second" }, picture]);
  await settle();
  const names = ScriptedSocket.last.requests("session/prompt").map((request) => request.params._meta.antiphon.prompt);
  const waiting = names.map((name) => ({ prompt: name, from: "me", text: "cut" }));
  receive(session, { method: "_antiphon/session/queue", params: { sessionId: "s", queue: waiting } });
  session.draft.value = { text: "typing", attachments: [], kept: true };
  await session.cancel();
  assert.equal(session.draft.peek().text, "first, see @a.py\n\nsecond\n\ntyping");
  assert.deepEqual(session.draft.peek().attachments.map(({ block }) => block), [picture]);
  assert.equal(session.returned.peek(), 2);
  assert.equal(ScriptedSocket.last.sent.at(-1).method, "session/cancel");
  for (let each = 0; each < 2; each++) ScriptedSocket.last.respond("session/prompt", { stopReason: "cancelled" });
  receive(session, { method: "_antiphon/session/queue", params: { sessionId: "s", queue: [] } });
  await settle();
  assert.deepEqual(session.outgoing.peek(), []);
  assert.equal(session.returned.peek(), 2);
});

test("stopping the turn brings back what an earlier page had sent, and leaves what another page waits for", async (t) => {
  const queue = [{ prompt: "old", from: "me", text: "sent before a reload" }, { prompt: "tab", from: "me", text: "of another tab" }, { prompt: "x", from: "eve", text: "hers" }];
  const session = await live(t, { queue });
  receive(session, notice("turn_started", 1, { turn: "t1", from: "me", prompt: "other" }));
  const stopped = session.cancel();
  await settle();
  receive(session, { method: "_antiphon/session/queue", params: { sessionId: "s", queue: queue.slice(1) } });
  ScriptedSocket.last.respond("session/cancel", null);
  await stopped;
  receive(session, { method: "_antiphon/session/queue", params: { sessionId: "s", queue: queue.slice(2) } });
  assert.equal(session.draft.peek().text, "sent before a reload");
  assert.equal(session.returned.peek(), 1);
});

for (const [what, result, events, again] of [
  ["never arrived", { number: 0 }, [], 1],
  ["waits in the gateway", { number: 0, names: true }, [], 0],
  ["has begun", { number: 2 }, ["turn_started", "message"], 0],
  ["has begun and ended", { number: 3 }, ["turn_started", "message", "turn_ended"], 0],
  ["was refused when its connection was lost", { number: 1 }, ["refused"], 0],
]) {
  test(`a prompt that ${what} is sent again ${again === 1 ? "once" : "never"} after a loss`, async (t) => {
    const session = await live(t);
    await session.prompt([{ type: "text", text: "hi" }]);
    await settle();
    const name = ScriptedSocket.last.requests("session/prompt")[0].params._meta.antiphon.prompt;
    await reconnect(session);
    ScriptedSocket.last.respond("_antiphon/session/attach", attached({ number: result.number, prompts: result.names ? [name] : [] }));
    const made = {
      turn_started: notice("turn_started", 1, { turn: "t1", from: "me", prompt: name }),
      message: event(2, prompt("hi", name)),
      turn_ended: notice("turn_ended", 3, { turn: "t1", prompt: name, result: { stopReason: "end_turn" } }),
      refused: notice("turn_ended", 1, { turn: "t1", prompt: name, error: { code: -1, message: "cancelled" } }),
    };
    receive(session, ...events.map((each) => made[each]));
    await settle();
    assert.equal(ScriptedSocket.last.requests("session/prompt").length, again);
    if (again === 0) return;
    assert.equal(ScriptedSocket.last.requests("session/prompt")[0].params._meta.antiphon.prompt, name, "under the same name");
    await reconnect(session);
    ScriptedSocket.last.respond("_antiphon/session/attach", attached());
    session.flush(true);
    await settle();
    assert.equal(ScriptedSocket.last.requests("session/prompt").length, 0, "once is enough");
    assert.equal(session.outgoing.peek()[0].state, "failed");
  });
}

test("a prompt that is written without a connection is sent once there is one", async (t) => {
  const session = await live(t);
  ScriptedSocket.last.fail();
  await settle();
  await session.prompt([{ type: "text", text: "hi" }]);
  session.gateway.reconnect();
  await welcome(ScriptedSocket.last);
  assert.equal(ScriptedSocket.last.requests("session/prompt").length, 0);
  ScriptedSocket.last.respond("_antiphon/session/attach", attached());
  session.flush(true);
  await settle();
  assert.equal(ScriptedSocket.last.requests("session/prompt").length, 1);
});

function permission(id, number) {
  const about = { request: "r1", ...(number ? { number, time: 1000 + number } : {}) };
  return { id, method: "session/request_permission", params: { sessionId: "s", toolCall: { toolCallId: "c", title: "Write" }, options: [], _meta: { antiphon: about } } };
}

test("a request waits until it is answered here, answered elsewhere, or cancelled", async (t) => {
  for (const [end, answered] of [
    [(session) => session.requests.peek()[0].respond({ outcome: { outcome: "cancelled" } }), true],
    [(session) => receive(session, notice("resolved", 2, { request: "r1", from: "other" })), false],
    [(session) => receive(session, { method: "$/cancel_request", params: { requestId: 9 } }), false],
  ]) {
    const session = await live(t);
    receive(session, permission(9, 1));
    assert.equal(session.requests.peek()[0].id, "r1");
    assert.equal(session.transcript.entries[0].label, "Write");
    end(session);
    assert.deepEqual(session.requests.peek(), []);
    assert.equal(ScriptedSocket.last.sent.some((message) => message.id === 9 && message.result), answered);
  }
});

test("a request is asked again on the next connection, under the same id, and is shown once", async (t) => {
  const session = await live(t);
  receive(session, permission(9, 1));
  await reconnect(session);
  assert.equal(session.requests.peek()[0].stale, true);
  ScriptedSocket.last.respond("_antiphon/session/attach", attached({ number: 1, requests: ["r1"] }));
  receive(session, permission(3, 0));
  assert.deepEqual(session.requests.peek().map(({ id, stale }) => [id, stale]), [["r1", false]]);
  session.requests.peek()[0].respond("fine");
  assert.deepEqual(ScriptedSocket.last.sent.at(-1), { jsonrpc: "2.0", id: 3, result: "fine" });
});

test("a request of a method that the page does not have is refused", async (t) => {
  const session = await live(t);
  receive(session, { id: 4, method: "fs/read_text_file", params: { sessionId: "s", path: "/etc/passwd" } });
  assert.equal(ScriptedSocket.last.sent.at(-1).error.code, -32601);
});

test("a flood of updates leaves a bounded number of entries, and all of the text can be loaded again", async (t) => {
  const session = await live(t);
  let number = 0;
  const next = (update) => ScriptedSocket.last.receive(event(++number, update));
  for (let turn = 0; turn < 180; turn++) {
    ScriptedSocket.last.receive(notice("turn_started", ++number, { turn: `t${turn}`, from: "me" }));
    next(prompt("go on", `p${turn}`, `t${turn}`));
    for (let step = 0; step < 40; step++) {
      for (let piece = 0; piece < 8; piece++) next(agent("a few words "));
      next(call(`${turn}.${step}`, { status: "in_progress" }));
      next(patch(`${turn}.${step}`, { status: "completed", content: [{ type: "content", content: { type: "text", text: "x".repeat(400) } }] }));
    }
    ScriptedSocket.last.receive(notice("turn_ended", ++number, { turn: `t${turn}`, result: {} }));
    session.flush(true);
  }
  assert.ok(number > 72_000);
  assert.equal(session.last, number);
  assert.ok(session.transcript.entries.length <= ENTRIES_KEPT);
  assert.ok(session.transcript.entries.reduce((sum, entry) => sum + entry.weight, 0) <= 1.5 * TEXT_KEPT);
  assert.ok(session.transcript._calls.size <= ENTRIES_KEPT && session.transcript._byMessageId.size <= ENTRIES_KEPT && session.transcript._firstCalls.size <= ENTRIES_KEPT);
  assert.equal(session.hasOlder.peek(), true);
  const older = session.loadOlder();
  await settle();
  const [request] = ScriptedSocket.last.requests("_antiphon/session/read");
  assert.equal(request.params.before, session.transcript.entries[0].number);
  ScriptedSocket.last.respond("_antiphon/session/read", { events: [event(1, agent("older"))], after: 0 });
  await older;
  assert.equal(session.transcript.entries[0].text, "older");
  assert.equal(session.hasOlder.peek(), false);
});

test("nothing is dropped while a reader is not at the end", async (t) => {
  const session = await live(t);
  session.following.value = false;
  for (let number = 1; number <= ENTRIES_KEPT + 500; number++) ScriptedSocket.last.receive(event(number, call(`c${number}`)));
  session.flush(true);
  assert.equal(session.transcript.entries.length, ENTRIES_KEPT + 500);
});

test("a message that cannot be understood does not stop those after it", async (t) => {
  const session = await live(t);
  t.mock.method(console, "error", () => {});
  receive(session, { method: "session/update", params: { sessionId: "s", update: 5 } }, { method: "_antiphon/session/queue", params: { sessionId: "s", queue: "x" } }, event(1, agent("fine")));
  assert.deepEqual(texts(session), ["fine"]);
});

test("the clock of the gateway is known from events that have just happened", async (t) => {
  const session = await connect(t);
  const hour = 3600;
  const at = (number, time) => ({ method: "session/update", params: { sessionId: "s", update: agent("x"), _meta: { antiphon: { number, time } } } });
  ScriptedSocket.last.respond("_antiphon/session/attach", attached({ number: 1 }));
  receive(session, at(1, Date.now() / 1000 - 10 * hour));
  assert.ok(Math.abs(session.gateway.now() - Date.now() / 1000) < hour, "an old event says nothing");
  receive(session, at(2, Date.now() / 1000 - 2 * hour));
  assert.ok(Math.abs(session.gateway.now() - (Date.now() / 1000 - 2 * hour)) < hour);
});

test("a session that was closed is detached", async (t) => {
  const session = await live(t);
  session.close();
  assert.equal(ScriptedSocket.last.sent.at(-1).method, "_antiphon/session/detach");
});
