// An editor written with the official TypeScript SDK, reduced to one turn: `node typescript_editor.mjs FOLDER PROMPT AGENT…`.
//
// It allows once whatever is asked for, and prints what it was told as one JSON object.

import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk";

const { methods } = acp;
const [folder, words, command, ...args] = process.argv.slice(2);
const seen = { updates: [], asked: [] };

const app = acp
  .client({ name: "typescript-sdk-editor" })
  .onNotification(methods.client.session.update, ({ params }) => {
    seen.updates.push(params.update);
  })
  .onRequest(methods.client.session.requestPermission, ({ params }) => {
    seen.asked.push(params.toolCall);
    const { optionId } = params.options.find((option) => option.kind === "allow_once");
    return { outcome: { outcome: "selected", optionId } };
  });

const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
const stream = acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
await app.connectWith(stream, async (agent) => {
  const first = await agent.request(methods.agent.initialize, {
    protocolVersion: acp.PROTOCOL_VERSION,
    clientCapabilities: { session: { configOptions: {} } },
    clientInfo: { name: "typescript-sdk-editor", version: "1" },
  });
  const { sessionId } = await agent.request(methods.agent.session.new, { cwd: folder, mcpServers: [] });
  const prompt = [{ type: "text", text: words }];
  const { stopReason } = await agent.request(methods.agent.session.prompt, { sessionId, prompt });
  console.log(JSON.stringify({ ...seen, version: first.protocolVersion, stop: stopReason }));
});
child.stdin.end();
