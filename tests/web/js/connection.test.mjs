// The connection of the page: it comes back by itself, with one socket at a time, and says what became of requests.

import assert from "node:assert/strict";
import test from "node:test";
import { Connection, PING_EVERY, PING_TIMEOUT, RpcError } from "../../../src/antiphon/web/static/js/net/connection.js";
import { ScriptedSocket, settle } from "./peers.mjs";

function connected(t, options = {}) {
  t.mock.timers.enable({ apis: ["setTimeout", "Date"] });
  ScriptedSocket.all = [];
  const connection = new Connection("ws://gateway/acp", { WebSocket: ScriptedSocket, ...options });
  t.after(() => connection.close());
  return connection;
}

async function opened(t, options) {
  const connection = connected(t, options);
  ScriptedSocket.last.open();
  await settle();
  return connection;
}

test("requests get their responses by their ids, and strange responses are ignored", async (t) => {
  const connection = await opened(t);
  assert.equal(connection.state.peek(), "open");
  const [one, other] = [connection.request("one", {}), connection.request("other", {})];
  const [{ id: first }, { id: second }] = ScriptedSocket.last.sent;
  ScriptedSocket.last.receive({ id: 999, result: "nobody asked" });
  ScriptedSocket.last.receive("no JSON");
  ScriptedSocket.last.receive({ id: second, result: 2 });
  ScriptedSocket.last.receive({ id: first, error: { code: -5, message: "no", data: { hint: "try" } } });
  assert.equal(await other, 2);
  await assert.rejects(one, (error) => error instanceof RpcError && error.code === -5 && error.message === "no" && error.hint === "try" && error.kind === "response");
});

test("requests that were on their way are lost with their socket", async (t) => {
  const connection = await opened(t);
  const waiting = assert.rejects(connection.request("one", {}), { kind: "lost" });
  ScriptedSocket.last.fail();
  await waiting;
  await assert.rejects(connection.request("two", {}), { kind: "lost" });
});

test("it comes back after longer and longer times, and at once after a success", async (t) => {
  const connection = connected(t);
  const waits = [];
  for (let tries = 0; tries < 9; tries++) {
    const count = ScriptedSocket.all.length;
    ScriptedSocket.last.fail();
    await settle();
    assert.equal(connection.state.peek(), "waiting");
    let waited = 0;
    while (ScriptedSocket.all.length === count) {
      t.mock.timers.tick(10);
      waited += 10;
    }
    waits.push(waited);
  }
  assert.ok(waits[0] <= 630 && waits[0] >= 370, `${waits}`);
  assert.ok(waits.at(-1) <= 18_760 && waits.at(-1) >= 11_240, `${waits}`);
  ScriptedSocket.last.open();
  await settle();
  ScriptedSocket.last.receive({ method: "hello", params: {} });
  ScriptedSocket.last.fail();
  await settle();
  const count = ScriptedSocket.all.length;
  t.mock.timers.tick(640);
  assert.equal(ScriptedSocket.all.length, count + 1);
});

test("there is never more than one socket", async (t) => {
  await opened(t);
  const [first] = ScriptedSocket.all;
  const late = { message: first.onmessage, close: first.onclose };
  first.fail();
  await settle();
  t.mock.timers.tick(700);
  ScriptedSocket.last.open();
  await settle();
  assert.equal(ScriptedSocket.all.length, 2);
  assert.ok(first.isClosed);
  late.close({ code: 1006 }); // a late event of the first one
  late.message({ data: "{}" });
  t.mock.timers.tick(5000);
  assert.equal(ScriptedSocket.all.length, 2);
});

test("a socket that is silent is asked, and left if it does not answer", async (t) => {
  const connection = await opened(t);
  const [first] = ScriptedSocket.all;
  t.mock.timers.tick(PING_EVERY);
  assert.equal(first.sent.length, 1, "a ping");
  first.receive({ id: first.sent[0].id, error: { code: -32002, message: "there is no session" } });
  await settle();
  assert.equal(connection.state.peek(), "open", "any response is a sign of life");
  t.mock.timers.tick(PING_EVERY);
  assert.equal(first.sent.length, 2);
  t.mock.timers.tick(PING_TIMEOUT);
  await settle();
  assert.equal(ScriptedSocket.all.length, 2, "another socket at once");
  assert.ok(first.isClosed);
});

test("a socket on which messages come needs no ping", async (t) => {
  await opened(t);
  for (let second = 0; second < 60; second++) {
    ScriptedSocket.last.receive({ method: "update", params: {} });
    t.mock.timers.tick(1000);
  }
  assert.deepEqual(ScriptedSocket.last.sent, []);
});

test("a socket that does not open is given up after a while", async (t) => {
  connected(t);
  t.mock.timers.tick(20_000);
  await settle();
  t.mock.timers.tick(700);
  assert.equal(ScriptedSocket.all.length, 2);
});

test("a browser that is signed out does not try on", async (t) => {
  const connection = connected(t, { isSignedIn: async () => false });
  ScriptedSocket.last.fail();
  await settle();
  assert.equal(connection.state.peek(), "signed-out");
  t.mock.timers.tick(60_000);
  assert.equal(ScriptedSocket.all.length, 1);
  connection.reconnect();
  assert.equal(ScriptedSocket.all.length, 2);
});

test("a gateway that cannot be reached does not sign out", async (t) => {
  const connection = connected(t, { isSignedIn: async () => Promise.reject(new Error("no network")) });
  ScriptedSocket.last.fail();
  await settle();
  assert.equal(connection.state.peek(), "waiting");
});

test("tries that failed are counted until one succeeds", async (t) => {
  const connection = connected(t);
  assert.equal(connection.failures.peek(), 0);
  ScriptedSocket.last.fail();
  await settle();
  assert.equal(connection.failures.peek(), 1);
  t.mock.timers.tick(700);
  ScriptedSocket.last.open();
  assert.equal(connection.failures.peek(), 0);
});

test("every close is a loss, whatever its code: phones send 1000", async (t) => {
  const connection = await opened(t, { isSignedIn: async () => true });
  ScriptedSocket.last.readyState = 3;
  ScriptedSocket.last.onclose({ code: 1000 });
  await settle();
  assert.equal(connection.state.peek(), "waiting");
  t.mock.timers.tick(700);
  assert.equal(ScriptedSocket.all.length, 2);
});

test("a request of the other side is answered on the socket that it came on", async (t) => {
  const asked = [];
  await opened(t, { onRequest: (request) => asked.push(request) });
  const [first] = ScriptedSocket.all;
  first.receive({ id: 7, method: "ask", params: {} });
  first.receive({ id: 8, method: "ask", params: {} });
  asked[0].respond("yes");
  assert.deepEqual(first.sent.at(-1), { jsonrpc: "2.0", id: 7, result: "yes" });
  first.fail();
  await settle();
  t.mock.timers.tick(700);
  ScriptedSocket.last.open();
  await settle();
  asked[1].respond("too late");
  assert.deepEqual(ScriptedSocket.last.sent, [], "the id means something else there");
});

test("a token is sent as a subprotocol, never in the address", async (t) => {
  await opened(t, { token: "secret" });
  assert.deepEqual(ScriptedSocket.last.protocols, ["acp.bearer.secret"]);
  assert.ok(!ScriptedSocket.last.url.includes("secret"));
});

test("a page that is shown again looks at once whether its connection is there", async (t) => {
  const document = new EventTarget();
  Object.assign(document, { visibilityState: "visible" });
  const window = new EventTarget();
  Object.assign(globalThis, { document, addEventListener: window.addEventListener.bind(window), removeEventListener: window.removeEventListener.bind(window) });
  t.after(() => ["document", "addEventListener", "removeEventListener"].forEach((name) => delete globalThis[name]));
  await opened(t);
  document.dispatchEvent(new Event("visibilitychange"));
  assert.equal(ScriptedSocket.last.sent.length, 1, "a ping");
  ScriptedSocket.last.fail();
  await settle();
  t.mock.timers.tick(100);
  window.dispatchEvent(new Event("online"));
  assert.equal(ScriptedSocket.all.length, 2, "no wait");
});
