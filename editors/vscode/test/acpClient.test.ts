import { afterEach, describe, expect, it, vi } from "vitest";
import type { SessionNotification } from "@agentclientprotocol/sdk";
import { AcpClient, type ClientHandlers } from "../src/extension/acpClient";
import { encodeMessage } from "../src/extension/ndjson";
import { TestAgent, initialize, noHandlers } from "./doubles/agent";

function connect(agent: TestAgent, handlers: Partial<ClientHandlers> = {}, timeoutMs?: number) {
  const updates: SessionNotification[] = [];
  const log: string[] = [];
  const closed: string[] = [];
  const events = { sessionUpdate: (update: SessionNotification) => void updates.push(update), log: (text: string) => void log.push(text), closed: (reason: string) => void closed.push(reason) };
  const client = new AcpClient(agent.transport, { ...noHandlers, ...handlers }, events, timeoutMs);
  return { client, updates, log, closed };
}

afterEach(() => vi.useRealTimers());

describe("AcpClient", () => {
  it("introduces itself with everything it can do", async () => {
    const agent = new TestAgent(initialize);
    const { client } = connect(agent);
    const info = await client.initialize({ name: "vscode-gander", title: "Gander", version: "0.1.0" });
    expect(info.agentCapabilities?.loadSession).toBe(true);
    expect(agent.received[0]).toMatchObject({
      jsonrpc: "2.0", method: "initialize",
      params: { protocolVersion: 1, clientInfo: { name: "vscode-gander", version: "0.1.0" }, clientCapabilities: { fs: { readTextFile: true, writeTextFile: true }, terminal: true, elicitation: { form: {}, url: {} } } },
    });
  });

  it("finds the answer of each request, in whatever order they come", async () => {
    const agent = new TestAgent();
    const { client } = connect(agent);
    const first = client.request("session/new", { cwd: "/a", mcpServers: [] });
    const second = client.request("session/new", { cwd: "/b", mcpServers: [] });
    const [a, b] = [await agent.next(({ params }) => params?.["cwd"] === "/a"), await agent.next(({ params }) => params?.["cwd"] === "/b")];
    agent.respond(b.id, { sessionId: "b" });
    agent.respond(a.id, { sessionId: "a" });
    expect(await Promise.all([first, second])).toMatchObject([{ sessionId: "a" }, { sessionId: "b" }]);
  });

  it("tags what the agent answers as an error", async () => {
    const agent = new TestAgent();
    const { client } = connect(agent);
    const failing = client.request("session/new", { cwd: "x", mcpServers: [] });
    agent.fail((await agent.called("session/new")).id, -32602, "cwd must be absolute", "x");
    await expect(failing).rejects.toMatchObject({ _tag: "JsonRpcError", code: -32602, data: "x" });
  });

  it("waits 30 seconds for everything but a prompt", async () => {
    vi.useFakeTimers();
    const agent = new TestAgent();
    const { client } = connect(agent);
    const outcome = client.request("session/load", { sessionId: "s", cwd: "/", mcpServers: [] }).catch((error: unknown) => error);
    const prompt = vi.fn();
    client.request("session/prompt", { sessionId: "s", prompt: [] }).then(prompt, prompt);
    await vi.advanceTimersByTimeAsync(29_999);
    expect(await Promise.race([outcome, Promise.resolve("pending")])).toBe("pending");
    await vi.advanceTimersByTimeAsync(2);
    expect(await outcome).toEqual({ _tag: "JsonRpcTimeoutError", message: "no answer to session/load within 30 s", method: "session/load", timeoutMs: 30_000 });
    await vi.advanceTimersByTimeAsync(24 * 3600_000);
    expect(prompt).not.toHaveBeenCalled();
  });

  it("tells the agent that nobody waits any more, and is not confused by a late answer", async () => {
    vi.useFakeTimers();
    const agent = new TestAgent();
    const { client } = connect(agent, {}, 50);
    const outcome = client.request("session/new", { cwd: "/", mcpServers: [] }).catch((error: unknown) => error);
    const { id } = await agent.called("session/new");
    await vi.advanceTimersByTimeAsync(60);
    expect(await outcome).toHaveProperty("_tag", "JsonRpcTimeoutError");
    expect(await agent.called("$/cancel_request")).toMatchObject({ params: { requestId: id } });
    agent.respond(id, { sessionId: "late" });
    const next = client.request("session/new", { cwd: "/2", mcpServers: [] });
    const second = await agent.next(({ params }) => params?.["cwd"] === "/2");
    agent.respond(second.id, { sessionId: "in time" });
    expect(await next).toMatchObject({ sessionId: "in time" });
  });

  it("rejects everything that is pending with -32000 when it is disposed", async () => {
    const agent = new TestAgent();
    const { client, closed } = connect(agent);
    const pending = [client.request("session/new", { cwd: "/", mcpServers: [] }), client.request("session/prompt", { sessionId: "s", prompt: [] })];
    client.dispose();
    client.dispose();
    for (const each of pending) await expect(each).rejects.toEqual({ _tag: "JsonRpcError", code: -32000, message: "Client disposed" });
    await expect(client.request("session/list", {})).rejects.toMatchObject({ code: -32000 });
    expect(closed).toEqual([]);
  });

  it("rejects at once when the agent's input is broken", async () => {
    const agent = new TestAgent();
    const { client } = connect(agent);
    agent.stdin.destroy(new Error("EPIPE"));
    await expect(client.request("session/prompt", { sessionId: "s", prompt: [] })).rejects.toMatchObject({ _tag: "JsonRpcError" });
  });

  it("rejects what is pending when the agent's output ends, and says so", async () => {
    const agent = new TestAgent();
    const { client, closed } = connect(agent);
    const pending = client.request("session/prompt", { sessionId: "s", prompt: [] });
    await agent.called("session/prompt");
    agent.stdout.end();
    await expect(pending).rejects.toMatchObject({ code: -32000 });
    expect(closed).toEqual(["the agent closed its output"]);
  });

  it("logs malformed lines and goes on", async () => {
    const agent = new TestAgent(initialize);
    const { client, log } = connect(agent);
    agent.stdout.write("Welcome to goose!\n{\"jsonrpc\":\n[]\n");
    await client.initialize({ name: "n", title: "t", version: "v" });
    expect(log.map((line) => line.split(":")[0])).toEqual(Array(3).fill("the agent wrote a line that is no JSON-RPC message"));
    expect(agent.received).toHaveLength(1);
  });

  it("delivers updates before the answer that follows them, whatever the pieces", async () => {
    const burst = Array.from({ length: 20 }, (_, index) => encodeMessage({ jsonrpc: "2.0", method: "session/update", params: { sessionId: "s", update: { sessionUpdate: "agent_message_chunk", content: { type: "text", text: `${index}` } } } })).join("");
    for (const size of [1, 7, 100_000]) {
      const agent = new TestAgent();
      const { client, updates } = connect(agent);
      let seen = -1;
      const loaded = client.request("session/load", { sessionId: "s", cwd: "/", mcpServers: [] }).then(() => (seen = updates.length));
      const { id } = await agent.called("session/load");
      const all = Buffer.from(burst + encodeMessage({ jsonrpc: "2.0", id, result: {} }));
      for (let at = 0; at < all.length; at += size) agent.stdout.write(all.subarray(at, at + size));
      await loaded;
      expect(seen).toBe(20);
      expect(updates.map(({ update }) => update.sessionUpdate === "agent_message_chunk" && update.content.type === "text" && update.content.text)).toEqual(Array.from({ length: 20 }, (_, index) => `${index}`));
    }
  });

  it("takes kinds of updates that nobody knows yet", async () => {
    const agent = new TestAgent(initialize);
    const { client, updates } = connect(agent);
    agent.update("s", { sessionUpdate: "from_the_future", x: 1 });
    agent.send({ jsonrpc: "2.0", method: "_goose/unstable/thing", params: {} });
    agent.send({ jsonrpc: "2.0", method: "session/update", params: { nonsense: true } });
    await client.initialize({ name: "n", title: "t", version: "v" });
    expect(updates).toEqual([{ sessionId: "s", update: { sessionUpdate: "from_the_future", x: 1 } }]);
  });

  it("answers what the agent asks, and refuses what it does not know", async () => {
    const agent = new TestAgent();
    connect(agent, { readTextFile: async ({ path }) => ({ content: `content of ${path}` }), writeTextFile: async () => {} });
    expect(await agent.request("fs/read_text_file", { sessionId: "s", path: "/a" }).response).toMatchObject({ result: { content: "content of /a" } });
    expect(await agent.request("fs/write_text_file", { sessionId: "s", path: "/a", content: "" }).response).toMatchObject({ result: {} });
    expect(await agent.request("no/such_method", {}).response).toMatchObject({ error: { code: -32601 } });
    expect(await agent.request("fs/read_text_file", { path: 3 }).response).toMatchObject({ error: { code: -32602 } });
  });

  it("withdraws a question that was answered elsewhere", async () => {
    const agent = new TestAgent();
    const withdrawn = vi.fn();
    connect(agent, {
      requestPermission: (_request, signal) => new Promise((resolve) => signal.addEventListener("abort", () => {
        withdrawn();
        resolve({ outcome: { outcome: "cancelled" } });
      })),
    });
    const asked = agent.request("session/request_permission", { sessionId: "s", toolCall: { toolCallId: "t" }, options: [] });
    agent.send({ jsonrpc: "2.0", method: "$/cancel_request", params: { requestId: asked.id } });
    expect(await asked.response).toMatchObject({ id: asked.id });
    expect(withdrawn).toHaveBeenCalledOnce();
  });

  it("cancels a turn by a notification", async () => {
    const agent = new TestAgent();
    const { client } = connect(agent);
    client.cancel("s");
    const cancelled = await agent.called("session/cancel");
    expect(cancelled).toMatchObject({ params: { sessionId: "s" } });
    expect(cancelled).not.toHaveProperty("id");
  });
});
