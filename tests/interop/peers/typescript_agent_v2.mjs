// An agent of version 2, written with the official TypeScript SDK: `node typescript_agent_v2.mjs`, or with `dual` one of both versions.
//
// It plays what the words of the prompt ask for: /tool (a permission request and an upserted call), /ask (a form), /slow (until it is
// cancelled), /fail, or a small answer. Prompts that come while it works are held. In version 1 it only says which version that is.

import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk/experimental/v2";

const { methods } = acp;
const text = (words) => ({ type: "text", text: words });
const sessions = new Map();
let counter = 0;

class Session {
  mode = "ask";
  history = [];
  work = Promise.resolve();
  aborts = new Set(); // one for each prompt that is held or works
  state = "idle";

  constructor(id, cwd) {
    this.id = id;
    this.cwd = cwd;
  }

  configOptions() {
    const options = [{ value: "ask", name: "Ask" }, { value: "go", name: "Go" }];
    return [{ configId: "mode", name: "Mode", category: "mode", type: "select", currentValue: this.mode, options }];
  }
}

function known(id) {
  const session = sessions.get(id);
  if (!session) throw new acp.RequestError(-32002, "Session not found", { sessionId: id });
  return session;
}

const cancel = (id) => sessions.get(id)?.aborts.forEach((abort) => abort.abort());

const sender = (client, session) => (update, kept = true) => {
  if (kept) session.history.push(update);
  return client.notify(methods.client.session.update, { sessionId: session.id, update });
};

async function play(words, session, client, signal) {
  const send = sender(client, session);
  if (words.includes("/fail")) throw new Error("out of ink");
  if (words.includes("/slow")) {
    await send({ sessionUpdate: "agent_message_chunk", messageId: `a${++counter}`, content: text("slowly ") });
    if (!signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve));
    return "cancelled";
  }
  if (words.includes("/tool")) {
    const call = { toolCallId: `t${++counter}`, title: "Write poem", kind: "edit", status: "pending" };
    await send({ sessionUpdate: "state_update", state: "requires_action" }, false);
    const { outcome } = await client.request(methods.client.session.requestPermission, {
      sessionId: session.id,
      title: "May I write?",
      subject: { type: "tool_call", toolCall: call },
      options: [{ optionId: "yes", name: "Yes", kind: "allow_once" }, { optionId: "no", name: "No", kind: "reject_once" }],
    });
    if (signal.aborted) return "cancelled";
    await send({ sessionUpdate: "state_update", state: "running" }, false);
    const allowed = outcome.outcome === "selected" && outcome.optionId === "yes";
    const patch = `--- /dev/null\n+++ ${session.cwd}/poem\n@@ -0,0 +1,1 @@\n+roses\n`;
    const diff = { type: "diff", changes: [{ operation: "add", path: `${session.cwd}/poem` }], patch: { format: "git_patch", text: patch } };
    await send({ sessionUpdate: "tool_call_content_chunk", toolCallId: call.toolCallId, content: diff });
    await send({ sessionUpdate: "tool_call_update", toolCallId: call.toolCallId, status: allowed ? "completed" : "cancelled" });
    await send({ sessionUpdate: "agent_message", messageId: `a${++counter}`, content: [text(allowed ? "written" : "not written")] });
    return "end_turn";
  }
  const messageId = `a${++counter}`;
  if (words.includes("/ask")) {
    await send({ sessionUpdate: "state_update", state: "requires_action" }, false);
    const form = { type: "object", properties: { name: { type: "string", title: "Your name" } }, required: ["name"] };
    const asked = { sessionId: session.id, mode: "form", message: "Who are you?", requestedSchema: form };
    const { content } = await client.request(methods.client.elicitation.create, asked);
    await send({ sessionUpdate: "state_update", state: "running" }, false);
    await send({ sessionUpdate: "agent_message_chunk", messageId, content: text(`you are ${content.name}`) });
    return "end_turn";
  }
  await send({ sessionUpdate: "agent_message_chunk", messageId, content: text("you said ") });
  await send({ sessionUpdate: "agent_message", messageId, content: [text("you said "), text(words)] });
  return "end_turn";
}

const app = acp.agent()
  .onRequest(methods.agent.initialize, () => ({
    protocolVersion: acp.PROTOCOL_VERSION,
    info: { name: "typescript-v2", version: "1" },
    capabilities: { session: { mcp: { stdio: {} }, delete: {} } },
  }))
  .onRequest(methods.agent.session.new, ({ params }) => {
    const session = new Session(`s${++counter}`, params.cwd);
    sessions.set(session.id, session);
    return { sessionId: session.id, configOptions: session.configOptions(), availableCommands: [{ type: "command", name: "tool", description: "A tool" }] };
  })
  .onRequest(methods.agent.session.resume, async ({ params, client }) => {
    const session = known(params.sessionId);
    const send = sender(client, session);
    if (params.replayFrom) for (const update of [...session.history]) await send(update, false);
    await send({ sessionUpdate: "state_update", state: session.state }, false);
    return { configOptions: session.configOptions() };
  })
  .onRequest(methods.agent.session.list, () => ({ sessions: [...sessions.values()].map(({ id, cwd }) => ({ sessionId: id, cwd })) }))
  .onRequest(methods.agent.session.close, ({ params }) => {
    cancel(params.sessionId);
    return {};
  })
  .onRequest(methods.agent.session.delete, ({ params }) => {
    sessions.delete(params.sessionId);
    return {};
  })
  .onRequest(methods.agent.session.setConfigOption, async ({ params, client }) => {
    const session = known(params.sessionId);
    if (params.configId !== "mode" || !["ask", "go"].includes(params.value)) throw new acp.RequestError(-32602, "Invalid params");
    session.mode = params.value;
    await sender(client, session)({ sessionUpdate: "config_option_update", configOptions: session.configOptions() }, false);
    return { configOptions: session.configOptions() };
  })
  .onNotification(methods.agent.session.cancel, ({ params }) => cancel(params.sessionId))
  .onRequest(methods.agent.session.prompt, async ({ params, client }) => {
    const session = known(params.sessionId);
    const before = session.work;
    const abort = new AbortController();
    let over;
    session.aborts.add(abort);
    session.work = new Promise((resolve) => (over = resolve)).then(() => session.aborts.delete(abort));
    await before; // held until the one before has ended
    if (abort.signal.aborted) {
      over();
      throw new acp.RequestError(-32800, "Request cancelled");
    }
    const messageId = `u${++counter}`;
    const send = sender(client, session);
    const words = params.prompt.map((block) => (block.type === "text" ? block.text : "")).join("");
    (async () => {
      await send({ sessionUpdate: "user_message", messageId, content: params.prompt });
      session.state = "running";
      await send({ sessionUpdate: "state_update", state: "running" }, false);
      let end;
      try {
        end = { stopReason: await play(words, session, client, abort.signal) };
      } catch (error) {
        end = { stopReason: "error", error: { code: -32603, message: error.message } };
      }
      session.state = "idle";
      await send({ sessionUpdate: "state_update", state: "idle", ...end }, false);
      over();
    })();
    return { messageId };
  });

async function both() {
  const v1 = await import("@agentclientprotocol/sdk");
  const old = v1.agent()
    .onRequest(v1.methods.agent.initialize, () => ({ protocolVersion: 1, agentCapabilities: {} }))
    .onRequest(v1.methods.agent.session.new, () => ({ sessionId: "old" }))
    .onRequest(v1.methods.agent.session.prompt, async ({ params, client }) => {
      const update = { sessionUpdate: "agent_message_chunk", content: text("this is version 1") };
      await client.notify(v1.methods.client.session.update, { sessionId: params.sessionId, update });
      return { stopReason: "end_turn" };
    });
  return acp.agentProtocolRouter().withV1(old).withV2(app);
}

const served = process.argv[2] === "dual" ? await both() : app;
served.connect(acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
