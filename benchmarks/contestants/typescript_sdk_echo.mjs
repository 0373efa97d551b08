// An echo agent with the official TypeScript SDK: its start-up and its memory are measured.
import { randomUUID } from "node:crypto";
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk";

const { methods } = acp;
const sessions = new Map();

async function prompt({ params: { sessionId, prompt }, client }) {
  for (const content of prompt) {
    const update = { sessionUpdate: "agent_message_chunk", content };
    await client.notify(methods.client.session.update, { sessionId, update });
  }
  return { stopReason: "end_turn" };
}

acp
  .agent({ name: "echo" })
  .onRequest(methods.agent.initialize, ({ params }) => ({
    protocolVersion: params.protocolVersion,
    agentCapabilities: {},
  }))
  .onRequest(methods.agent.session.new, ({ params }) => {
    const sessionId = randomUUID();
    sessions.set(sessionId, params.cwd);
    return { sessionId };
  })
  .onRequest(methods.agent.session.prompt, prompt)
  .connect(acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
