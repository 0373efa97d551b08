// The smallest agent of the official TypeScript SDK: its start-up is what is measured.
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk";

acp
  .agent({ name: "minimal" })
  .onRequest(acp.methods.agent.initialize, ({ params }) => ({
    protocolVersion: params.protocolVersion,
    agentCapabilities: {},
  }))
  .connect(acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
