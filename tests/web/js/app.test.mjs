// The page as a whole: its addresses, the live list, drafts, preferences, and how it becomes a newer version.

import assert from "node:assert/strict";
import test from "node:test";
import { Gateway } from "../../../src/antiphon/web/static/js/net/gateway.js";
import { App, SESSIONS_KEPT, hashOf, readRoute, readSecret, writeRoute } from "../../../src/antiphon/web/static/js/state/app.js";
import { Drafts, LIMIT } from "../../../src/antiphon/web/static/js/state/drafts.js";
import { SessionSettings } from "../../../src/antiphon/web/static/js/state/settings.js";
import { INFO, ScriptedSocket, settle, welcome } from "./peers.mjs";

/** What a browser keeps. */
class Storage {
  _items = new Map();
  get length() {
    return this._items.size;
  }
  key(index) {
    return [...this._items.keys()][index] ?? null;
  }
  getItem(name) {
    return this._items.get(name) ?? null;
  }
  setItem(name, value) {
    this._items.set(name, String(value));
  }
  removeItem(name) {
    this._items.delete(name);
  }
  clear() {
    this._items.clear();
  }
}

function row(sessionId, more = {}) {
  return { agent: "a", sessionId, cwd: "/w", title: "", created: 1, updated: 1, state: "idle", waiting: 0, number: 0, owner: "me", mayDelete: true, text: "", ...more };
}

async function started(t, { info = INFO, sessions = [], storage = new Storage(), status = 200, loadedHash = null } = {}) {
  ScriptedSocket.all = [];
  const asked = [];
  const fetch = async (url, options = {}) => {
    asked.push([options.method ?? "GET", url, options.body]);
    return { ok: status === 200, status, json: async () => ({ name: "me", role: "admin" }), text: async () => "no" };
  };
  const gateway = new Gateway({ origin: "http://gateway", WebSocket: ScriptedSocket, fetch });
  const app = new App({ gateway, storage, loadedHash });
  t.after(() => gateway._connections.peek().forEach((connection) => connection.close()));
  await app.start();
  if (ScriptedSocket.all.length > 0) await welcome(ScriptedSocket.last, { info, sessions });
  return { app, asked, storage };
}

test("a browser that was signed in by a share is known as that of a guest", async (t) => {
  for (const share of [true, false]) {
    const { app } = await started(t, { info: { ...INFO, share } });
    await settle();
    assert.equal(app.wasGuest, share);
  }
});

test("addresses are read and written", () => {
  for (const [fragment, route] of [
    ["#/", { screen: "list" }],
    ["", { screen: "list" }],
    ["#/new", { screen: "new" }],
    ["#/session/claude/1", { screen: "session", agent: "claude", id: "1" }],
    ["#/session/claude/1/call/toolu%2F7", { screen: "session", agent: "claude", id: "1", call: "toolu/7" }],
    ["#/session/claude/1/changes", { screen: "session", agent: "claude", id: "1", view: "changes" }],
    ["#/about", { screen: "about" }],
  ]) {
    assert.deepEqual(readRoute(fragment), route);
    assert.deepEqual(readRoute(`#${writeRoute(route)}`), route);
  }
  assert.deepEqual(readRoute("#/nowhere"), { screen: "list" });
  assert.deepEqual(readRoute("#/session/only"), { screen: "list" });
  assert.deepEqual(readRoute("#/session/a/%E0%A4%A"), { screen: "session", agent: "a", id: "%E0%A4%A" });
});

test("a launch code or a token is read from the address, with where to go", () => {
  assert.deepEqual(readSecret("#code=abc"), { code: "abc", to: "/" });
  assert.deepEqual(readSecret("#token=abc&to=/session/a/1"), { token: "abc", to: "/session/a/1" });
  assert.deepEqual(readSecret("#code=abc&to=https://evil.org"), { code: "abc", to: "/" });
  assert.equal(readSecret("#/session/a/1"), null);
});

test("the page knows the hash that it was loaded with", () => {
  assert.equal(hashOf("http://127.0.0.1:1/static/0123abc/js/state/app.js"), "0123abc");
  assert.equal(hashOf("file:///src/antiphon/web/static/js/state/app.js"), null);
});

test("the list is live, and last used sessions come first", async (t) => {
  const { app } = await started(t, { sessions: [row("1", { updated: 5 }), row("2", { updated: 9 })] });
  assert.deepEqual(app.sessions.peek().map((each) => each.sessionId), ["2", "1"]);
  const told = [];
  app.subscribe((kind, changed) => told.push([kind, changed.sessionId]));
  const changed = (session) => ScriptedSocket.last.receive({ method: "_antiphon/sessions/changed", params: { session } });
  changed(row("1", { updated: 10, state: "running" }));
  assert.equal(app.sessions.peek()[0].sessionId, "1");
  changed(row("1", { updated: 10, state: "waiting", waiting: 2 }));
  assert.equal(app.waitingCount.peek(), 2);
  changed(row("1", { updated: 10, state: "running" }));
  changed(row("1", { updated: 10, state: "failed" }));
  changed(row("2", { updated: 11, state: "running" }));
  changed(row("2", { updated: 11, state: "idle" }));
  assert.deepEqual(told, [["waiting", "1"], ["failed", "1"], ["ended", "2"]]);
  ScriptedSocket.last.receive({ method: "_antiphon/sessions/removed", params: { agent: "a", sessionId: "1" } });
  assert.deepEqual(app.sessions.peek().map((each) => each.sessionId), ["2"]);
});

test("a browser that is not signed in opens no socket", async (t) => {
  const { app } = await started(t, { status: 401 });
  assert.equal(app.who.peek(), null);
  assert.equal(ScriptedSocket.all.length, 0);
});

test("a session is opened once, and those that were not used for long are closed", async (t) => {
  const { app } = await started(t);
  const first = app.openSession("a", "1");
  assert.equal(app.openSession("a", "1"), first);
  await settle();
  for (let id = 2; id <= SESSIONS_KEPT; id++) app.openSession("a", String(id));
  assert.equal(app.openSession("a", "1"), first);
  await settle();
  app.openSession("a", "6");
  app.openSession("a", "7");
  assert.equal(app._open.size, SESSIONS_KEPT);
  assert.equal(app.openSession("a", "1"), first, "it was used");
  assert.ok(!app._open.has("a/2") && !app._open.has("a/3"));
  await settle();
  for (const session of app._open.values()) session.close();
});

test("a session with something on its way is not closed", async (t) => {
  const { app } = await started(t);
  const busy = app.openSession("a", "busy");
  await busy.prompt([{ type: "text", text: "hi" }]);
  for (let id = 0; id < 2 * SESSIONS_KEPT; id++) app.openSession("a", String(id));
  assert.equal(app.openSession("a", "busy"), busy);
  await settle();
  for (const session of app._open.values()) session.close();
});

test("signing out ends the connections and clears what the browser keeps", async (t) => {
  globalThis.localStorage?.clear?.();
  const storage = new Storage();
  Object.defineProperty(globalThis, "localStorage", { value: storage, configurable: true, writable: true });
  t.after(() => delete globalThis.localStorage);
  const { app, asked } = await started(t, { storage, sessions: [row("1")] });
  app.drafts.of("a/1").value = { text: "secret plan", attachments: [], kept: true };
  app.setPreference("theme", "dark");
  assert.equal(storage.length, 3); // the draft, the preference, and that it is signed in
  await app.signOut();
  assert.deepEqual(asked.at(-1).slice(0, 2), ["DELETE", "http://gateway/api/login"]);
  assert.equal(storage.length, 0);
  assert.deepEqual(app.sessions.peek(), []);
  assert.ok(ScriptedSocket.last.isClosed);
});

test("preferences are kept", async (t) => {
  const { app, storage } = await started(t);
  assert.equal(app.preferences.peek().theme, "system");
  app.setPreference("theme", "dark");
  const { app: later } = await started(t, { storage });
  assert.equal(later.preferences.peek().theme, "dark");
  storage.setItem("antiphon.preferences", "{broken");
  const { app: repaired } = await started(t, { storage });
  assert.equal(repaired.preferences.peek().theme, "system");
});

test("a newer page is loaded once, and drafts are stored before that", async (t) => {
  let reloads = 0;
  globalThis.location = { hash: "", origin: "http://gateway", reload: () => reloads++ };
  t.after(() => delete globalThis.location);
  const storage = new Storage();
  const info = { ...INFO, page: "new" };
  await started(t, { storage, info, loadedHash: "new" });
  assert.equal(reloads, 0);
  const { app } = await started(t, { storage, info, loadedHash: "old" });
  assert.equal(reloads, 1);
  await started(t, { storage, info, loadedHash: "old" });
  assert.equal(reloads, 1, "a proxy that serves the old one makes no loop");
  await started(t, { storage, info: { ...INFO, page: "newer" }, loadedHash: "old" });
  assert.equal(reloads, 2);
  assert.ok(app);
});

test("a draft is kept until it is sent", () => {
  const storage = new Storage();
  const drafts = new Drafts(storage);
  const draft = drafts.of("a/1");
  draft.value = { text: "half a tho", attachments: [], kept: true };
  draft.value = { text: "half a thought", attachments: [{ name: "x.png", mimeType: "image/png", size: 3, block: { type: "image", data: "AAAA", mimeType: "image/png" } }], kept: true };
  const later = new Drafts(storage).of("a/1").peek();
  assert.equal(later.text, "half a thought");
  assert.equal(later.attachments[0].block.data, "AAAA");
  assert.equal(new Drafts(storage).of("a/2").peek().text, "");
  draft.value = { text: "", attachments: [], kept: true };
  assert.equal(storage.length, 0);
});

test("attachments that are too large are not kept, and the draft says so; its text is", () => {
  const storage = new Storage();
  const draft = new Drafts(storage).of("a/1");
  const attachments = [{ name: "x", mimeType: "image/png", size: LIMIT, block: { type: "image", data: "A".repeat(LIMIT), mimeType: "image/png" } }];
  draft.value = { text: "look", attachments, kept: true };
  assert.equal(draft.peek().kept, false);
  assert.equal(draft.peek().attachments.length, 1, "it can still be sent");
  const later = new Drafts(storage).of("a/1").peek();
  assert.deepEqual([later.text, later.attachments], ["look", []]);
  draft.value = { text: "look", attachments: [], kept: false };
  assert.equal(draft.peek().kept, true);
});

test("a browser that keeps nothing is no error", () => {
  const storage = new Storage();
  storage.setItem = () => {
    throw new Error("no room");
  };
  const draft = new Drafts(storage).of("a/1");
  draft.value = { text: "x", attachments: [], kept: true };
  assert.equal(draft.peek().kept, false);
});

test("modes and models are shown in one form, whichever an agent has", async () => {
  const sent = [];
  const settings = new SessionSettings(async (method, params) => void sent.push([method, params]));
  const option = { id: "m", name: "Model", category: "model", type: "select", currentValue: "big", options: [{ group: "g", name: "G", options: [{ value: "big", name: "Big" }, { value: "small", name: "Small" }] }] };
  settings.opened({ configOptions: [option, { id: "x", name: "X", type: "boolean", currentValue: false }, { id: "?", type: "from tomorrow" }] });
  assert.deepEqual(settings.models.peek().map(({ id }) => id), ["big", "small"]);
  assert.equal(settings.model.peek(), "big");
  assert.deepEqual(settings.options.peek().map(({ id }) => id), ["x"]);
  await settings.setModel("small");
  await settings.setOption("x", true);
  assert.deepEqual(sent, [
    ["session/set_config_option", { configId: "m", value: "small" }],
    ["session/set_config_option", { configId: "x", value: true, type: "boolean" }],
  ]);
  assert.equal(settings.model.peek(), "small");
});

test("a gateway that answers with an error is named, asked again, and its sessions are not taken for deleted", async (t) => {
  const { app } = await started(t, { info: Object.assign(new Error("Internal error"), { code: -32603 }) });
  assert.equal(app.gateway.trouble.value, "Internal error");
  assert.equal(app.listed.value, false);
  const session = app.openSession("a", "s");
  t.after(() => session.close());
  await settle();
  ScriptedSocket.last.respond("_antiphon/gateway/info", Object.assign(new Error("Internal error"), { code: -32603 }));
  await settle();
  assert.equal(session.status.value, "attaching");
  app.gateway.reconnect();
  await settle();
  ScriptedSocket.last.respond("_antiphon/gateway/info", INFO);
  await settle();
  ScriptedSocket.last.respond("_antiphon/sessions/follow", {});
  await settle();
  ScriptedSocket.last.respond("_antiphon/sessions/list", { sessions: [row("s")] });
  await settle();
  assert.equal(app.gateway.trouble.value, "");
  assert.equal(app.sessions.value.length, 1);
});
