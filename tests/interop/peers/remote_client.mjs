// A small client written with the official TypeScript SDK: `node remote_client.mjs URL TOKEN PURPOSE`.
//
// It opens a session with the agent at an address, sends one prompt, allows whatever is asked, and leaves. PURPOSE is `prompt`, `cancel` or
// `load`.

import * as acp from "@agentclientprotocol/sdk";
import { createHttpStream } from "@agentclientprotocol/sdk/experimental/http-client";
import { createWebSocketStream } from "@agentclientprotocol/sdk/experimental/ws-client";

const { methods } = acp;
const [url, token, purpose] = process.argv.slice(2);
const options = { headers: { Authorization: `Bearer ${token}` } };
const stream = url.startsWith("ws") ? createWebSocketStream(url, options) : createHttpStream(url, options);

let received = () => {};
const update = new Promise((resolve) => (received = resolve));

const app = acp
  .client({ name: "typescript-sdk-client" })
  .onNotification(methods.client.session.update, () => received())
  .onRequest(methods.client.session.requestPermission, ({ params }) => {
    return { outcome: { outcome: "selected", optionId: params.options[0].optionId } };
  });

await app.connectWith(stream, async (agent) => {
  await agent.request(methods.agent.initialize, { protocolVersion: acp.PROTOCOL_VERSION, clientCapabilities: {} });
  const cwd = process.cwd();
  let sessionId = "judge-earlier";
  if (purpose === "load") await agent.request(methods.agent.session.load, { sessionId, cwd, mcpServers: [] });
  else ({ sessionId } = await agent.request(methods.agent.session.new, { cwd, mcpServers: [] }));
  const prompt = [{ type: "text", text: "hello" }];
  const turn = agent.request(methods.agent.session.prompt, { sessionId, prompt });
  if (purpose === "cancel") {
    await update;
    await agent.notify(methods.agent.session.cancel, { sessionId });
  }
  await turn;
});
setTimeout(() => process.exit(), 1_000).unref();
