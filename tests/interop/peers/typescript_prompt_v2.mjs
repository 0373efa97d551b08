// A client of version 2 that sends one prompt, written with the official TypeScript SDK: `node typescript_prompt_v2.mjs AGENT…`.
//
// It ends when the session is idle after its prompt was inserted, so that `antiphon check-client --protocol 2` can check what the SDK does.

import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk/experimental/v2";

const { methods } = acp;
const [command, ...args] = process.argv.slice(2);
const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
const seen = []; // messages of the user and ends of work, in their order
let changed = () => {};

const app = acp.client()
  .onNotification(methods.client.session.update, ({ params: { update } }) => {
    if (update.sessionUpdate === "state_update" && update.state === "idle") seen.push(update);
    if (update.sessionUpdate.startsWith("user_message")) seen.push(update.messageId);
    changed();
  })
  .onRequest(methods.client.session.requestPermission, ({ params }) => {
    const allowed = params.options.find((each) => each.kind === "allow_once");
    return { outcome: allowed ? { outcome: "selected", optionId: allowed.optionId } : { outcome: "cancelled" } };
  });

async function end(messageId) {
  if (!seen.includes(messageId)) seen.push(messageId);
  for (;;) {
    const idle = seen.slice(seen.indexOf(messageId)).find((each) => typeof each === "object");
    if (idle) return idle;
    await new Promise((resolve) => (changed = resolve));
  }
}

const stream = acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
const gone = new Promise((_, reject) => child.stdout.on("close", () => reject(new Error("the agent left"))));
gone.catch(() => {});
try {
  await app.connectWith(stream, (agent) => Promise.race([gone, converse(agent)]));
} catch (error) {
  console.error(String(error));
  process.exitCode = 1;
}
child.stdin.end();
setTimeout(() => child.kill("SIGKILL"), 1_000).unref();

async function converse(agent) {
  const info = { name: "typescript-prompt", version: "1" };
  const found = await agent.request(methods.agent.initialize, { protocolVersion: 2, info, capabilities: {} });
  if (!found.capabilities?.session) throw new Error("the agent has no sessions");
  const { sessionId } = await agent.request(methods.agent.session.new, { cwd: process.cwd() });
  const prompt = [{ type: "text", text: "hello" }];
  const { messageId } = await agent.request(methods.agent.session.prompt, { sessionId, prompt });
  const idle = await end(messageId);
  if (idle.stopReason === "error") throw new Error(idle.error?.message ?? "it failed");
}
