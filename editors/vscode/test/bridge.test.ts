import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { ContentBlock } from "../../../web/src/chat/acp";
import { message, type MessageToWebview } from "../src/shared/messages";
import { ENGLISH, readStrings } from "../src/shared/strings";
import { Bridge } from "../src/webview/bridge";
import { BridgeSession, labelOf } from "../src/webview/chatSession";
import { droppedFiles } from "../src/webview/drop";
import { FileSearch } from "../src/webview/fileSearch";
import { contractState, emptyView } from "../src/webview/reducer";
import { isSavedState, savedState } from "../src/webview/saved";

let frames: (() => void)[];
beforeEach(() => {
  frames = [];
  vi.stubGlobal("requestAnimationFrame", (run: () => void) => frames.push(run));
  vi.stubGlobal("cancelAnimationFrame", () => {});
});
afterEach(() => vi.unstubAllGlobals());

function harness() {
  const posted: { type: string; payload: Record<string, unknown> }[] = [];
  let state: unknown;
  const api = { postMessage: (sent: unknown) => void posted.push(sent as (typeof posted)[number]), getState: () => state, setState: (next: unknown) => (state = next) };
  const source = new EventTarget();
  const bridge = new Bridge(api, source);
  let made = 0;
  const session = new BridgeSession(bridge, () => `id${++made}`);
  bridge.onMessage((received) => session.handle(received));
  bridge.initialize("0.1.0");
  const receive = (data: unknown) => source.dispatchEvent(Object.assign(new Event("message"), { data }));
  const from = <T extends MessageToWebview["type"]>(type: T, payload: Extract<MessageToWebview, { type: T }>["payload"]) => receive(message(type, payload as never));
  return { posted, bridge, session, receive, from, api };
}
const text = (value: string): ContentBlock[] => [{ type: "text", text: value }];

describe("Bridge", () => {
  it("says that it is ready, with its version", () => {
    expect(harness().posted).toEqual([{ type: "WEBVIEW_READY", payload: { version: "0.1.0" } }]);
  });

  it("passes messages on and drops everything else", () => {
    const { bridge, receive } = harness();
    const seen: string[] = [];
    const stop = bridge.onMessage(({ type }) => void seen.push(type));
    receive(message("FOCUS_CHAT_INPUT", {}));
    receive({ type: "SEND_MESSAGE", payload: { content: "x", messageId: "m", responseId: "r" } });
    receive({ type: "STREAM_TOKEN", payload: {} });
    receive("nonsense");
    stop();
    receive(message("FOCUS_CHAT_INPUT", {}));
    expect(seen).toEqual(["FOCUS_CHAT_INPUT"]);
  });

  it("keeps state that fits, across hide and show", () => {
    const { bridge } = harness();
    bridge.setState({ other: true });
    expect(bridge.getState(isSavedState)).toBeUndefined();
    const chips = [{ id: "c", filePath: "/a", fileName: "a" }];
    bridge.setState(savedState(emptyView(), chips, "/w"));
    expect(bridge.getState(isSavedState)).toEqual({ schemaVersion: 1, view: emptyView(), chips, cwd: "/w" });
    const asked = { ...emptyView(), chat: { ...emptyView().chat, requests: [{ id: "q" } as never] } };
    expect(savedState(asked, [], "").view.chat.requests).toEqual([]);
  });
});

describe("BridgeSession", () => {
  it("sends a message and shows the answer, one change for each frame", async () => {
    const { session, posted, from } = harness();
    const states: number[] = [];
    session.subscribe(({ items }) => void states.push(items.length));
    await session.send(text("Hello"));
    expect(posted.at(-1)).toEqual({ type: "SEND_MESSAGE", payload: { content: "Hello", messageId: "id2", responseId: "id1" } });
    expect(contractState(session.view)).toMatchObject({ isGenerating: true, currentResponseId: "id1" });
    const before = states.length;
    for (let index = 0; index < 100; index += 1) from("STREAM_TOKEN", { messageId: "id1", token: "x", done: false });
    expect(states).toHaveLength(before);
    frames.splice(0).forEach((run) => run());
    expect(states).toHaveLength(before + 1);
    from("GENERATION_COMPLETE", { messageId: "id1" });
    expect(contractState(session.view).messages.at(-1)).toMatchObject({ id: "id1", content: "x".repeat(100), status: "complete" });
  });

  it("sends chips, mentions and pictures along, once", async () => {
    const { session, posted, from } = harness();
    const chip = { id: "c", filePath: "/w/a.ts", fileName: "a.ts", range: { startLine: 10, endLine: 25 } };
    from("ADD_CONTEXT_CHIP", { chip });
    from("ADD_CONTEXT_CHIP", { chip: { ...chip, id: "again" } });
    from("ADD_CONTEXT_CHIP", { chip: { id: "d", filePath: "/w/b.ts", fileName: "b.ts" } });
    session.removeChip("d");
    expect(session.chips.map(labelOf)).toEqual(["a.ts:10-25"]);
    await session.send([...text("look"), { type: "image", data: "AA", mimeType: "image/png" }, { type: "resource_link", uri: "file:///w/c%20d.ts", name: "c d.ts" }]);
    expect(posted.at(-1)?.payload).toMatchObject({
      content: "look",
      contextChips: [{ ...chip, id: "again" }, { filePath: "/w/c d.ts", fileName: "c d.ts" }],
      images: [{ data: "AA", mimeType: "image/png" }],
    });
    expect(session.chips).toEqual([]);
    from("GENERATION_COMPLETE", { messageId: contractState(session.view).currentResponseId ?? "" });
    await session.send(text("next"));
    expect(posted.at(-1)?.payload).not.toHaveProperty("contextChips");
  });

  it("queues what is sent while an answer is written, or steers where the agent can", async () => {
    const { session, posted, from } = harness();
    const queues: number[] = [];
    session.onqueue = (queue) => void queues.push(queue.length);
    await session.send(text("one"));
    await session.send(text("two"));
    expect(posted.filter(({ type }) => type === "SEND_MESSAGE")).toHaveLength(1);
    from("GENERATION_COMPLETE", { messageId: "id1" });
    expect(posted.filter(({ type }) => type === "SEND_MESSAGE").map(({ payload }) => payload["content"])).toEqual(["one", "two"]);
    expect(queues).toEqual([1, 0]);
    from("SESSION_OPTIONS", { sessionId: "s", canSteer: true });
    const { currentResponseId } = contractState(session.view);
    await session.send(text("three"));
    expect(posted.at(-1)?.payload).toMatchObject({ content: "three", responseId: currentResponseId });
    expect(contractState(session.view)).toMatchObject({ isGenerating: true, currentResponseId });
  });

  it("stops, answers and chooses through the bridge", () => {
    const { session, posted, from } = harness();
    from("PERMISSION_REQUEST", { requestId: "q", sessionId: "s", toolCall: { toolCallId: "t" }, options: [{ optionId: "yes", name: "Yes", kind: "allow_once" }] });
    from("ELICITATION_REQUEST", { requestId: "e", request: { message: "m", mode: "form", sessionId: "s", requestedSchema: { type: "object" } } });
    session.flush();
    expect(session.state.requests.map(({ id }) => id)).toEqual(["q", "e"]);
    session.answerPermission("q", "yes", [{ content: "step", priority: "high", status: "pending" }]);
    session.answerElicitation("e", { action: "accept", content: { a: 1 } });
    expect(session.state.requests).toEqual([]);
    session.stop();
    void session.setMode("auto");
    void session.setConfigOption("model", "x");
    expect(posted.slice(1)).toEqual([
      { type: "PERMISSION_RESPONSE", payload: { requestId: "q", optionId: "yes", meta: { "gander/plan": { items: [{ text: "step", priority: "high", status: "pending" }] } } } },
      { type: "ELICITATION_RESPONSE", payload: { requestId: "e", action: "accept", content: { a: 1 } } },
      { type: "STOP_GENERATION", payload: {} },
      { type: "SET_MODE", payload: { modeId: "auto" } },
      { type: "SET_CONFIG_OPTION", payload: { configId: "model", value: "x" } },
    ]);
  });

  it("has a picker for modes, also where they are no config option", () => {
    const { session, posted, from } = harness();
    const modes = { currentModeId: "ask", availableModes: [{ id: "ask", name: "Ask" }, { id: "auto", name: "Auto" }] };
    from("SESSION_OPTIONS", { sessionId: "s", modes, configOptions: [{ id: "model", name: "Model", type: "select", currentValue: "m", options: [] }] });
    session.flush();
    expect(session.state.configOptions).toMatchObject([{ category: "mode", currentValue: "ask", options: [{ value: "ask" }, { value: "auto" }] }, { id: "model" }]);
    void session.setConfigOption(session.state.configOptions[0]?.id ?? "", "auto");
    expect(posted.at(-1)).toEqual({ type: "SET_MODE", payload: { modeId: "auto" } });
    from("SESSION_UPDATE", { sessionId: "s", update: { sessionUpdate: "current_mode_update", currentModeId: "auto" } });
    session.flush();
    expect(session.state.configOptions[0]?.currentValue).toBe("auto");
    from("SESSION_OPTIONS", { sessionId: "s", modes, configOptions: [{ id: "mode", name: "Mode", category: "mode", type: "select", currentValue: "ask", options: [] }] });
    session.flush();
    expect(session.state.configOptions.map(({ id }) => id)).toEqual(["mode"]);
  });

  it("withdraws what was answered elsewhere", () => {
    const { session, from } = harness();
    from("PERMISSION_REQUEST", { requestId: "q", sessionId: "s", toolCall: { toolCallId: "t" }, options: [] });
    from("PERMISSION_RESOLVED", { requestId: "q", optionId: null });
    session.flush();
    expect(session.state.requests).toEqual([]);
  });

  it("clears for another session, replays its history, and joins its turn", () => {
    const { session, from } = harness();
    from("STREAM_TOKEN", { messageId: "x", token: "nobody's", done: false });
    from("SESSION_CREATED", { session: { sessionId: "s", title: "T", cwd: "/w", createdAt: "t" } });
    from("HISTORY_MESSAGE", { message: { id: "1", role: "user", content: "past", timestamp: "", status: "complete" }, isReplay: true });
    from("SESSION_UPDATE", { sessionId: "s", update: { sessionUpdate: "tool_call", toolCallId: "t", title: "List" } });
    from("HISTORY_COMPLETE", { sessionId: "s", messageCount: 1 });
    from("SESSION_AGENTS", { sessionId: "s", agents: [{ name: "coding", title: "Coding", modes: ["backend"] }] });
    from("TURN_STARTED", { messageId: "r" });
    from("STREAM_TOKEN", { messageId: "r", token: "now", done: false });
    session.flush();
    expect(session.cwd).toBe("/w");
    expect(session.state.agents).toEqual([{ name: "coding", title: "Coding", modes: ["backend"] }]);
    expect(contractState(session.view)).toMatchObject({ messages: [{ content: "past" }, { content: "now", status: "streaming" }], isGenerating: true });
    from("CHAT_HISTORY", { messages: [] });
    session.flush();
    expect(contractState(session.view).messages).toEqual([]);
  });

  it("shows errors, notices and a history that cannot be told", () => {
    const { session, from } = harness();
    from("ERROR", { title: "t", message: "m" });
    from("NOTICE", { severity: "warning", text: "n" });
    from("SESSION_LOADED", { sessionId: "s", historyUnavailable: true });
    session.flush();
    expect(session.state.items).toMatchObject([{ severity: "error", title: "t", description: "m" }, { severity: "warning", title: "n" }, { severity: "info" }]);
  });
});

describe("FileSearch", () => {
  it("asks, and gives the answer of its own query only", async () => {
    const { bridge, posted, from } = harness();
    const files = new FileSearch(bridge);
    const first = files.complete("a");
    const second = files.complete("ab");
    from("SEARCH_RESULTS", { query: "a", results: [{ filePath: "/a", fileName: "a", relativePath: "a" }] });
    from("SEARCH_RESULTS", { query: "ab", results: [{ filePath: "/ab", fileName: "ab", relativePath: "src/ab" }] });
    expect(await first).toEqual([]);
    expect(await second).toEqual(["src/ab"]);
    expect(posted.slice(1)).toEqual([{ type: "FILE_SEARCH", payload: { query: "a" } }, { type: "FILE_SEARCH", payload: { query: "ab" } }]);
  });
});

describe("dropped files", () => {
  it("takes files from a drop, each once", () => {
    const data: Record<string, string> = { "application/vnd.code.uri-list": "file:///a\r\nfile:///b", "text/uri-list": "file:///a\nhttps://example.org\n# comment" };
    expect(droppedFiles({ getData: (type) => data[type] ?? "" })).toEqual(["file:///a", "file:///b"]);
    expect(droppedFiles({ getData: () => "" })).toEqual([]);
  });
});

describe("strings", () => {
  it("are English where a translation is missing", () => {
    expect(readStrings(null)).toBe(ENGLISH);
    expect(readStrings("{broken")).toBe(ENGLISH);
    expect(readStrings(JSON.stringify({ restart: "Neu starten", status: { error: "Fehler" }, session: 3 }))).toMatchObject({ restart: "Neu starten", session: "Session", status: { error: "Fehler", running: "Running" } });
  });
});
