import { mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { SessionUpdate, ToolCallUpdate } from "@agentclientprotocol/sdk";
import { describe, expect, it, vi } from "vitest";
import { confine, isInside } from "../src/extension/confine";
import { HistoryReplay } from "../src/extension/history";
import { type OpenElicitation, type OpenPermission, Questions } from "../src/extension/questions";
import { OutputTail, Terminals } from "../src/extension/terminals";
import { TokenBatch } from "../src/extension/tokenBatch";
import { MAX_TOOL_CALLS, ToolCalls, fileChange } from "../src/extension/toolCalls";
import { MAX_QUEUED, WebviewLink } from "../src/extension/webviewLink";
import { message } from "../src/shared/messages";

const chunk = (kind: "user" | "agent", text: string, messageId?: string) =>
  ({ sessionUpdate: `${kind}_message_chunk`, content: { type: "text", text }, ...(messageId && { messageId }) }) as SessionUpdate;

describe("HistoryReplay", () => {
  const replay = (...updates: SessionUpdate[]) => {
    let id = 0;
    const history = new HistoryReplay({ newId: () => `n${++id}`, now: () => "now" });
    return { all: [...updates.flatMap((update) => history.push(update)), ...history.end()], count: history.messageCount };
  };

  it("joins the chunks of a message and tells roles apart", () => {
    const { all, count } = replay(chunk("user", "Hel"), chunk("user", "lo"), chunk("agent", "a", "1"), chunk("agent", "b", "1"), chunk("agent", "c", "2"));
    expect(all).toEqual([
      { message: { id: "n1", role: "user", content: "Hello", timestamp: "now", status: "complete" } },
      { message: { id: "1", role: "assistant", content: "ab", timestamp: "now", status: "complete" } },
      { message: { id: "2", role: "assistant", content: "c", timestamp: "now", status: "complete" } },
    ]);
    expect(count).toBe(3);
  });

  it("reads links and embedded files as context", () => {
    const { all } = replay(
      { sessionUpdate: "user_message_chunk", content: { type: "resource_link", uri: "file:///a%20b/x.ts", name: "x.ts" } },
      { sessionUpdate: "agent_message_chunk", content: { type: "resource", resource: { uri: "file:///y.ts", text: "body" } } },
      { sessionUpdate: "agent_message_chunk", messageId: "z", content: { type: "resource", resource: { uri: "mem://z/w", blob: "AA" } } },
    );
    expect(all).toMatchObject([
      { message: { role: "user", content: "", context: [{ filePath: "/a b/x.ts", fileName: "x.ts" }] } },
      { message: { role: "assistant", context: [{ filePath: "/y.ts", fileName: "y.ts", content: "body" }] } },
      { message: { context: [{ filePath: "mem://z/w", fileName: "w" }] } },
    ]);
  });

  it("keeps everything else in its place", () => {
    const tool = { sessionUpdate: "tool_call", toolCallId: "t", title: "T" } as SessionUpdate;
    const picture = { sessionUpdate: "agent_message_chunk", content: { type: "image", data: "AA", mimeType: "image/png" } } as SessionUpdate;
    const { all } = replay(chunk("agent", "before", "1"), tool, chunk("agent", "after", "1"), picture);
    expect(all.map((each) => ("message" in each ? each.message.content : each.update.sessionUpdate))).toEqual(["before", "tool_call", "after", "agent_message_chunk"]);
  });
});

describe("TokenBatch", () => {
  it("joins what arrives together, and keeps the order", () => {
    const sent: string[] = [];
    const scheduled: (() => void)[] = [];
    const batch = new TokenBatch((id, token) => void sent.push(`${id}:${token}`), (run) => void scheduled.push(run));
    batch.push("a", "1");
    batch.push("a", "2");
    expect(sent).toEqual([]);
    scheduled.shift()?.();
    batch.push("a", "3");
    batch.push("b", "4");
    batch.flush();
    batch.flush();
    scheduled.splice(0).forEach((run) => run());
    expect(sent).toEqual(["a:12", "a:3", "b:4"]);
  });
});

describe("Questions", () => {
  const permission = { sessionId: "s", toolCall: { toolCallId: "t" }, options: [{ optionId: "yes", name: "Yes", kind: "allow_once" as const }] };
  const elicitation = { sessionId: "s", message: "m", mode: "form" as const, requestedSchema: { type: "object" as const } };
  function harness() {
    const seen: string[] = [];
    let id = 0;
    const questions = new Questions({
      permissionAsked: ({ requestId }: OpenPermission) => void seen.push(`asked ${requestId}`),
      permissionSettled: ({ requestId }, optionId) => void seen.push(`settled ${requestId} ${optionId}`),
      elicitationAsked: ({ requestId }: OpenElicitation) => void seen.push(`asked ${requestId}`),
      elicitationSettled: ({ requestId }) => void seen.push(`settled ${requestId}`),
    }, () => `q${++id}`);
    return { questions, seen, never: new AbortController().signal };
  }

  it("takes the first answer, once", async () => {
    const { questions, seen, never } = harness();
    const asked = questions.askPermission(permission, never);
    expect(questions.permissions).toHaveLength(1);
    expect(questions.answerPermission("q1", "no such option")).toBe(false);
    expect(questions.answerPermission("q1", "yes", { plan: 1 })).toBe(true);
    expect(questions.answerPermission("q1", "yes")).toBe(false);
    expect(await asked).toEqual({ outcome: { outcome: "selected", optionId: "yes" }, _meta: { plan: 1 } });
    expect(seen).toEqual(["asked q1", "settled q1 yes"]);
  });

  it("settles without a choice: dismissed, withdrawn, cancelled, gone", async () => {
    const { questions, never } = harness();
    const controller = new AbortController();
    const all = [
      questions.askPermission(permission, never), questions.askPermission(permission, controller.signal),
      questions.askPermission({ ...permission, sessionId: "other" }, never), questions.askPermission(permission, never),
    ];
    questions.answerPermission("q1", null);
    controller.abort();
    questions.cancelSession("s");
    expect(questions.permissions.map(({ request }) => request.sessionId)).toEqual(["other"]);
    questions.cancelAll();
    for (const each of all) expect(await each).toEqual({ outcome: { outcome: "cancelled" } });
    expect(await questions.askPermission(permission, AbortSignal.abort())).toEqual({ outcome: { outcome: "cancelled" } });
  });

  it("asks forms, too", async () => {
    const { questions, seen, never } = harness();
    const [first, second] = [questions.askElicitation(elicitation, never), questions.askElicitation(elicitation, never)];
    expect(questions.elicitations).toHaveLength(2);
    expect(questions.answerElicitation("q1", { action: "accept", content: { a: "b" } })).toBe(true);
    expect(questions.answerElicitation("q1", { action: "decline" })).toBe(false);
    questions.cancelSession("s");
    expect(await first).toEqual({ action: "accept", content: { a: "b" } });
    expect(await second).toEqual({ action: "cancel" });
    expect(seen).toEqual(["asked q1", "asked q2", "settled q1", "settled q2"]);
    expect(await questions.askElicitation(elicitation, AbortSignal.abort())).toEqual({ action: "cancel" });
  });
});

describe("WebviewLink", () => {
  const ready = { type: "WEBVIEW_READY", payload: { version: "2.0.0" } };
  const token = (text: string) => message("STREAM_TOKEN", { messageId: "m", token: text, done: false });
  function harness() {
    const received: string[] = [];
    const readies: boolean[] = [];
    const log: string[] = [];
    const link = new WebviewLink({ message: ({ type }) => void received.push(type), ready: (recreated) => void readies.push(recreated), log: (text) => void log.push(text) });
    const port = () => {
      const posted: { type: string; payload: Record<string, unknown> }[] = [];
      return { posted, postMessage: (sent: unknown) => (posted.push(sent as (typeof posted)[number]), Promise.resolve(true)) };
    };
    return { link, received, readies, log, port };
  }

  it("queues until the webview is ready, in order, with status and version last", async () => {
    const { link, port, readies } = harness();
    const first = port();
    link.post(message("STATUS_UPDATE", { status: "starting" }));
    link.attach(first);
    link.post(token("a"));
    link.post(token("b"));
    link.post(message("STATUS_UPDATE", { status: "running" }));
    link.post(message("GENERATION_COMPLETE", { messageId: "m" }));
    expect(first.posted).toEqual([]);
    const waiting = link.waitForReady();
    link.receive(first, ready);
    await waiting;
    await link.waitForReady();
    expect(first.posted.map(({ type, payload }) => `${type} ${String(payload["token"] ?? payload["status"] ?? "")}`)).toEqual(["STREAM_TOKEN ab", "GENERATION_COMPLETE ", "STATUS_UPDATE running"]);
    link.post(token("c"));
    expect(first.posted).toHaveLength(4);
    expect(readies).toEqual([false]);
  });

  it("starts over with a webview that is created again, and tells it status and version", () => {
    const { link, port, readies } = harness();
    const [first, second] = [port(), port()];
    link.attach(first);
    link.receive(first, ready);
    link.post(message("STATUS_UPDATE", { status: "running" }));
    link.post(message("VERSION_STATUS", { status: "compatible", minimumVersion: "1.16.0" }));
    link.attach(second);
    link.detach(first);
    expect(link.isReady).toBe(false);
    link.post(token("meanwhile"));
    link.receive(second, ready);
    expect(second.posted.map(({ type }) => type)).toEqual(["STREAM_TOKEN", "STATUS_UPDATE", "VERSION_STATUS"]);
    expect(readies).toEqual([false, true]);
    link.detach(second);
    link.post(token("later"));
    expect(second.posted).toHaveLength(3);
  });

  it("does not hear webviews that are gone, nor nonsense", () => {
    const { link, port, received, log } = harness();
    const [first, second] = [port(), port()];
    link.attach(first);
    link.attach(second);
    link.receive(first, ready);
    expect(link.isReady).toBe(false);
    link.receive(second, ready);
    link.receive(second, { type: "STREAM_TOKEN", payload: {} });
    link.receive(second, { type: "GET_STATUS", payload: {} });
    expect(received).toEqual(["GET_STATUS"]);
    expect(log).toHaveLength(1);
  });

  it("does not keep messages without end for a webview that nobody opens", () => {
    const { link, port } = harness();
    for (let index = 0; index < MAX_QUEUED + 10; index += 1) link.post(message("GENERATION_COMPLETE", { messageId: `${index}` }));
    const first = port();
    link.attach(first);
    link.receive(first, ready);
    expect(first.posted.length).toBeLessThan(MAX_QUEUED);
    expect([link.takeOverflow(), link.takeOverflow()]).toEqual([true, false]);
  });
});

describe("confine", () => {
  const root = mkdtempSync(join(tmpdir(), "confine-"));
  const open = join(root, "open");
  mkdirSync(join(open, "sub"), { recursive: true });
  mkdirSync(join(root, "secret"));
  writeFileSync(join(root, "secret", "key"), "x");
  symlinkSync(join(root, "secret"), join(open, "link"));
  symlinkSync(join(root, "nowhere"), join(open, "dangling"));
  symlinkSync(open, join(root, "alias"));

  it.each(["a.txt", "sub/new/deep.txt", "sub/../a.txt", ""])("lets %j through", async (path) => expect(await confine(join(open, path), [open])).toBe(join(open, path)));
  it("follows the link of a root", async () => expect(await confine(join(open, "a"), [join(root, "alias")])).toBe(join(open, "a")));
  it.each(["../secret/key", "link/key", "link/new", "dangling", "dangling/x", "../openx"])("stops %s", async (path) => expect(confine(join(open, path), [open])).rejects.toThrow());
  it("wants an absolute path and a root", async () => {
    await expect(confine("a.txt", [open])).rejects.toThrow("absolute");
    await expect(confine(join(open, "a"), [])).rejects.toThrow("outside");
  });
  it("tells a folder from one whose name begins the same", () => {
    expect(isInside("/a/b", "/a")).toBe(true);
    expect(isInside("/ab", "/a")).toBe(false);
    expect(isInside("/a/..b", "/a")).toBe(true);
  });
});

describe("Terminals", () => {
  function harness() {
    const screen = { write: vi.fn(), exited: vi.fn(), show: vi.fn() };
    const kills: (() => void)[] = [];
    let id = 0;
    const terminals = new Terminals((_title, kill) => (kills.push(kill), screen), () => `t${++id}`);
    return { terminals, screen, kills };
  }
  const node = (script: string) => ({ sessionId: "s", command: process.execPath, args: ["-e", script] });

  it("runs a command, keeps its output and says how it ended", async () => {
    const { terminals, screen } = harness();
    const id = terminals.create({ ...node("process.stdout.write(process.env.X + ' ü'); process.stderr.write('!'); process.exitCode = 3"), env: [{ name: "X", value: "hello" }] }, tmpdir());
    expect(await terminals.waitForExit(id)).toEqual({ exitCode: 3, signal: null });
    expect(terminals.output(id)).toMatchObject({ output: expect.stringContaining("hello ü") as string, truncated: false, exitStatus: { exitCode: 3 } });
    expect(screen.write).toHaveBeenCalled();
    expect(screen.exited).toHaveBeenCalledWith({ exitCode: 3, signal: null });
    terminals.show(id);
    expect(screen.show).toHaveBeenCalledOnce();
    terminals.release(id);
    expect(() => terminals.output(id)).toThrow("no such terminal: t1");
  });

  it("takes a command line as one word", async () => {
    const { terminals } = harness();
    const id = terminals.create({ sessionId: "s", command: "echo one && echo two" }, tmpdir());
    await terminals.waitForExit(id);
    expect(terminals.output(id).output.trim().split(/\s+/)).toEqual(["one", "two"]);
  });

  it("kills the command with everything that it started", async () => {
    const { terminals, kills } = harness();
    const script = "require('child_process').spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'inherit' }); setInterval(() => {}, 1000); console.log('up')";
    const id = terminals.create(node(script), tmpdir());
    await vi.waitFor(() => expect(terminals.output(id).output).toContain("up"), { timeout: 15_000 });
    expect(terminals.output(id)).not.toHaveProperty("exitStatus");
    terminals.kill(id);
    // `close` comes only when nobody holds the output any more, so the grandchild is gone, too.
    expect(await terminals.waitForExit(id)).toMatchObject({ signal: "SIGKILL" });
    terminals.kill(id);
    const other = terminals.create(node("setInterval(() => {}, 1000)"), tmpdir());
    kills[1]?.();
    expect(await terminals.waitForExit(other)).toMatchObject({ signal: "SIGKILL" });
    terminals.dispose();
  });

  it("says that a command does not exist", async () => {
    const { terminals } = harness();
    const id = terminals.create({ sessionId: "s", command: "/no/such/command", args: ["x"] }, tmpdir());
    expect(await terminals.waitForExit(id)).toEqual({ exitCode: 127, signal: null });
  });

  it("keeps the end of a long output, in whole characters", () => {
    const tail = new OutputTail(10);
    expect([tail.text, tail.truncated]).toEqual(["", false]);
    tail.push("0123456789");
    expect([tail.text, tail.truncated]).toEqual(["0123456789", false]);
    tail.push("äöü");
    expect(tail.truncated).toBe(true);
    expect(tail.text).toBe("6789äöü");
    for (let index = 0; index < 100; index += 1) tail.push("ß");
    expect(tail.text).toBe("ßßßßß");
    tail.push("x");
    expect(tail.text).toBe("ßßßßx");
  });
});

describe("ToolCalls", () => {
  const none = () => Promise.resolve(undefined);
  const file = (text: string) => () => Promise.resolve(text);
  const edit = (rawInput: unknown, more: Partial<ToolCallUpdate> = {}) => ({ toolCallId: "t", kind: "edit" as const, rawInput, ...more });

  it("merges what is told in pieces, and forgets the oldest", () => {
    const calls = new ToolCalls();
    calls.handleUpdate({ sessionUpdate: "tool_call", toolCallId: "t", title: "Write", kind: "edit", rawInput: { path: "a" } });
    calls.handleUpdate({ sessionUpdate: "tool_call_update", toolCallId: "t", status: "completed", title: null });
    calls.handleUpdate({ sessionUpdate: "plan", entries: [] });
    expect(calls.find("t")).toMatchObject({ title: "Write", kind: "edit", status: "completed", rawInput: { path: "a" } });
    for (let index = 0; index < MAX_TOOL_CALLS; index += 1) calls.merge({ toolCallId: `x${index}` });
    expect(calls.find("t")).toBeUndefined();
  });

  it("takes the agent's own diff first", async () => {
    const content = [{ type: "content" as const, content: { type: "text" as const, text: "x" } }, { type: "diff" as const, path: "/a", oldText: "1", newText: "2" }];
    expect(await fileChange(edit({ path: "b", content: "3" }, { content }), "/w", none)).toEqual({ path: "/a", oldText: "1", newText: "2" });
  });

  it.each([
    [{ path: "a.txt", content: "new" }, file("old"), { path: "/w/a.txt", oldText: "old", newText: "new" }],
    [{ file_path: "/x/a.txt", file_text: "new" }, none, { path: "/x/a.txt", oldText: "", newText: "new" }],
    [{ path: "a.txt", old: "b", new: "B" }, file("abcb"), { path: "/w/a.txt", oldText: "abcb", newText: "aBcb" }],
    [{ path: "a.txt", before: "b", after: "$&" }, file("ab"), { path: "/w/a.txt", oldText: "ab", newText: "a$&" }],
    [{ path: "a.txt", old_str: "z", new_str: "y" }, file("ab"), undefined],
    [{ path: "a.txt", old: "b", new: "B" }, none, undefined],
    [{ content: "x" }, none, undefined],
    ["text", none, undefined],
  ])("reads the change from the input %j", async (input, read, change) => expect(await fileChange(edit(input), "/w", read)).toEqual(change));

  it("does not take a command for a change", async () => expect(await fileChange({ toolCallId: "t", kind: "execute", rawInput: { path: "a", content: "b" } }, "/w", none)).toBeUndefined());
});
