// A client written with the official TypeScript SDK, as its users write one: `node typescript_client.mjs FOLDER AGENT…`.
// The agent is a command, or an address.
//
// It drives the agent through the scenario, step by step, and prints what it saw of each step as one line of JSON. It
// judges nothing.

import { spawn } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk";
import { createHttpStream } from "@agentclientprotocol/sdk/experimental/http-client";
import { createWebSocketStream } from "@agentclientprotocol/sdk/experimental/ws-client";

const { methods } = acp;
const PATIENCE = 20_000; // milliseconds for one step: an agent that is silent for longer has failed it
const SLOW = 200; // milliseconds that a slow handler takes: other updates are there long before

const [folder, command, ...args] = process.argv.slice(2);

/** What the handlers saw, and how they answer. */
const seen = { updates: [], options: [], calls: [], answer: "allow_once", terminals: new Map(), waiting: new Map(),
  held: Promise.resolve() };

function forget(answer = "allow_once") {
  Object.assign(seen, { updates: [], options: [], calls: [], answer });
}

function heard(what) {
  seen.waiting.get(what)?.();
}

/** The next time that something happens. */
const next = (what) => new Promise((resolve) => seen.waiting.set(what, resolve));

const kinds = () => [...new Set(seen.updates.map((update) => update.sessionUpdate))].sort();
const shown = (words) => seen.updates.some((update) => JSON.stringify(update).includes(words));
const poem = () => readFileSync(join(folder, "poem.txt"), "utf8");

function kill(terminal) {
  try {
    if (terminal.process.exitCode === null && terminal.process.signalCode === null) {
      process.kill(-terminal.process.pid, "SIGKILL");
    }
  } catch {
    // It was gone already.
  }
}

async function createTerminal({ params }) {
  seen.calls.push("create");
  const child = spawn(params.command, params.args ?? [], {
    cwd: params.cwd ?? folder, detached: true, stdio: ["ignore", "pipe", "pipe"],
  });
  const terminal = { process: child, output: "" };
  terminal.ended = new Promise((resolve) => {
    child.on("close", (exitCode, signal) => resolve({ exitCode, signal }));
  });
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (terminal.output += chunk));
  const terminalId = `terminal-${seen.terminals.size + 1}`;
  seen.terminals.set(terminalId, terminal);
  heard("created");
  await seen.held;
  return { terminalId };
}

const terminalOf = ({ params }, call) => {
  seen.calls.push(call);
  return seen.terminals.get(params.terminalId);
};

const app = acp
  .client({ name: "typescript-sdk-client" })
  .onNotification(methods.client.session.update, ({ params }) => {
    seen.updates.push(params.update);
    heard("update");
  })
  .onRequest(methods.client.session.requestPermission, ({ params }) => {
    seen.options = params.options.map((option) => option.kind).sort();
    const { optionId } = params.options.find((option) => option.kind === seen.answer);
    return { outcome: { outcome: "selected", optionId } };
  })
  .onRequest(methods.client.fs.readTextFile, ({ params }) => {
    seen.calls.push("read");
    if (!existsSync(params.path)) throw acp.RequestError.resourceNotFound(params.path);
    const lines = readFileSync(params.path, "utf8").split(/(?<=\n)/);
    const start = (params.line ?? 1) - 1;
    return { content: lines.slice(start, params.limit ? start + params.limit : undefined).join("") };
  })
  .onRequest(methods.client.fs.writeTextFile, ({ params }) => {
    seen.calls.push("write");
    writeFileSync(params.path, params.content);
    return {};
  })
  .onRequest(methods.client.terminal.create, createTerminal)
  .onRequest(methods.client.terminal.output, (context) => {
    const { output } = terminalOf(context, "output");
    return { output, truncated: false };
  })
  .onRequest(methods.client.terminal.waitForExit, (context) => {
    const { ended } = terminalOf(context, "wait");
    heard("waiting");
    return ended;
  })
  .onRequest(methods.client.terminal.kill, (context) => {
    kill(terminalOf(context, "kill"));
    return {};
  })
  .onRequest(methods.client.terminal.release, (context) => {
    kill(terminalOf(context, "release"));
    return {};
  });

/** The steps, in order. Each returns what was seen. */
class Scenario {
  constructor(agent) {
    this.agent = agent;
  }

  async send(words) {
    const prompt = [{ type: "text", text: words }];
    return (await this.agent.request(methods.agent.session.prompt, { sessionId: this.session, prompt })).stopReason;
  }

  prompt(words, answer) {
    forget(answer);
    return this.send(words);
  }

  /** If `hold` is set, a terminal is only handed out once the cancellation is on its way. */
  async promptAndCancel(words, what, hold = false) {
    forget();
    let letGo = () => {};
    if (hold) seen.held = new Promise((resolve) => (letGo = resolve));
    const when = next(what);
    const turn = this.send(words);
    await when;
    await this.agent.notify(methods.agent.session.cancel, { sessionId: this.session });
    letGo();
    return turn;
  }

  async codeOf(asked) {
    try {
      await asked;
    } catch (error) {
      return error.code ?? String(error);
    }
    return null;
  }

  async initialize() {
    this.first = await this.agent.request(methods.agent.initialize, {
      protocolVersion: acp.PROTOCOL_VERSION,
      clientCapabilities: {
        fs: { readTextFile: true, writeTextFile: true },
        terminal: true,
        session: { notices: {}, compaction: {}, configOptions: { boolean: {} } },
      },
      clientInfo: { name: "typescript-sdk-client", version: "1" },
    });
    return { version: this.first.protocolVersion, methods: (this.first.authMethods ?? []).map(({ id }) => id) };
  }

  async authenticate() {
    await this.agent.request(methods.agent.authenticate, { methodId: this.first.authMethods[0].id });
    return {};
  }

  async new() {
    const made = await this.agent.request(methods.agent.session.new, { cwd: folder, mcpServers: [] });
    this.session = made.sessionId;
    const modes = (made.modes?.availableModes ?? []).map(({ id }) => id);
    this.mode = modes.find((mode) => mode !== made.modes.currentModeId);
    this.settings = made.configOptions ?? [];
    return { modes, options: this.settings.map(({ id }) => id) };
  }

  async updates() {
    const stop = await this.send("/all"); // what came since the session began counts too
    return { stop, kinds: kinds() };
  }

  async order() {
    forget();
    return this.agent.buildSession(folder).withSession(async (session) => {
      const handled = [];
      session.prompt("/all");
      for (let message = await session.nextUpdate(); message.kind !== "stop"; message = await session.nextUpdate()) {
        if (handled.length === 0) await new Promise((resolve) => setTimeout(resolve, SLOW));
        handled.push(message.update.sessionUpdate);
      }
      return { stop: "end_turn", handled };
    });
  }

  async permission_allow() {
    const stop = await this.prompt(`/edit ${folder}/poem.txt Sung by one.`);
    return { stop, options: seen.options, calls: seen.calls, file: poem() };
  }

  async permission_reject() {
    const stop = await this.prompt(`/edit ${folder}/poem.txt Sung by nobody.`, "reject_once");
    return { stop, options: seen.options, calls: seen.calls, file: poem() };
  }

  async files() {
    const stop = await this.prompt(`/read ${folder}/notes.txt`);
    return { stop, calls: seen.calls, shown: shown("second line") };
  }

  async terminal() {
    const before = seen.terminals.size;
    const stop = await this.prompt("/run echo sung aloud");
    const output = [...seen.terminals.values()].slice(before).map((terminal) => terminal.output).join("");
    return { stop, calls: seen.calls, output };
  }

  async terminal_race() {
    const stop = await this.promptAndCancel("/run sleep 600", "created", true);
    for (const terminal of seen.terminals.values()) await terminal.ended;
    return { stop, calls: seen.calls };
  }

  async terminal_kill() {
    const stop = await this.promptAndCancel("/run sleep 600", "waiting");
    for (const terminal of seen.terminals.values()) await terminal.ended;
    return { stop, calls: seen.calls };
  }

  async cancel() {
    return { stop: await this.promptAndCancel("/slow 60", "update") };
  }

  async set_mode() {
    await this.agent.request(methods.agent.session.setMode, { sessionId: this.session, modeId: this.mode });
    return {};
  }

  async set_config_option() {
    const option = this.settings.find(({ type, category }) => type === "select" && category !== "mode");
    const { value } = option.options.flatMap((each) => each.options ?? [each]).find((each) => each.value !== option.currentValue);
    const answer = await this.agent.request(methods.agent.session.setConfigOption, {
      sessionId: this.session, configId: option.id, value,
    });
    return { asked: value, now: answer.configOptions.find(({ id }) => id === option.id).currentValue };
  }

  async list() {
    const { sessions } = await this.agent.request(methods.agent.session.list, {});
    return { mine: sessions.filter(({ sessionId }) => sessionId === this.session).map(({ cwd }) => cwd) };
  }

  async load() {
    forget();
    const answer = await this.agent.request(methods.agent.session.load, {
      sessionId: this.session, cwd: folder, mcpServers: [],
    });
    const mode = answer.modes?.currentModeId ?? null;
    return { kinds: kinds(), shown: shown("/run echo sung aloud"), mode, wanted_mode: this.mode };
  }

  async errors() {
    const prompt = [{ type: "text", text: "hello" }];
    const ask = (method, params) => this.codeOf(this.agent.request(method, params));
    const codes = {
      "unknown session": await ask(methods.agent.session.prompt, { sessionId: "nobody", prompt }),
      "unknown method": await ask("_antiphon/nothing", {}),
      "unknown mode": await ask(methods.agent.session.setMode, { sessionId: this.session, modeId: "nonsense" }),
      "missing params": await ask(methods.agent.session.new, {}),
      "failing prompt": await this.codeOf(this.prompt("/fail")),
    };
    return { codes };
  }

  async afterwards() {
    const stop = await this.prompt("hello");
    return { stop, kinds: kinds() };
  }

  async resume() {
    const answer = await this.agent.request(methods.agent.session.resume, {
      sessionId: this.session, cwd: folder, mcpServers: [],
    });
    return { mode: answer.modes?.currentModeId ?? null, wanted_mode: this.mode };
  }

  async close() {
    await this.agent.request(methods.agent.session.close, { sessionId: this.session });
    return {};
  }

  async delete() {
    await this.agent.request(methods.agent.session.delete, { sessionId: this.session });
    return this.list();
  }
}

const STEPS = [
  "initialize", "authenticate", "new", "updates", "order", "permission_allow", "permission_reject", "files", "terminal",
  "terminal_kill", "terminal_race", "cancel", "set_mode", "set_config_option", "list", "load", "resume", "errors", "afterwards", "close",
  "delete",
];

function bounded(work) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error("TimeoutError")), PATIENCE);
  });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}

let child = null;

function open() {
  if (command.startsWith("ws")) return createWebSocketStream(command);
  if (command.startsWith("http")) return createHttpStream(command);
  child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
  return acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
}

const stream = open();
await app.connectWith(stream, async (agent) => {
  const scenario = new Scenario(agent);
  const leftOut = (process.env.LEFT_OUT ?? "").split(",");
  for (const step of STEPS.filter((each) => !leftOut.includes(each))) {
    let line;
    try {
      line = { step, ok: true, detail: await bounded(scenario[step]()) };
    } catch (error) {
      line = { step, ok: false, detail: { error: `${error.name}: ${error.message}` } };
    }
    console.log(JSON.stringify(line));
  }
});
for (const terminal of seen.terminals.values()) kill(terminal);
if (child !== null) {
  child.stdin.end();
  const timer = setTimeout(() => child.kill("SIGKILL"), 5_000);
  child.on("exit", () => clearTimeout(timer));
} else {
  setTimeout(() => process.exit(), 1_000).unref();
}
