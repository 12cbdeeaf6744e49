// Drives gander with the TypeScript SDK of the Agent Client Protocol, over stdio, HTTP and WebSocket.
import { client, methods, ndJsonStream } from "@agentclientprotocol/sdk";
import { createHttpStream } from "@agentclientprotocol/sdk/experimental/http-client";
import { createWebSocketStream } from "@agentclientprotocol/sdk/experimental/ws-client";
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import { WebSocket } from "ws";

const gander = process.argv[2];
const root = mkdtempSync(join(tmpdir(), "gander-typescript-"));
const [data, work] = ["data", "work"].map((name) => join(root, name));
[data, work].forEach((path) => mkdirSync(path));
const env = { PATH: process.env.PATH, HOME: root, GANDER_MODEL: "demo/demo", GANDER_SERVER_ROOTS: JSON.stringify([work]) };
const PATIENCE = 60_000;

const text = (text) => [{ type: "text", text }];
const script = (...calls) => text(`[[script:${JSON.stringify(calls)}]]`);
const touch = (file) => script([{ tool: "shell", args: { command: `touch ${file}` } }], [{ text: "All done." }]);

function demand(condition, why) {
  if (!condition) throw new Error(JSON.stringify(why) ?? "no");
}

/** One server for all: `gander acp` attaches to it. */
async function serve() {
  const port = await new Promise((resolve) => {
    const probe = createServer().listen(0, "127.0.0.1", () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });
  const server = spawn(gander, ["serve", "--listen", `127.0.0.1:${port}`, "--data", data], { env, stdio: "ignore" });
  for (let tries = 0; ; tries += 1) {
    const healthy = await fetch(`http://127.0.0.1:${port}/health`).then((answer) => answer.ok, () => false);
    if (healthy) break;
    demand(tries < 600, "the server is not healthy");
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  const quiet = { env, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] };
  const token = (...more) => execFileSync(gander, ["token", ...more, "--data", data], quiet).trim();
  const bearer = (token) => ({ Authorization: `Bearer ${token}` });
  // Over the network comes somebody who was given a token to prompt and to answer with; the owner's is for the owner.
  const [headers, owner] = [bearer(token("add", "editor", "--scopes", "prompt,approve")), bearer(token())];
  return { server, address: `127.0.0.1:${port}`, headers, owner };
}

const { server, address, headers, owner } = await serve();

const transports = {
  stdio() {
    const agent = spawn(gander, ["acp", "--data", data], { env, stdio: ["pipe", "pipe", "inherit"] });
    const stream = ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout));
    return { stream, end: () => agent.kill() };
  },
  http: () => ({ stream: createHttpStream(`http://${address}/acp`, { headers }), end: () => {} }),
  websocket: () => ({ stream: createWebSocketStream(`ws://${address}/acp`, { headers, WebSocket }), end: () => {} }),
};
/** The owner's second client, which finds what the first one made over stdio. */
const owners = () => ({ stream: createWebSocketStream(`ws://${address}/acp`, { headers: owner, WebSocket }), end: () => {} });

/** An editor: remembers what it is told, answers permissions with the wanted kind, lends its files if it should. */
async function editor(transport, options, work) {
  const seen = { updates: [], asked: [], read: [] };
  let changed = () => {};
  const app = client({ name: "interop" })
    .onNotification(methods.client.session.update, ({ params }) => {
      seen.updates.push(params.update);
      changed();
    })
    .onRequest(methods.client.session.requestPermission, ({ params }) => {
      seen.asked.push(params.toolCall);
      changed();
      const option = params.options.find(({ kind }) => kind === (options.wanted ?? "allow_once"));
      return { outcome: { outcome: "selected", optionId: option.optionId } };
    })
    .onRequest(methods.client.fs.readTextFile, ({ params }) => {
      seen.read.push(params.path);
      return { content: "unsaved text" };
    });
  seen.text = (kind = "agent_message_chunk") =>
    seen.updates.filter((update) => update.sessionUpdate === kind).map(({ content }) => content.text).join("");
  seen.until = async (done) => {
    while (!done()) await new Promise((resolve) => (changed = resolve));
  };
  const { stream, end } = (transports[transport] ?? owners)();
  try {
    await app.connectWith(stream, async (agent) => {
      const hello = await agent.request(methods.agent.initialize, {
        protocolVersion: 1,
        clientInfo: { name: "interop", version: "1" },
        clientCapabilities: { fs: { readTextFile: options.files ?? false, writeTextFile: false }, terminal: false },
      });
      demand(hello.protocolVersion === 1 && hello.agentInfo.name === "gander", hello);
      await work(agent, seen);
    });
  } finally {
    end();
  }
}

const open = async (agent) => (await agent.request(methods.agent.session.new, { cwd: work, mcpServers: [] })).sessionId;
const say = (agent, sessionId, prompt) => agent.request(methods.agent.session.prompt, { sessionId, prompt });

async function refusal(call) {
  try {
    return { none: await call };
  } catch (error) {
    return error.code;
  }
}

const cases = {
  prompt: (transport) =>
    editor(transport, {}, async (agent, seen) => {
      const turn = await say(agent, await open(agent), script([{ thought: "hmm" }, { text: "hello there", chunks: 4 }]));
      demand(turn.stopReason === "end_turn", turn);
      demand(seen.text("agent_thought_chunk") === "hmm" && seen.text() === "hello there", seen.updates);
    }),
  permission_allowed: (transport) =>
    editor(transport, {}, async (agent, seen) => {
      const file = `allowed-${transport}`;
      const turn = await say(agent, await open(agent), touch(file));
      demand(turn.stopReason === "end_turn" && seen.text() === "All done.", seen.updates);
      demand(seen.asked.length === 1 && existsSync(join(work, file)), seen.asked);
    }),
  permission_rejected: (transport) =>
    editor(transport, { wanted: "reject_once" }, async (agent, seen) => {
      const file = `rejected-${transport}`;
      const turn = await say(agent, await open(agent), touch(file));
      demand(turn.stopReason === "end_turn" && seen.asked.length === 1, seen.updates);
      demand(!existsSync(join(work, file)), "the rejected command ran");
    }),
  cancel: (transport) =>
    editor(transport, {}, async (agent, seen) => {
      const sessionId = await open(agent);
      const turn = say(agent, sessionId, script([{ text: "~", repeat: 100000, delay_ms: 2 }]));
      await seen.until(seen.text);
      await agent.notify(methods.agent.session.cancel, { sessionId });
      demand((await turn).stopReason === "cancelled", await turn);
      demand((await say(agent, sessionId, script([{ text: "still here" }]))).stopReason === "end_turn", "no second turn");
      demand(seen.text().endsWith("still here"), seen.updates.at(-1));
    }),
  request_taken_back: (transport) =>
    editor(transport, {}, async (agent, seen) => {
      const sessionId = await open(agent);
      const cancel = new AbortController();
      const prompt = script([{ text: "~", repeat: 100000, delay_ms: 2 }]);
      const options = { cancellationSignal: cancel.signal };
      const turn = agent.request(methods.agent.session.prompt, { sessionId, prompt }, options);
      await seen.until(seen.text);
      cancel.abort();
      const end = await turn.then((turn) => turn.stopReason, (error) => error.code);
      demand(end === "cancelled" || end === -32800, end);
    }),
  load_replays: async (transport) => {
    let sessionId;
    await editor(transport, {}, async (agent) => {
      sessionId = await open(agent);
      await say(agent, sessionId, script([{ text: "remember me", chunks: 5 }]));
    });
    await editor(transport, {}, async (agent, seen) => {
      await agent.request(methods.agent.session.load, { sessionId, cwd: work, mcpServers: [] });
      await seen.until(() => seen.text() === "remember me");
      demand(seen.updates.some((update) => update.sessionUpdate === "user_message_chunk"), seen.updates);
      const { sessions } = await agent.request(methods.agent.session.list, { cwd: work });
      demand(sessions.some((session) => session.sessionId === sessionId), sessions);
    });
  },
  two_clients_one_session: (transport) =>
    editor(transport, {}, async (agent, seen) => {
      const sessionId = await open(agent);
      await editor(transport === "stdio" ? "owner's websocket" : "websocket", {}, async (other, also) => {
        await other.request(methods.agent.session.load, { sessionId, cwd: work, mcpServers: [] });
        await say(agent, sessionId, script([{ text: "for both", chunks: 3 }]));
        await also.until(() => also.text() === "for both");
      });
      demand(seen.text() === "for both", seen.updates);
    }),
  editor_lends_files: (transport) =>
    editor(transport, { files: true }, async (agent, seen) => {
      const calls = script([{ tool: "read", args: { path: "unsaved.txt" } }], [{ text: "read" }]);
      await say(agent, await open(agent), calls);
      demand(seen.read.length === 1 && seen.read[0] === join(work, "unsaved.txt"), seen);
    }),
  modes_and_options: (transport) =>
    editor(transport, {}, async (agent, seen) => {
      const made = await agent.request(methods.agent.session.new, { cwd: work, mcpServers: [] });
      const policy = made.configOptions.find(({ id }) => id === "policy");
      demand(policy && policy.options.some(({ value }) => value === "auto"), made);
      // A person who wants not to be asked any more chooses that in the editor's menu, for this session alone.
      const set = { sessionId: made.sessionId, configId: "policy", value: "auto" };
      const { configOptions } = await agent.request(methods.agent.session.setConfigOption, set);
      demand(configOptions.find(({ id }) => id === "policy").currentValue === "auto", configOptions);
      await say(agent, made.sessionId, touch(`auto-${transport}`));
      demand(seen.asked.length === 0 && existsSync(join(work, `auto-${transport}`)), seen.asked);
    }),
  errors_are_typed: (transport) =>
    editor(transport, {}, async (agent) => {
      const nowhere = "0199aaaa-0000-7000-8000-000000000000";
      const codes = [
        await refusal(agent.request(methods.agent.session.new, { cwd: "relative", mcpServers: [] })),
        await refusal(agent.request("_no_such", {})),
        await refusal(say(agent, nowhere, text("hi"))),
      ];
      demand(codes[0] === -32602 && codes[1] === -32601, codes);
      // Over HTTP an unknown session is a 404 before there is a message; the SDK then closes its transport.
      demand(transport === "http" ? !codes[2]?.none : codes[2] === -32002, codes);
    }),
  close_and_delete: (transport) =>
    editor(transport, {}, async (agent) => {
      const sessionId = await open(agent);
      await say(agent, sessionId, script([{ text: "soon gone" }]));
      await agent.request(methods.agent.session.close, { sessionId });
      await agent.request(methods.agent.session.delete, { sessionId });
      const { sessions } = await agent.request(methods.agent.session.list, {});
      demand(!sessions.some((session) => session.sessionId === sessionId), sessions);
    }),
};

for (const transport of Object.keys(transports)) {
  for (const [name, run] of Object.entries(cases)) {
    let timer;
    const late = new Promise((_, fail) => (timer = setTimeout(() => fail(new Error("took too long")), PATIENCE)));
    try {
      await Promise.race([run(transport), late]);
      console.log(`pass ${transport}_${name}`);
    } catch (error) {
      console.log(`fail ${transport}_${name} ${String(error?.message ?? error).replaceAll("\n", " ").slice(0, 600)}`);
    } finally {
      clearTimeout(timer);
    }
  }
}
const ended = new Promise((resolve) => server.on("exit", resolve));
server.kill();
await ended;
rmSync(root, { recursive: true, force: true, maxRetries: 3 });
process.exit(0);
