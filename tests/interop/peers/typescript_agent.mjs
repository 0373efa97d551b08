// An agent written with the official TypeScript SDK, as its users write one: `node typescript_agent.mjs`.
// With `serve` it listens on a port of the loopback interface, and prints it.
//
// It plays the scenario that the words of the prompt ask for: /all, /edit, /read, /run, /slow, /fail, or a small answer.

import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk";

const { methods } = acp;

const OPTIONS = [
  { optionId: "yes", name: "Yes", kind: "allow_once" },
  { optionId: "always", name: "Always", kind: "allow_always" },
  { optionId: "no", name: "No", kind: "reject_once" },
  { optionId: "never", name: "Never", kind: "reject_always" },
];

/** What the agent remembers of one conversation. */
class Session {
  mode = "ask";
  tempo = "slow";
  history = [];
  turn = new AbortController();

  constructor(id, cwd) {
    this.id = id;
    this.cwd = cwd;
  }

  modes() {
    const availableModes = [{ id: "ask", name: "Ask" }, { id: "go", name: "Go" }];
    return { currentModeId: this.mode, availableModes };
  }

  configOptions() {
    const options = ["slow", "fast"].map((value) => ({ value, name: value }));
    return [{ type: "select", id: "tempo", name: "Tempo", currentValue: this.tempo, options }];
  }
}

const sessions = new Map();

function known(id) {
  const session = sessions.get(id);
  if (!session) throw acp.RequestError.resourceNotFound(id);
  return session;
}

const text = (words) => ({ type: "text", text: words });
const say = (words) => ({ sessionUpdate: "agent_message_chunk", content: text(words) });
const shown = (words) => ({ type: "content", content: text(words) });
const started = (toolCallId, title, kind, content = []) => ({
  sessionUpdate: "tool_call", toolCallId, title, kind, status: "pending", content,
});
const progress = (toolCallId, status, content) => ({ sessionUpdate: "tool_call_update", toolCallId, status, content });

/** One update of every kind in the stable schema. */
function everything(session) {
  const diff = { type: "diff", path: `${session.cwd}/a`, oldText: "a", newText: "b" };
  const compaction = (status) => ({ sessionUpdate: "compaction_update", compactionId: "c1", status });
  return [
    { sessionUpdate: "agent_thought_chunk", content: text("Let me think.") },
    say("Here is all of it."),
    { sessionUpdate: "plan", entries: [{ content: "Sing", priority: "high", status: "in_progress" }] },
    started("all-1", "Edit a", "edit", [diff]),
    progress("all-1", "completed", [diff, shown("done")]),
    { sessionUpdate: "available_commands_update", availableCommands: [{ name: "all", description: "Every update" }] },
    { sessionUpdate: "current_mode_update", currentModeId: session.mode },
    { sessionUpdate: "config_option_update", configOptions: session.configOptions() },
    { sessionUpdate: "session_info_update", title: "A song" },
    { sessionUpdate: "usage_update", used: 10, size: 100, cost: { amount: 0.5, currency: "EUR" } },
    { sessionUpdate: "notice", severity: "info", title: "A notice" },
    compaction("in_progress"),
    { sessionUpdate: "compaction_summary_chunk", compactionId: "c1", content: text("In short.") },
    compaction("completed"),
    say("That was all."),
  ];
}

/** One prompt being answered. */
class Turn {
  constructor(client, session) {
    this.client = client;
    this.session = session;
    this.cancelled = session.turn.signal;
  }

  async send(update) {
    this.session.history.push(update);
    await this.client.notify(methods.client.session.update, { sessionId: this.session.id, update });
  }

  async play(words) {
    const [command, ...rest] = words.split(" ");
    switch (command) {
      case "/all":
        for (const update of everything(this.session)) await this.send(update);
        return;
      case "/edit":
        return this.edit(rest[0], rest.slice(1).join(" "));
      case "/read":
        return this.read(rest.join(" "));
      case "/run":
        return this.run(rest);
      case "/slow":
        await this.send(say("Slowly."));
        return this.stopped();
      case "/fail":
        throw acp.RequestError.internalError({ details: "asked to fail" });
      default:
        return this.send(say(`You said: ${words}`));
    }
  }

  stopped() {
    return new Promise((resolve) => {
      if (this.cancelled.aborted) resolve();
      this.cancelled.addEventListener("abort", () => resolve(), { once: true });
    });
  }

  async allowed(toolCallId, title) {
    const { outcome } = await this.client.request(methods.client.session.requestPermission, {
      sessionId: this.session.id, toolCall: { toolCallId, title }, options: OPTIONS,
    });
    return outcome.outcome === "selected" && ["yes", "always"].includes(outcome.optionId);
  }

  async read(path) {
    const found = await this.client.request(methods.client.fs.readTextFile, { sessionId: this.session.id, path });
    await this.send(say(found.content));
  }

  async edit(path, content) {
    const diff = { type: "diff", path, newText: content };
    await this.send(started("edit-1", "Edit", "edit", [diff]));
    if (await this.allowed("edit-1", "Edit")) {
      await this.client.request(methods.client.fs.writeTextFile, { sessionId: this.session.id, path, content });
      await this.send(progress("edit-1", "completed", [diff]));
    } else {
      await this.send(progress("edit-1", "failed"));
    }
  }

  async run([command, ...args]) {
    await this.send(started("run-1", "Run", "execute"));
    if (!(await this.allowed("run-1", "Run"))) return this.send(progress("run-1", "failed"));
    const terminal = await this.client.createTerminal({
      sessionId: this.session.id, command, args, cwd: this.session.cwd,
    });
    const place = { type: "terminal", terminalId: terminal.id };
    await this.send(progress("run-1", "in_progress", [place]));
    const ended = terminal.waitForExit();
    const first = await Promise.race([ended.then(() => "ended"), this.stopped().then(() => "stopped")]);
    if (first === "stopped") await terminal.kill();
    await ended;
    const { output } = await terminal.currentOutput();
    await terminal.release();
    return this.send(progress("run-1", "completed", [place, shown(output)]));
  }
}

const app = acp
  .agent({ name: "typescript-sdk-agent" })
  .onRequest(methods.agent.initialize, () => ({
    protocolVersion: acp.PROTOCOL_VERSION,
    agentCapabilities: {
      loadSession: true,
      promptCapabilities: { image: true, embeddedContext: true },
      sessionCapabilities: { list: {}, resume: {}, close: {}, delete: {} },
    },
    authMethods: [{ id: "demo", name: "Demo" }],
    agentInfo: { name: "typescript-sdk-agent", version: "1" },
  }))
  .onRequest(methods.agent.authenticate, ({ params }) => {
    if (params.methodId !== "demo") throw acp.RequestError.invalidParams({ methodId: params.methodId });
    return {};
  })
  .onRequest(methods.agent.session.new, ({ params }) => {
    const session = new Session(`song-${sessions.size + 1}`, params.cwd);
    sessions.set(session.id, session);
    return { sessionId: session.id, modes: session.modes(), configOptions: session.configOptions() };
  })
  .onRequest(methods.agent.session.load, async ({ params, client }) => {
    const session = known(params.sessionId);
    for (const update of session.history) {
      await client.notify(methods.client.session.update, { sessionId: session.id, update });
    }
    return { modes: session.modes(), configOptions: session.configOptions() };
  })
  .onRequest(methods.agent.session.resume, ({ params }) => {
    const session = known(params.sessionId);
    return { modes: session.modes(), configOptions: session.configOptions() };
  })
  .onRequest(methods.agent.session.close, ({ params }) => {
    known(params.sessionId).turn.abort();
    return {};
  })
  .onRequest(methods.agent.session.delete, ({ params }) => {
    sessions.delete(params.sessionId);
    return {};
  })
  .onRequest(methods.agent.session.list, () => ({
    sessions: [...sessions.values()].map(({ id, cwd }) => ({ sessionId: id, cwd })),
  }))
  .onRequest(methods.agent.session.setMode, ({ params }) => {
    const session = known(params.sessionId);
    if (!["ask", "go"].includes(params.modeId)) throw acp.RequestError.invalidParams({ modeId: params.modeId });
    session.mode = params.modeId;
    return {};
  })
  .onRequest(methods.agent.session.setConfigOption, ({ params }) => {
    const session = known(params.sessionId);
    if (params.configId !== "tempo" || !["slow", "fast"].includes(params.value)) {
      throw acp.RequestError.invalidParams({ configId: params.configId });
    }
    session.tempo = params.value;
    return { configOptions: session.configOptions() };
  })
  .onNotification(methods.agent.session.cancel, ({ params }) => known(params.sessionId).turn.abort())
  .onRequest(methods.agent.session.prompt, async ({ params, client }) => {
    const session = known(params.sessionId);
    session.turn = new AbortController();
    for (const content of params.prompt) session.history.push({ sessionUpdate: "user_message_chunk", content });
    const words = params.prompt.map((block) => (block.type === "text" ? block.text : "")).join("");
    await new Turn(client, session).play(words);
    return { stopReason: session.turn.signal.aborted ? "cancelled" : "end_turn" };
  });

if (process.argv[2] === "serve") {
  const { createServer } = await import("node:http");
  const { AcpServer } = await import("@agentclientprotocol/sdk/experimental/server");
  const node = await import("@agentclientprotocol/sdk/experimental/node");
  const { WebSocketServer } = await import("ws");
  const server = new AcpServer({ agent: app });
  const http = createServer(node.createNodeHttpHandler(server));
  http.on("upgrade", node.createNodeWebSocketUpgradeHandler(server, new WebSocketServer({ noServer: true })));
  http.listen(0, "127.0.0.1", () => console.log(http.address().port));
} else {
  app.connect(acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
}
