// goose's own SDK behind a load balancer, over plain HTTP. Usage: turns.mjs NAME URL TOKEN FOLDER
import { GooseClient } from "@aaif/goose-sdk";
import { takeTurns } from "../cluster/acp_turns.mjs";

const [name, url, token, folder] = process.argv.slice(2);
const plain = globalThis.fetch;
// What a lost connection leaves behind in the SDK is not this client's business.
process.on("unhandledRejection", () => {});

/** Reads on for the SDK and says when a stream ends: the SDK itself tells nobody. */
async function* watched(body, ended) {
  try {
    yield* body;
  } finally {
    ended();
  }
}

async function connect(hear) {
  let ended;
  const lost = new Promise((resolve) => (ended = resolve));
  // The SDK sends no key over HTTP, so the key is added to its requests, as goose's desktop does.
  globalThis.fetch = async (target, init = {}) => {
    const answer = await plain(target, { ...init, headers: { ...init.headers, "X-Secret-Key": token } });
    if (init.method !== "GET" || !answer.ok) return answer;
    const { status, headers } = answer;
    return new Response(ReadableStream.from(watched(answer.body, ended)), { status, headers });
  };
  const sdk = new GooseClient(() => ({ sessionUpdate: async ({ update }) => hear(update) }), url);
  const about = { cwd: folder, mcpServers: [] };
  await sdk.initialize({ protocolVersion: 1, clientInfo: { name, version: "1" }, clientCapabilities: {} });
  // The SDK waits for ever for answers that a lost stream would have brought.
  const orLost = (call) => Promise.race([call, lost.then(() => Promise.reject(new Error("the stream ended")))]);
  return {
    lost,
    newSession: async () => (await orLost(sdk.newSession(about))).sessionId,
    // The SDK does not open a loaded session's stream by itself: any request about the session makes it do so.
    load: async (sessionId) => {
      await orLost(sdk.loadSession({ sessionId, ...about }));
      await orLost(sdk.goose.toolsList_unstable({ sessionId }));
    },
    prompt: (sessionId, text) => orLost(sdk.prompt({ sessionId, prompt: [{ type: "text", text }] })),
  };
}

await takeTurns(name, folder, connect);
