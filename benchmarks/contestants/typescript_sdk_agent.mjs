// The official TypeScript SDK as an agent, over its own stdio.
import { randomUUID } from "node:crypto";
import * as acp from "@agentclientprotocol/sdk";
import { Probe, bigText, input, output, task, updateAt, updates } from "./probe.mjs";

const { methods } = acp;
const probe = new Probe();

async function ask(client, sessionId) {
  const options = [{ optionId: "allow", name: "Allow", kind: "allow_once" }];
  for (let index = 0; index < task.count; index++) {
    const began = performance.now();
    const toolCall = { toolCallId: `call_${index}`, title: updates.tool_title };
    const answer = await client.request(methods.client.session.requestPermission, { sessionId, toolCall, options });
    probe.samples.push(performance.now() - began);
    if (answer.outcome.outcome !== "selected") throw new Error(JSON.stringify(answer));
  }
}

async function prompt({ params: { sessionId }, client }) {
  probe.start();
  if (task.kind === "permission") {
    await ask(client, sessionId);
  } else if (task.kind === "big_update") {
    const content = { type: "text", text: bigText(task) };
    const update = { sessionUpdate: "agent_message_chunk", content };
    await client.notify(methods.client.session.update, { sessionId, update });
  } else if (task.kind.startsWith("big_read")) {
    const answer = await client.request(methods.client.fs.readTextFile, { sessionId, path: "/big.txt" });
    if (answer.content.length !== task.size) throw new Error(String(answer.content.length));
  } else {
    for (let index = 0; index < task.count / task.sessions; index++) {
      await client.notify(methods.client.session.update, { sessionId, update: updateAt(index) });
    }
  }
  probe.lap();
  return { stopReason: "end_turn" };
}

const connection = acp
  .agent({ name: "bench" })
  .onRequest(methods.agent.initialize, ({ params }) => ({ protocolVersion: params.protocolVersion, agentCapabilities: {} }))
  .onRequest(methods.agent.session.new, () => ({ sessionId: `sess_${randomUUID().replaceAll("-", "")}` }))
  .onRequest(methods.agent.session.prompt, prompt)
  .connect(acp.ndJsonStream(output(), input()));
await connection.closed;
const { reason } = connection.signal;
if (reason instanceof acp.MessageTooLargeError) {
  console.error(String(reason));
  process.exitCode = 1;
}
probe.finish();
