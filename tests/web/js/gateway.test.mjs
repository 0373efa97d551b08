// The core of the page against a real gateway with the demo agent, over a network that fails. `tests/web/test_core.py` starts the gateway.

import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import { Gateway } from "../../../src/antiphon/web/static/js/net/gateway.js";
import { App } from "../../../src/antiphon/web/static/js/state/app.js";
import { SessionState } from "../../../src/antiphon/web/static/js/state/session.js";
import { Proxy } from "./proxy.mjs";

const { GATEWAY_URL, GATEWAY_TOKEN, WATCH_TOKEN, WORKSPACE } = process.env;

/** Milliseconds that anything may take: a bound for a test that hangs, and nothing else. */
const LIMIT = Number(process.env.TEST_LIMIT ?? 30) * 1000;

/** A WebSocket that counts how many of its address are open at a time. */
class CountedSocket extends WebSocket {
  static open = new Map();
  static most = new Map();

  constructor(url, protocols) {
    super(url, protocols);
    const count = (change) => {
      const now = (CountedSocket.open.get(url) ?? 0) + change;
      CountedSocket.open.set(url, now);
      CountedSocket.most.set(url, Math.max(now, CountedSocket.most.get(url) ?? 0));
    };
    this.addEventListener("open", () => count(1), { once: true });
    this.addEventListener("close", () => CountedSocket.open.get(url) > 0 && count(-1), { once: true });
  }
}

let proxy;
let app;
const others = [];

before(async () => {
  proxy = await Proxy.start(GATEWAY_URL);
  app = await device(proxy.origin);
});

after(() => {
  for (const each of [app, ...others]) for (const connection of each.gateway._connections.peek()) connection.close();
  proxy.close();
});

/** A page in a browser of its own. */
async function device(origin = GATEWAY_URL, token = GATEWAY_TOKEN) {
  const gateway = new Gateway({ origin, token, WebSocket: CountedSocket });
  const page = new App({ gateway, storage: undefined });
  await page.start();
  if (page !== app) others.push(page);
  await until(() => page.listed.peek(), "the list to be loaded");
  return page;
}

async function until(condition, what) {
  const end = Date.now() + LIMIT;
  while (!condition()) {
    if (Date.now() > end) throw new Error(`waited in vain for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

function words(text) {
  return [{ type: "text", text }];
}

async function newSession(page = app) {
  const session = await page.newSession({ agent: "agent", cwd: WORKSPACE });
  await until(() => session.status.peek() === "live", "the session to be live");
  return session;
}

/** Send a prompt and wait for the end of its turn. */
async function talk(session, text) {
  const ends = session.transcript.entries.filter((entry) => entry.type === "end").length;
  await session.prompt(words(text));
  await until(() => session.transcript.entries.filter((entry) => entry.type === "end").length > ends, `the end of ${text}`);
}

/** What a session shows, as values that can be compared. */
function look(session) {
  return session.transcript.entries.map((entry) => {
    const { type, number, text, from, status, label, stopReason } = entry;
    return { type, number, text, from, status, label, stopReason };
  });
}

/** The same session as another page shows it that was never away. */
async function asSeenElsewhere(session) {
  const page = await device();
  const other = page.openSession(session.agent, session.id);
  await until(() => other.status.peek() === "live" && other.last >= session.last, "the other page to have all");
  return other;
}

test("a prompt is shown at once, becomes an event, and its turn ends", async () => {
  const session = await newSession();
  await session.prompt(words("hello"));
  assert.equal(session.outgoing.peek()[0].text, "hello");
  assert.equal(session.outgoing.peek()[0].state, "sending");
  await until(() => session.transcript.entries.at(-1)?.type === "end", "the end");
  assert.deepEqual(session.transcript.entries.map((entry) => entry.type), ["message", "message", "end"]);
  const [prompt, , end] = session.transcript.entries;
  assert.equal(prompt.from, app.info.peek().name);
  assert.equal(prompt.text, "hello");
  assert.equal(end.stopReason, "end_turn");
  assert.ok(end.duration !== null && end.duration < LIMIT);
  assert.deepEqual(session.outgoing.peek(), []);
  await until(() => session.turn.peek() === null, "no turn");
});

test("a connection that is lost in a turn loses nothing and shows nothing twice", async () => {
  const session = await newSession();
  await session.prompt(words("/slow 6"));
  await until(() => session.transcript.entries.some((entry) => entry.speaker === "agent"), "the first words");
  assert.notEqual(session.turn.peek(), null);
  proxy.cut();
  await until(() => session.status.peek() === "reconnecting", "the loss to be seen");
  await until(() => session.status.peek() === "live", "the session to be live again");
  await until(() => session.transcript.entries.at(-1)?.type === "end", "the end");
  assert.deepEqual(look(session), look(await asSeenElsewhere(session)));
  assert.equal(session.transcript.entries.filter((entry) => entry.speaker === "user").length, 1);
  assert.equal(Math.max(...CountedSocket.most.values()), 1, "two sockets at once");
});

test("a prompt that never arrived is sent again, once", async () => {
  const session = await newSession();
  proxy.stall();
  await session.prompt(words("hello into the void"));
  await new Promise((resolve) => setImmediate(resolve));
  proxy.cut();
  await until(() => session.transcript.entries.at(-1)?.type === "end", "the end");
  assert.deepEqual(session.outgoing.peek(), []);
  assert.equal(session.transcript.entries.filter((entry) => entry.speaker === "user").length, 1);
});

test("a prompt that has begun is not sent again", async () => {
  const session = await newSession();
  await session.prompt(words("/slow 4"));
  await until(() => session.turn.peek() !== null, "the turn");
  proxy.isDown = true;
  proxy.cut();
  await until(() => session.status.peek() === "reconnecting", "the loss to be seen");
  const other = await asSeenElsewhere(session);
  await until(() => other.transcript.entries.at(-1)?.type === "end", "the end");
  proxy.isDown = false;
  await until(() => session.transcript.entries.at(-1)?.type === "end", "the end here");
  await until(() => session.outgoing.peek().length === 0, "no prompt on its way");
  assert.deepEqual(look(session), look(other));
  assert.equal(session.transcript.entries.filter((entry) => entry.speaker === "user").length, 1);
});

test("a prompt that is written without a connection is sent when there is one", async () => {
  const session = await newSession();
  proxy.isDown = true;
  proxy.cut();
  await until(() => session.status.peek() === "reconnecting", "the loss to be seen");
  await session.prompt(words("hello from the tunnel"));
  assert.equal(session.outgoing.peek()[0].state, "sending");
  proxy.isDown = false;
  await until(() => session.transcript.entries.at(-1)?.type === "end", "the end");
  assert.equal(session.transcript.entries[0].text, "hello from the tunnel");
  assert.equal(session.transcript.entries.filter((entry) => entry.speaker === "user").length, 1);
});

test("a second prompt waits, and can be taken back", async () => {
  const session = await newSession();
  await session.prompt(words("/slow 20"));
  await until(() => session.turn.peek() !== null, "the turn");
  await session.prompt(words("and then this"));
  await until(() => session.queue.peek().length === 1, "the queue");
  assert.equal(session.queue.peek()[0].text, "and then this");
  assert.deepEqual(session.outgoing.peek(), []);
  await session.cancelPrompt(session.queue.peek()[0].prompt);
  await until(() => session.queue.peek().length === 0, "an empty queue");
  await session.cancel();
  await until(() => session.transcript.entries.at(-1)?.stopReason === "cancelled", "the end");
  assert.equal(session.transcript.entries.filter((entry) => entry.speaker === "user").length, 1);
});

test("a permission request waits on every device, and goes when one has answered", async () => {
  const session = await newSession();
  await session.prompt(words("/permission"));
  await until(() => session.requests.peek().length === 1, "the request");
  const other = await asSeenElsewhere(session);
  await until(() => other.requests.peek().length === 1, "the request on the other device");
  assert.equal(other.requests.peek()[0].id, session.requests.peek()[0].id);
  await until(() => app.waitingCount.peek() === 1, "the count of the title");
  const [request] = other.requests.peek();
  const allow = request.params.options.find((option) => option.kind === "allow_once");
  request.respond({ outcome: { outcome: "selected", optionId: allow.optionId } });
  assert.deepEqual(other.requests.peek(), []);
  await until(() => session.requests.peek().length === 0, "the request to go");
  await until(() => session.transcript.entries.at(-1)?.type === "end", "the end");
  await until(() => app.waitingCount.peek() === 0, "the count of the title");
});

test("a permission request outlives its connection, and an answer without one is sent later", async () => {
  const session = await newSession();
  await session.prompt(words("/permission"));
  await until(() => session.requests.peek().length === 1, "the request");
  proxy.isDown = true;
  proxy.cut();
  await until(() => session.requests.peek()[0].stale, "the loss to be seen");
  const [request] = session.requests.peek();
  const reject = request.params.options.find((option) => option.kind === "reject_once");
  request.respond({ outcome: { outcome: "selected", optionId: reject.optionId } });
  assert.deepEqual(session.requests.peek(), []);
  proxy.isDown = false;
  await until(() => session.transcript.entries.at(-1)?.type === "end", "the end");
  assert.deepEqual(session.requests.peek(), []);
});

test("a request that was answered while this page was away is gone when it is back", async () => {
  const session = await newSession();
  await session.prompt(words("/permission"));
  await until(() => session.requests.peek().length === 1, "the request");
  const other = await asSeenElsewhere(session);
  await until(() => other.requests.peek().length === 1, "the request on the other device");
  proxy.isDown = true;
  proxy.cut();
  await until(() => session.requests.peek()[0].stale, "the loss to be seen");
  other.requests.peek()[0].respond({ outcome: { outcome: "cancelled" } });
  await until(() => other.transcript.entries.at(-1)?.type === "end", "the end");
  proxy.isDown = false;
  await until(() => session.transcript.entries.at(-1)?.type === "end", "the end here");
  assert.deepEqual(session.requests.peek(), []);
});

test("a person who may only watch sees that others are asked", async () => {
  const session = await newSession();
  await session.prompt(words("/permission"));
  await until(() => session.requests.peek().length === 1, "the request");
  const page = await device(GATEWAY_URL, WATCH_TOKEN);
  const watched = page.openSession(session.agent, session.id);
  await until(() => watched.waiting.peek().length === 1, "the request of others");
  assert.deepEqual(watched.requests.peek(), []);
  assert.equal(watched.canPrompt.peek(), false);
  session.requests.peek()[0].respond({ outcome: { outcome: "cancelled" } });
  await until(() => watched.waiting.peek().length === 0, "it to go");
});

test("older pages give what a page shows that has loaded all of it", async () => {
  const session = await newSession();
  for (let turn = 0; turn < 6; turn++) for (const text of ["/many 300", "/plan", "/think it over"]) await talk(session, text);
  const page = await device();
  const late = new SessionState(page.gateway, session.agent, session.id);
  await until(() => late.status.peek() === "live", "the session to be live");
  assert.ok(late.hasOlder.peek(), "all of it fits into one page");
  const shown = late.transcript.entries.length;
  while (late.hasOlder.peek()) await late.loadOlder();
  assert.ok(late.transcript.entries.length > shown);
  assert.deepEqual(look(late), look(session));
  late.close();
});

test("ten thousand pieces arrive, and are one message", async () => {
  const session = await newSession();
  await talk(session, "/many 10000");
  const [, message] = session.transcript.entries;
  assert.equal(message.type, "message");
  assert.ok(message.text.length >= 10_000);
  const seen = await asSeenElsewhere(session); // only the end of it
  assert.ok(seen.hasOlder.peek());
  while (seen.hasOlder.peek()) await seen.loadOlder();
  assert.equal(seen.transcript.entries.length, session.transcript.entries.length);
  assert.ok(seen.transcript.entries[1].text === message.text);
});

test("what one device sets, the other shows", async () => {
  const session = await newSession();
  const other = await asSeenElsewhere(session);
  assert.equal(other.mode.peek(), session.mode.peek());
  await talk(session, "/mode plan");
  await until(() => session.mode.peek() === "plan" && other.mode.peek() === "plan", "the mode");
  await session.setMode("default");
  assert.equal(session.mode.peek(), "default");
  const third = await asSeenElsewhere(session);
  assert.equal(third.mode.peek(), "default");
  await session.setOption("length", session.options.peek().find(({ id }) => id === "length").options[0].value);
  await assert.rejects(session.setMode("no such mode"));
  assert.equal(session.mode.peek(), "default");
});

test("a turn that fails says why", async () => {
  const session = await newSession();
  await talk(session, "/fail");
  const end = session.transcript.entries.at(-1);
  assert.notEqual(end.error, null);
  assert.equal(end.stopReason, null);
  assert.deepEqual(session.outgoing.peek(), []);
});

test("a session is renamed for everyone, and gone for everyone when it is deleted", async () => {
  const session = await newSession();
  await talk(session, "hello");
  const other = await asSeenElsewhere(session);
  await session.rename("A better name");
  await until(() => other.title.peek() === "A better name", "the title");
  await until(() => app.sessions.peek().some((row) => row.title === "A better name"), "the title in the list");
  const row = app.sessions.peek().find((each) => each.sessionId === session.id);
  await app.deleteSession(row);
  assert.ok(!app.sessions.peek().some((each) => each.sessionId === session.id));
  await until(() => other.status.peek() === "gone", "the other device to see it");
});

test("a session that is not there is gone", async () => {
  const session = app.openSession("agent", "no-such-session");
  await until(() => session.status.peek() === "gone", "it to be seen");
  assert.match(session.problem.peek().message, /no session/);
});

test("a session of an agent that is not there is gone, and the page stays connected", async () => {
  const session = app.openSession("no-such-agent", "1");
  await until(() => session.status.peek() === "gone", "it to be seen");
  assert.match(session.problem.peek().message, /no agent `no-such-agent`/);
  assert.equal(app.connection.peek(), "open");
});

test("a browser whose token is not good any more is signed out, and does not try on", async () => {
  const gateway = new Gateway({ origin: GATEWAY_URL, token: "wrong" });
  void gateway.first;
  await until(() => gateway.connection.peek() === "signed-out", "it to be seen");
  assert.equal(gateway.who.peek(), null);
  await assert.rejects(gateway.call("_antiphon/gateway/info"), /signed out/);
});
