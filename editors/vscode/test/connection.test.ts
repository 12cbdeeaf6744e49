import type { ChildProcessWithoutNullStreams } from "node:child_process";
import { EventEmitter } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { PassThrough } from "node:stream";
import { afterEach, describe, expect, it, vi } from "vitest";
import { WebSocketServer } from "ws";
import { describeError, type GooseError } from "../src/shared/errors";
import { AgentConnection, type AgentSettings, type ConnectionOptions, type ReadyAgent } from "../src/extension/agentConnection";
import type { VersionRun } from "../src/extension/version";
import { acpAddress } from "../src/extension/transport";
import { TestAgent, initialize, noHandlers } from "./doubles/agent";

const SETTINGS: AgentSettings = { binaryPath: "/x/gander", agent: "auto", args: [], env: {}, serverUrl: "" };

interface Overrides {
  readonly settings?: Partial<AgentSettings>;
  readonly run?: (path: string) => Promise<VersionRun>;
  readonly agents?: TestAgent[];
  readonly executables?: string[];
  readonly token?: string;
  readonly options?: Partial<ConnectionOptions>;
}

function harness({ settings = {}, run, agents = [new TestAgent(initialize)], executables = ["/x/gander"], token, options = {} }: Overrides = {}) {
  const seen: string[] = [];
  const spawned: { args: readonly string[]; env: NodeJS.ProcessEnv; child: EventEmitter }[] = [];
  const ready: ReadyAgent[] = [];
  const lost: GooseError[] = [];
  const connection = new AgentConnection({
    settings: () => ({ ...SETTINGS, ...settings }),
    token: () => Promise.resolve(token),
    cwd: () => "/project",
    environment: { platform: "linux", env: { PATH: "/bin" }, home: "/home/me", isExecutable: (path) => executables.includes(path) },
    clientInfo: { name: "n", title: "t", version: "v" },
    handlers: noHandlers,
    events: {
      status: (status, error) => void seen.push(error === undefined ? status : `${status} ${error._tag}`),
      version: ({ status }) => void seen.push(status),
      ready: (agent) => void ready.push(agent),
      lost: (error) => void lost.push(error),
      sessionUpdate: () => {},
      log: () => {},
    },
    spawn: ({ args, env }) => {
      const agent = agents[spawned.length] ?? new TestAgent(initialize);
      const child = Object.assign(new EventEmitter(), {
        stdin: agent.stdin, stdout: agent.stdout, stderr: new PassThrough(), exitCode: null, signalCode: null,
        kill: (signal: string) => setImmediate(() => child.emit("exit", null, signal)),
      });
      spawned.push({ args, env, child });
      setImmediate(() => child.emit("spawn"));
      return child as unknown as ChildProcessWithoutNullStreams;
    },
    runVersion: run ?? (() => Promise.resolve({ output: "gander 0.1.0" })),
    ...options,
  });
  return { connection, seen, spawned, ready, lost };
}

afterEach(() => vi.useRealTimers());

describe("AgentConnection", () => {
  it("finds, checks, starts and introduces itself", async () => {
    const { connection, seen, spawned, ready } = harness({ settings: { args: ["--with-builtin", "developer"], env: { GANDER_MODEL: "demo/demo" } } });
    await connection.connect();
    expect(seen).toEqual(["starting", "running", "compatible"]);
    expect(spawned).toMatchObject([{ args: ["acp", "--with-builtin", "developer"], env: { PATH: "/bin", GANDER_MODEL: "demo/demo" } }]);
    expect(ready).toMatchObject([{ name: "gander", info: { protocolVersion: 1 } }]);
    expect(connection.agent).toBe(ready[0]);
  });

  it("starts nothing when no binary is found", async () => {
    const { connection, seen, spawned } = harness({ settings: { binaryPath: "" }, executables: [] });
    await connection.connect();
    expect(seen).toEqual(["blocked_missing", "error BinaryNotFoundError"]);
    expect(spawned).toEqual([]);
  });

  it.each([
    [{ output: "goose 1.15.0" }, ["blocked_outdated", "error VersionMismatchError"]],
    [{ output: "no version" }, ["blocked_outdated", "error VersionMismatchError"]],
    [{ failure: "EACCES" }, ["blocked_missing", "error SubprocessSpawnError"]],
  ] as const)("starts nothing when --version gives %j", async (result, expected) => {
    const { connection, seen, spawned } = harness({ run: () => Promise.resolve(result) });
    await connection.connect();
    expect(seen).toEqual(expected);
    expect(spawned).toEqual([]);
  });

  it("ends the agent that runs when the next check blocks", async () => {
    const runs: VersionRun[] = [{ output: "gander 0.1.0" }, { output: "gander 0.0.1" }];
    const { connection, seen, spawned } = harness({ run: () => Promise.resolve(runs.shift() ?? { failure: "" }) });
    await connection.connect();
    await connection.connect();
    expect(seen).toEqual(["starting", "running", "compatible", "stopped", "blocked_outdated", "error VersionMismatchError"]);
    expect(spawned).toHaveLength(1);
    expect(connection.agent).toBeUndefined();
  });

  it("rejects what is pending when the agent crashes, and can be restarted", async () => {
    const { connection, seen, spawned, lost, ready } = harness({ agents: [new TestAgent(initialize), new TestAgent(initialize)] });
    await connection.connect();
    const pending = connection.agent?.client.request("session/prompt", { sessionId: "s", prompt: [] });
    spawned[0]?.child.emit("exit", 139, null);
    await expect(pending).rejects.toMatchObject({ code: -32000, message: "Client disposed" });
    expect(lost).toMatchObject([{ _tag: "SubprocessCrashError", code: 139 }]);
    expect(seen.at(-1)).toBe("error SubprocessCrashError");
    await connection.connect();
    expect(seen.slice(-3)).toEqual(["starting", "running", "compatible"]);
    expect(ready).toHaveLength(2);
  });

  it("says why an agent that ends before it introduced itself is gone", async () => {
    const { connection, seen, spawned, lost } = harness({ agents: [new TestAgent()] });
    const connecting = connection.connect();
    await vi.waitFor(() => expect(seen).toContain("compatible"), { timeout: 15_000 });
    spawned[0]?.child.emit("exit", 2, null);
    await connecting;
    expect(seen).toEqual(["starting", "running", "compatible", "error SubprocessCrashError"]);
    expect(lost).toEqual([]);
  });

  it("gives up on an agent that does not introduce itself in time", async () => {
    const { connection, seen } = harness({ agents: [new TestAgent()], options: { timeoutMs: 20 } });
    await connection.connect();
    expect(seen).toEqual(["starting", "running", "compatible", "stopped", "error JsonRpcTimeoutError"]);
  });

  it("lets the last of several quick restarts count", async () => {
    const { connection, ready, spawned } = harness({ agents: Array.from({ length: 3 }, () => new TestAgent(initialize)) });
    await Promise.all([connection.connect(), connection.connect(), connection.connect()]);
    expect(ready.at(-1)).toBe(connection.agent);
    const agent = connection.agent;
    expect(agent).toBeDefined();
    spawned.slice(0, -1).forEach(({ child }) => child.emit("exit", 1, null));
    expect(connection.agent).toBe(agent);
  });

  it("is not brought back by an attempt that was overtaken", async () => {
    let release: (run: VersionRun) => void = () => {};
    const run = vi.fn(() => new Promise<VersionRun>((resolve) => (release = resolve)));
    const { connection, spawned, seen } = harness({ run });
    const connecting = connection.connect();
    await connection.stop();
    release({ output: "gander 0.1.0" });
    await connecting;
    expect(spawned).toEqual([]);
    expect(seen.at(-1)).toBe("stopped");
  });
});

describe("attaching to a server", () => {
  /** Takes one header, and refuses two of them as gander does. */
  async function serve(expectedToken: string, header: "authorization" | "x-secret-key" = "authorization") {
    const expected = header === "authorization" ? `Bearer ${expectedToken}` : expectedToken;
    const other = header === "authorization" ? "x-secret-key" : "authorization";
    const http = createServer((_request, response) => response.writeHead(404).end());
    const sockets = new WebSocketServer({ noServer: true });
    http.on("upgrade", (request, socket, head) => {
      if (request.headers[header] !== expected || request.headers[other] !== undefined || request.url !== "/acp") {
        socket.end("HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n");
        return;
      }
      sockets.handleUpgrade(request, socket, head, (peer) => {
        peer.on("message", (data) => {
          const { id, method } = JSON.parse(String(data)) as { id: number; method: string };
          if (method === "initialize") peer.send(JSON.stringify({ jsonrpc: "2.0", id, result: initialize.initialize() }));
        });
      });
    });
    await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${(http.address() as AddressInfo).port}`;
    const close = () => {
      sockets.clients.forEach((each) => each.terminate());
      http.close();
    };
    return { url, sockets, close };
  }

  it("speaks over a WebSocket, with the token in a header, and starts no process", async () => {
    const server = await serve("secret");
    const { connection, seen, spawned, ready, lost } = harness({ settings: { serverUrl: server.url }, token: "secret" });
    await connection.connect();
    expect(seen).toEqual(["starting", "running"]);
    expect(ready).toMatchObject([{ name: server.url }]);
    expect(spawned).toEqual([]);
    server.sockets.clients.forEach((client) => client.close());
    await vi.waitFor(() => expect(lost).toHaveLength(1), { timeout: 15_000 });
    expect(seen.at(-1)).toBe("error SubprocessSpawnError");
    server.close();
  });

  it("gives the token as goose wants it where a bearer token is refused", async () => {
    const server = await serve("secret", "x-secret-key");
    const { connection, ready } = harness({ settings: { serverUrl: server.url }, token: "secret" });
    await connection.connect();
    expect(ready).toHaveLength(1);
    await connection.stop();
    server.close();
  });

  it("says when the token is refused", async () => {
    const server = await serve("secret");
    const errors: string[] = [];
    const { connection } = harness({ settings: { serverUrl: server.url }, token: "wrong" });
    const events = (connection as unknown as { options: ConnectionOptions }).options.events;
    vi.spyOn(events, "status").mockImplementation((_status, error) => void (error && errors.push(describeError(error))));
    await connection.connect();
    expect(errors).toEqual([`cannot start ${server.url}: the server refuses the token: 401`]);
    server.close();
  });

  it.each([
    ["http://127.0.0.1:4747", "ws://127.0.0.1:4747/acp"], ["https://host/", "wss://host/acp"], ["ws://host/other", "ws://host/other"], ["http://h/acp?dialect=standard", "ws://h/acp?dialect=standard"],
  ])("knows the address of %s", (url, address) => expect(acpAddress(url)).toBe(address));
  it.each(["file:///x", "http://user:password@host", "nonsense"])("does not attach to %s", (url) => expect(() => acpAddress(url)).toThrow());
});
