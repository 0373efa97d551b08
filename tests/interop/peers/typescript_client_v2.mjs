// A client of version 2 alone, written with the official TypeScript SDK: `node typescript_client_v2.mjs FOLDER AGENT…`. The agent is a
// command, or the address of a server.
//
// It drives the agent through a few steps and prints what it saw of each as one line of JSON. It judges nothing.
// `WORDS` is a JSON object with the prompts that make this agent do something: `say`, `slow`, and where it can do that `ask` and `ask_again`
// (for permission), `form` and `fail`. `LOGIN` names a way to sign in. With `SESSION` that session is resumed, and no new one is opened.

import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk/experimental/v2";
import { createHttpStream } from "@agentclientprotocol/sdk/experimental/http-client";
import { createWebSocketStream } from "@agentclientprotocol/sdk/experimental/ws-client";

const { methods } = acp;
const LIMIT = 20_000 * Number(process.env.PATIENCE ?? 1); // milliseconds for one step
const [folder, command, ...args] = process.argv.slice(2);
const remote = /^(ws|http):/.test(command);
const child = remote ? null : spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
const words = { say: "hello", slow: "/slow", ...JSON.parse(process.env.WORDS ?? "{}") };
let updates = [];
let watch = () => {};
let decide;

const app = acp.client()
  .onNotification(methods.client.session.update, ({ params }) => {
    updates.push(params.update);
    watch();
  })
  .onRequest(methods.client.session.requestPermission, ({ params }) => {
    updates.push({ permission: params });
    watch();
    return decide(params.options);
  })
  .onRequest(methods.client.elicitation.create, ({ params }) => {
    updates.push({ form: params });
    const [name, field] = Object.entries(params.requestedSchema.properties)[0];
    const value = field.type === "boolean" ? true : field.type === "string" ? (field.oneOf?.[0].const ?? field.enum?.[0] ?? "me") : 1;
    return { action: "accept", content: { [name]: value } };
  });

const selected = (kind) => (options) => ({ outcome: { outcome: "selected", optionId: options.find((each) => each.kind === kind).optionId } });
const asked = (update) => update.permission;

const until = (test) => new Promise((resolve) => {
  if (test()) return resolve();
  watch = () => test() && resolve();
});
const idle = (update) => update.sessionUpdate === "state_update" && update.state === "idle";
// The SDK may hand over a response before updates that came before it. So the end of a turn is an idle after its own message.
const ended = (messageId) => () => {
  const place = updates.findIndex((update) => update.sessionUpdate?.startsWith("user_message") && update.messageId === messageId);
  return place >= 0 && updates.slice(place).some(idle);
};
const states = () => updates.filter((update) => update.sessionUpdate === "state_update").map((update) => update.stopReason ?? update.state);
const said = () => updates.filter((update) => update.sessionUpdate === "agent_message_chunk").map((update) => update.content.text).join("");
const ids = (kind) => [...new Set(updates.filter((update) => update.sessionUpdate?.startsWith(kind)).map((update) => update.messageId))];

const send = async (agent, sessionId, words) =>
  (await agent.request(methods.agent.session.prompt, { sessionId, prompt: [{ type: "text", text: words }] })).messageId;

async function prompt(agent, sessionId, words) {
  updates = [];
  const messageId = await send(agent, sessionId, words);
  await until(ended(messageId));
  return { own: ids("user_message").includes(messageId), states: states(), said: said(), kinds: [...new Set(updates.map((u) => u.sessionUpdate ?? "permission"))].sort() };
}

const steps = {
  async initialize(agent) {
    const result = await agent.request(methods.agent.initialize, { protocolVersion: 2, info: { name: "ts", version: "1" }, capabilities: { elicitation: { form: {} } } });
    if (process.env.LOGIN) await agent.request(methods.agent.auth.login, { methodId: process.env.LOGIN });
    return { version: result.protocolVersion, name: result.info.name, session: Boolean(result.capabilities.session) };
  },
  async new(agent) {
    this.session = (await agent.request(methods.agent.session.new, { cwd: folder })).sessionId;
    return { session: this.session };
  },
  async prompt(agent) {
    return prompt(agent, this.session, words.say);
  },
  async held(agent) {
    updates = [];
    const answers = await Promise.all([send(agent, this.session, "first"), send(agent, this.session, "second")]);
    // Inserted into the work of the first, or held until it has ended: the agent decides.
    await until(ended(answers[1]));
    return { different: new Set(answers).size, last: states().at(-1) };
  },
  async permission(agent) {
    decide = selected("allow_once");
    const allowed = await prompt(agent, this.session, words.ask);
    const [first] = updates.filter(asked);
    decide = selected("reject_once");
    const rejected = await prompt(agent, this.session, words.ask_again);
    const shown = { title: first.permission.title, subject: first.permission.subject?.type, kinds: first.permission.options.map((each) => each.kind) };
    return { allowed: allowed.states, rejected: rejected.states, asked: updates.filter(asked).length, ...shown };
  },
  async cancel_asking(agent) {
    // Nothing is answered until the turn was cancelled: what is answered then is too late.
    let answer;
    decide = () => new Promise((resolve) => (answer = resolve));
    updates = [];
    const messageId = await send(agent, this.session, words.ask_again);
    await until(() => updates.some(asked));
    await agent.notify(methods.agent.session.cancel, { sessionId: this.session });
    await until(ended(messageId));
    answer({ outcome: { outcome: "cancelled" } });
    return { states: states() };
  },
  async form(agent) {
    const found = await prompt(agent, this.session, words.form);
    return { forms: updates.filter((update) => update.form).length, states: found.states, said: found.said };
  },
  async fail(agent) {
    try {
      const found = await prompt(agent, this.session, words.fail);
      return { states: found.states, error: updates.find(idle).error?.message };
    } catch (error) {
      return { states: ["refused"], error: error.message }; // before the prompt was inserted
    }
  },
  async cancel(agent) {
    updates = [];
    const messageId = await send(agent, this.session, words.slow);
    await agent.notify(methods.agent.session.cancel, { sessionId: this.session });
    await until(ended(messageId));
    return { states: states() };
  },
  async resume(agent) {
    updates = [];
    await agent.request(methods.agent.session.resume, { sessionId: this.session, cwd: folder, replayFrom: { type: "start" } });
    await until(() => updates.some(idle));
    return { state: states().at(-1), said: said(), users: ids("user_message").length };
  },
  async resume_without_replay(agent) {
    updates = [];
    await agent.request(methods.agent.session.resume, { sessionId: this.session, cwd: folder });
    await until(() => updates.some(idle));
    const replayed = updates.filter((update) => /_message|_thought|tool_call/.test(update.sessionUpdate)).length;
    return { replayed, then: await prompt(agent, this.session, words.say) };
  },
  async list(agent) {
    const { sessions } = await agent.request(methods.agent.session.list, {});
    return { listed: sessions.some((each) => each.sessionId === this.session) };
  },
  async unknown(agent) {
    try {
      await agent.request(methods.agent.toolCall.cancel, { sessionId: this.session, toolCallId: "none" });
    } catch (error) {
      return { code: error.code };
    }
    return { code: null };
  },
  async close(agent) {
    return agent.request(methods.agent.session.close, { sessionId: this.session });
  },
};

function bounded(work) {
  let timer;
  const late = new Promise((_, reject) => { timer = setTimeout(() => reject(new Error("TimeoutError")), LIMIT); });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}

const resumed = ["initialize", "resume", "resume_without_replay", "close"];
const chosen = process.env.SESSION ? resumed : Object.keys(steps);
steps.session = process.env.SESSION;
const needed = { permission: "ask", cancel_asking: "ask_again", form: "form", fail: "fail" };
const stream = child
  ? acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout))
  : command.startsWith("ws") ? createWebSocketStream(command) : createHttpStream(command);
await app.connectWith(stream, async (agent) => {
  for (const step of chosen.filter((each) => !needed[each] || words[needed[each]])) {
    let line;
    try {
      line = { step, ok: true, detail: await bounded(steps[step](agent)) };
    } catch (error) {
      line = { step, ok: false, detail: { error: `${error.name}: ${error.message}`, updates: updates.slice(-3) } };
    }
    console.log(JSON.stringify(line));
  }
});
child?.stdin.end();
setTimeout(() => (child ? child.kill("SIGKILL") : process.exit()), child ? 5_000 : 1_000).unref();
