// The official TypeScript SDK as a client, over its own stdio.
import * as acp from "@agentclientprotocol/sdk";
import { Probe, bigText, input, output, task } from "./probe.mjs";

const { methods } = acp;
const probe = new Probe();

const app = acp
  .client({ name: "bench" })
  .onNotification(methods.client.session.update, () => {
    probe.handled++;
  })
  .onRequest(methods.client.session.requestPermission, ({ params }) => {
    probe.handled++;
    return { outcome: { outcome: "selected", optionId: params.options[0].optionId } };
  })
  .onRequest(methods.client.fs.readTextFile, () => {
    probe.handled++;
    return { content: bigText(task) };
  });

await app.connectWith(acp.ndJsonStream(output(), input()), async (agent) => {
  await agent.request(methods.agent.initialize, {
    protocolVersion: acp.PROTOCOL_VERSION,
    clientCapabilities: { fs: { readTextFile: true, writeTextFile: false } },
  });
  const sessions = [];
  for (let i = 0; i < task.sessions; i++) {
    sessions.push((await agent.request(methods.agent.session.new, { cwd: "/", mcpServers: [] })).sessionId);
  }
  probe.start();
  const prompt = [{ type: "text", text: "go" }];
  await Promise.all(sessions.map((sessionId) => agent.request(methods.agent.session.prompt, { sessionId, prompt })));
  while (probe.handled < task.count) await new Promise(setImmediate);
  probe.finish();
});
process.exit(0);
