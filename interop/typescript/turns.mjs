// The TypeScript SDK behind a load balancer, over WebSocket or plain HTTP. Usage: turns.mjs NAME URL TOKEN FOLDER, named ws… or http…
import { client, methods } from "@agentclientprotocol/sdk";
import { createHttpStream } from "@agentclientprotocol/sdk/experimental/http-client";
import { createWebSocketStream } from "@agentclientprotocol/sdk/experimental/ws-client";
import { WebSocket } from "ws";
import { takeTurns } from "../cluster/acp_turns.mjs";

const [name, url, token, folder] = process.argv.slice(2);
const headers = { Authorization: `Bearer ${token}` };
// What a lost connection leaves behind in the SDK is not this client's business.
process.on("unhandledRejection", () => {});

async function connect(hear) {
  const app = client({ name }).onNotification(methods.client.session.update, ({ params }) => hear(params.update));
  const stream = name.startsWith("ws")
    ? createWebSocketStream(`${url.replace("http", "ws")}/acp`, { headers, WebSocket })
    : createHttpStream(`${url}/acp`, { headers });
  const connection = app.connect(stream);
  const { agent } = connection;
  const about = { cwd: folder, mcpServers: [] };
  await agent.request(methods.agent.initialize, { protocolVersion: 1, clientInfo: { name, version: "1" }, clientCapabilities: {} });
  return {
    lost: connection.closed,
    close: () => connection.close(),
    newSession: async () => (await agent.request(methods.agent.session.new, about)).sessionId,
    load: (sessionId) => agent.request(methods.agent.session.load, { sessionId, ...about }),
    prompt: (sessionId, text) => agent.request(methods.agent.session.prompt, { sessionId, prompt: [{ type: "text", text }] }),
  };
}

await takeTurns(name, folder, connect);
