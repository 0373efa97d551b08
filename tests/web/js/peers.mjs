// A gateway that a test writes by hand: what it sends, in which order, and when its sockets fail.

/** A WebSocket whose other end is the test. */
export class ScriptedSocket {
  static all = [];

  constructor(url, protocols) {
    Object.assign(this, { url, protocols, readyState: 0, sent: [], isClosed: false, onopen: null, onmessage: null, onclose: null });
    ScriptedSocket.all.push(this);
  }

  static get last() {
    return ScriptedSocket.all.at(-1);
  }

  send(text) {
    this.sent.push(JSON.parse(text));
  }

  close() {
    this.readyState = 3;
    this.isClosed = true;
  }

  // What the test does.

  open() {
    this.readyState = 1;
    this.onopen?.({});
  }

  fail() {
    this.readyState = 3;
    this.onclose?.({ code: 1006 });
  }

  receive(message) {
    this.onmessage?.({ data: typeof message === "string" ? message : JSON.stringify({ jsonrpc: "2.0", ...message }) });
  }

  /** The requests of a method that have no response yet. */
  requests(method) {
    return this.sent.filter((message) => message.method === method && message.id !== undefined && !this._answered.has(message.id));
  }

  respond(method, result) {
    const [request] = this.requests(method);
    if (request === undefined) throw new Error(`no ${method} was sent: ${this.sent.map((message) => message.method)}`);
    this._answered.add(request.id);
    this.receive({ id: request.id, ...(result instanceof Error ? { error: { code: result.code ?? -1, message: result.message, data: result.data } } : { result }) });
  }

  _answered = new Set();
}

/** Let promises that are settled go on. */
export async function settle() {
  for (let turn = 0; turn < 20; turn++) await Promise.resolve();
}

export const INFO = { version: "1", page: "", name: "me", role: "admin", share: false, agents: [{ name: "a", title: "A", default: true, state: "running", settings: null }], roots: [], recent: [] };

/** Answer what a page asks on a new socket: `initialize`, the info, the list. */
export async function welcome(socket, { info = INFO, sessions = [] } = {}) {
  socket.open();
  await settle();
  socket.respond("initialize", { protocolVersion: 1, agentCapabilities: {}, _meta: { antiphon: { extension: 1 } } });
  await settle();
  if (socket.requests("_antiphon/gateway/info").length > 0) socket.respond("_antiphon/gateway/info", info);
  await settle();
  if (socket.requests("_antiphon/sessions/follow").length > 0) socket.respond("_antiphon/sessions/follow", {});
  await settle();
  if (socket.requests("_antiphon/sessions/list").length > 0) socket.respond("_antiphon/sessions/list", { sessions });
  await settle();
}

/** An event of a session: an update with its number. */
export function event(number, update, sessionId = "s") {
  return { method: "session/update", params: { sessionId, update, _meta: { antiphon: { number, time: 1000 + number } } } };
}

export function agent(text, more = {}) {
  return { sessionUpdate: "agent_message_chunk", content: { type: "text", text }, ...more };
}

export function prompt(text, name, turn = "t1") {
  return { sessionUpdate: "user_message_chunk", content: { type: "text", text }, messageId: turn, _meta: { antiphon: { from: "me", turn, prompt: name } } };
}

export function call(toolCallId, more = {}) {
  return { sessionUpdate: "tool_call", toolCallId, title: "Read", ...more };
}

export function patch(toolCallId, more = {}) {
  return { sessionUpdate: "tool_call_update", toolCallId, ...more };
}

/** An event that is a notification of the gateway. */
export function notice(name, number, more = {}) {
  return { method: `_antiphon/session/${name}`, params: { sessionId: "s", number, time: 1000 + number, ...more } };
}
