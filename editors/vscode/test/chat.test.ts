import { describe, expect, it, vi } from "vitest";
import { jsonRpcError, subprocessCrash } from "../src/shared/errors";
import { chatHarness } from "./doubles/chat";

const created = { "session/new": () => ({ sessionId: "s1", modes: { currentModeId: "a", availableModes: [] } }), "session/list": () => ({ sessions: [] }) };
const send = (content: string, responseId = "r") => ({ type: "SEND_MESSAGE", payload: { content, messageId: "m", responseId } }) as const;
const stored = (sessionId: string) => ({ "goose.sessions.v1": { schemaVersion: 1, activeSessionId: sessionId, sessions: [{ sessionId, title: "Old", cwd: "/old", createdAt: "2026-01-01T00:00:00Z" }] }, "goose.activeSession": sessionId });

describe("a turn", () => {
  it.each(["end_turn", "max_tokens", "max_turn_requests", "refusal"])("that ends with %s is complete", async (stopReason) => {
    const { agent, chat, connect, sent } = chatHarness(created);
    await connect();
    const turn = chat.handle(send("Hi"));
    const { id } = await agent.called("session/prompt");
    agent.say("s1", "Hel");
    agent.say("s1", "lo");
    agent.respond(id, { stopReason });
    await turn;
    const answer = sent.filter(({ type }) => type === "STREAM_TOKEN" || type.startsWith("GENERATION"));
    expect(answer.at(-1)).toEqual({ type: "GENERATION_COMPLETE", payload: { messageId: "r", stopReason } });
    expect(answer.slice(0, -1).map(({ payload }) => payload["token"]).join("")).toBe("Hello");
    expect(answer[0]?.payload).toMatchObject({ messageId: "r", done: false });
  });

  it("that was stopped is cancelled, and its questions with it", async () => {
    const { agent, chat, connect, message, types } = chatHarness(created);
    await connect();
    const turn = chat.handle(send("Hi"));
    const { id } = await agent.called("session/prompt");
    const asked = agent.request("session/request_permission", { sessionId: "s1", toolCall: { toolCallId: "t" }, options: [{ optionId: "o", name: "O", kind: "allow_once" }] });
    await message(({ type }) => type === "PERMISSION_REQUEST");
    await chat.handle({ type: "STOP_GENERATION", payload: {} });
    expect(await agent.called("session/cancel")).toMatchObject({ params: { sessionId: "s1" } });
    expect(await asked.response).toMatchObject({ result: { outcome: { outcome: "cancelled" } } });
    agent.respond(id, { stopReason: "cancelled" });
    await turn;
    expect(types().slice(-1)).toEqual(["GENERATION_CANCELLED"]);
    expect(types()).not.toContain("GENERATION_COMPLETE");
  });

  it("that fails sends ERROR and GENERATION_CANCELLED", async () => {
    const { agent, chat, connect, sent } = chatHarness(created);
    await connect();
    const turn = chat.handle(send("Hi"));
    agent.fail((await agent.called("session/prompt")).id, -32603, "Internal error", "no model");
    await turn;
    expect(sent.slice(-2)).toEqual([
      { type: "ERROR", payload: { title: "The answer could not be completed", message: "Internal error: no model" } },
      { type: "GENERATION_CANCELLED", payload: { messageId: "r" } },
    ]);
    expect(chat.isRunning).toBe(false);
  });

  it("without an agent says so, instead of inventing an answer", async () => {
    const { chat, sent } = chatHarness();
    chat.handleStatus("error", subprocessCrash(1, null));
    await chat.handle(send("Hi"));
    expect(sent.slice(-2)).toEqual([
      { type: "ERROR", payload: { title: "No agent is running", message: "the agent ended unexpectedly: code 1", action: { label: "Restart", action: "restart" } } },
      { type: "GENERATION_CANCELLED", payload: { messageId: "r" } },
    ]);
  });

  it("keeps the order of text, tool calls, thoughts and resources", async () => {
    const { agent, chat, connect, sent } = chatHarness(created);
    await connect();
    const turn = chat.handle(send("Hi"));
    const { id } = await agent.called("session/prompt");
    agent.update("s1", { sessionUpdate: "agent_thought_chunk", content: { type: "text", text: "hm" } });
    agent.say("s1", "a");
    agent.update("s1", { sessionUpdate: "tool_call", toolCallId: "t", title: "T" });
    agent.say("s1", "b");
    agent.update("s1", { sessionUpdate: "agent_message_chunk", content: { type: "resource_link", uri: "file:///x", name: "x" } });
    agent.say("other session", "not here");
    agent.respond(id, { stopReason: "end_turn" });
    await turn;
    const told = sent.filter(({ type }) => type === "STREAM_TOKEN" || type === "SESSION_UPDATE").map(({ payload }) => payload["token"] ?? (payload["update"] as { sessionUpdate: string }).sessionUpdate);
    expect(told).toEqual(["agent_thought_chunk", "a", "tool_call", "b", "agent_message_chunk"]);
  });

  it("sends chips and pictures as blocks", async () => {
    const { agent, chat, connect } = chatHarness(created);
    await connect();
    const contextChips = [{ id: "1", filePath: "/f.ts", fileName: "f.ts" }, { id: "2", filePath: "/g.ts", fileName: "g.ts", range: { startLine: 2, endLine: 3 } }];
    void chat.handle({ type: "SEND_MESSAGE", payload: { content: "Hi", messageId: "m", responseId: "r", contextChips, images: [{ data: "AA", mimeType: "image/png" }] } });
    expect((await agent.called("session/prompt")).params).toEqual({
      sessionId: "s1",
      prompt: [
        { type: "resource_link", uri: "file:///f.ts", name: "f.ts", mimeType: "text/typescript" },
        { type: "text", text: "File: /g.ts:2-3\n```\nline\n```" },
        { type: "text", text: "Hi" },
        { type: "image", data: "AA", mimeType: "image/png" },
      ],
    });
  });

  it("is steered where the agent says that it can be, and not elsewhere", async () => {
    const steering = { initialize: () => ({ protocolVersion: 1, agentCapabilities: {}, _meta: { steering: { supported: true } } }), "_session/steering": () => ({}) };
    const can = chatHarness({ ...created, ...steering });
    await can.connect();
    void can.chat.handle(send("one"));
    await can.agent.called("session/prompt");
    await can.chat.handle(send("two"));
    expect((await can.agent.called("_session/steering")).params).toEqual({ sessionId: "s1", prompt: [{ type: "text", text: "two" }] });
    const cannot = chatHarness(created);
    await cannot.connect();
    void cannot.chat.handle(send("one"));
    await cannot.agent.called("session/prompt");
    await cannot.chat.handle(send("two"));
    expect(cannot.sent.at(-1)).toMatchObject({ type: "NOTICE", payload: { severity: "error" } });
  });
});

describe("sessions", () => {
  it("begin anew when none was open", async () => {
    const { connect, sent, agent, memory } = chatHarness(created);
    await connect();
    expect((await agent.called("session/new")).params).toEqual({ cwd: "/project", mcpServers: [] });
    expect(sent).toContainEqual({ type: "SESSION_CREATED", payload: { session: expect.objectContaining({ sessionId: "s1", title: "New Session", cwd: "/project" }) as unknown } });
    expect(sent).toContainEqual({ type: "SESSION_OPTIONS", payload: { sessionId: "s1", modes: { currentModeId: "a", availableModes: [] }, canSteer: false } });
    expect(memory.values.get("goose.activeSession")).toBe("s1");
  });

  it("are restored with their history", async () => {
    const load = (_params: unknown, agent: { update(id: string, update: Record<string, unknown>): void }) => {
      agent.update("old", { sessionUpdate: "user_message_chunk", content: { type: "text", text: "question" } });
      agent.update("old", { sessionUpdate: "user_message_chunk", content: { type: "resource_link", uri: "file:///a.ts", name: "a.ts" } });
      agent.update("old", { sessionUpdate: "tool_call", toolCallId: "t", title: "T" });
      agent.update("old", { sessionUpdate: "agent_message_chunk", content: { type: "resource", resource: { uri: "file:///b.ts", text: "body" } } });
      return {};
    };
    const { connect, sent, agent, types } = chatHarness({ ...created, "session/load": load as never }, stored("old"));
    await connect();
    expect((await agent.called("session/load")).params).toEqual({ sessionId: "old", cwd: "/old", mcpServers: [] });
    expect(types().filter((type) => /HISTORY|SESSION_(CREATED|UPDATE|LOADED)/.test(type))).toEqual(["SESSION_CREATED", "HISTORY_MESSAGE", "SESSION_UPDATE", "HISTORY_MESSAGE", "HISTORY_COMPLETE", "SESSION_LOADED"]);
    const [question, answer] = sent.filter(({ type }) => type === "HISTORY_MESSAGE").map(({ payload }) => payload["message"]);
    expect(question).toMatchObject({ role: "user", content: "question", context: [{ filePath: "/a.ts", fileName: "a.ts" }] });
    expect(answer).toMatchObject({ role: "assistant", context: [{ filePath: "/b.ts", fileName: "b.ts", content: "body" }] });
    expect(sent).toContainEqual({ type: "HISTORY_COMPLETE", payload: { sessionId: "old", messageCount: 2 } });
  });

  it("fall back to a new one, with a notice, when they cannot be loaded", async () => {
    const { connect, agent, sent, memory } = chatHarness(created, stored("gone"));
    const connecting = connect();
    agent.fail((await agent.called("session/load")).id, -32002, "no such session");
    await connecting;
    expect(sent).toContainEqual({ type: "NOTICE", payload: { severity: "warning", text: "The last session could not be opened, this is a new one: no such session" } });
    expect(memory.values.get("goose.activeSession")).toBe("s1");
  });

  it("are not loaded by an agent that cannot", async () => {
    const cannot = { initialize: () => ({ protocolVersion: 1, agentCapabilities: {} }) };
    const { connect, agent, chat, sent } = chatHarness({ ...created, ...cannot }, stored("old"));
    await connect();
    expect(agent.received.map(({ method }) => method)).not.toContain("session/load");
    await chat.handle({ type: "SELECT_SESSION", payload: { sessionId: "old" } });
    expect(sent.at(-1)).toEqual({ type: "SESSION_LOADED", payload: { sessionId: "old", historyUnavailable: true } });
  });

  it("of other clients are listed, page by page, and can be joined live", async () => {
    const pages: Record<string, unknown> = { first: { sessions: [{ sessionId: "t1", cwd: "/t", title: "From a terminal", updatedAt: "2026-02-02T00:00:00Z" }], nextCursor: "c" }, c: { sessions: [{ sessionId: "s1", cwd: "/project", title: "Renamed there" }] } };
    const { connect, chat, sent, agent } = chatHarness({ ...created, "session/list": ({ cursor }) => pages[String(cursor ?? "first")], "session/load": () => ({}) });
    await connect();
    await chat.handle({ type: "GET_SESSIONS", payload: {} });
    expect(sent.at(-1)?.payload).toMatchObject({ activeSessionId: "s1" });
    expect((sent.at(-1)?.payload["sessions"] as { sessionId: string; origin: string; title: string }[]).map(({ sessionId, origin, title }) => `${sessionId} ${origin} ${title}`).sort()).toEqual(["s1 here Renamed there", "t1 elsewhere From a terminal"]);
    await chat.handle({ type: "SELECT_SESSION", payload: { sessionId: "t1" } });
    expect((await agent.called("session/load")).params).toMatchObject({ sessionId: "t1", cwd: "/t" });
    // Somebody else goes on there: it is shown as it comes.
    agent.update("t1", { sessionUpdate: "user_message_chunk", content: { type: "text", text: "theirs" } });
    agent.say("t1", "answer");
    await vi.waitFor(() => expect(sent.filter(({ type }) => type === "SESSION_UPDATE")).toHaveLength(2), { timeout: 15_000 });
  });

  it("are named after their first message, then by the agent", async () => {
    const { connect, chat, agent, store } = chatHarness(created);
    await connect();
    void chat.handle(send("  Fix the\nlogin  "));
    await agent.called("session/prompt");
    expect(store.find("s1")?.title).toBe("Fix the login");
    agent.update("s1", { sessionUpdate: "session_info_update", title: "Repair of the login" });
    await vi.waitFor(() => expect(store.find("s1")?.title).toBe("Repair of the login"), { timeout: 15_000 });
  });

  it("are switched one after the other, and a turn goes on in the one that was left", async () => {
    let made = 0;
    const { connect, chat, agent, sent } = chatHarness({ ...created, "session/new": () => ({ sessionId: `s${++made}` }), "session/load": () => ({}) });
    await connect();
    const turn = chat.handle(send("Hi"));
    const { id } = await agent.called("session/prompt");
    await Promise.all([chat.handle({ type: "CREATE_SESSION", payload: { workingDirectory: "/other" } }), chat.handle({ type: "SELECT_SESSION", payload: { sessionId: "s1" } }), chat.handle({ type: "CREATE_SESSION", payload: {} })]);
    expect(chat.sessionId).toBe("s3");
    const before = sent.length;
    agent.say("s1", "unseen");
    await chat.handle({ type: "SELECT_SESSION", payload: { sessionId: "s1" } });
    expect(sent.slice(before).map(({ type }) => type)).toContain("TURN_STARTED");
    agent.say("s1", "seen");
    agent.respond(id, { stopReason: "end_turn" });
    await turn;
    expect(sent.filter(({ type }) => type === "STREAM_TOKEN").map(({ payload }) => payload["token"])).toEqual(["seen"]);
  });
});

describe("a turn of another client", () => {
  const steering = { initialize: () => ({ protocolVersion: 1, agentCapabilities: { loadSession: true }, _meta: { steering: { supported: true } } }), "_session/steering": () => ({}) };
  const joined = async (answers: Parameters<typeof chatHarness>[0] = {}) => {
    const harness = chatHarness({ ...created, ...steering, "session/load": () => ({}), "_gander/sessions/watch": () => ({ sessions: [{ sessionId: "s1", state: "idle" }] }), ...answers }, stored("s1"));
    await harness.connect();
    return harness;
  };
  const begin = async ({ agent, message }: Awaited<ReturnType<typeof joined>>) => {
    agent.update("s1", { sessionUpdate: "user_message_chunk", content: { type: "text", text: "theirs" } });
    return String((await message(({ type }) => type === "TURN_STARTED")).payload["messageId"]);
  };

  it.each([
    ["end_turn", { type: "GENERATION_COMPLETE", stopReason: "end_turn" }],
    ["cancelled", { type: "GENERATION_CANCELLED" }],
    [null, { type: "GENERATION_COMPLETE" }],
  ])("is shown from its first word to its end: %s", async (stopReason, { type, ...payload }) => {
    const harness = await joined();
    const { agent, chat, calls, message, types } = harness;
    const messageId = await begin(harness);
    expect(chat.isRunning).toBe(true);
    agent.say("s1", "answer");
    const { id, params } = await agent.called("_gander/session/wait");
    expect(params).toEqual({ sessionId: "s1" });
    agent.respond(id, { stopReason });
    expect(await message((each) => each.type.startsWith("GENERATION"))).toEqual({ type, payload: { messageId, ...payload } });
    // Their words come before the end, and the agent is asked once for a turn.
    expect(types().slice(types().indexOf("TURN_STARTED"))).toEqual(["TURN_STARTED", "SESSION_UPDATE", "SESSION_UPDATE", type]);
    expect(agent.received.filter(({ method }) => method === "_gander/session/wait")).toHaveLength(1);
    expect(chat.isRunning).toBe(false);
    expect(calls.filter(([name]) => name === "turnsChanged")).toEqual([["turnsChanged", true], ["turnsChanged", false]]);
  });

  it("that runs already is shown as soon as its session is opened, also to a webview that was created again", async () => {
    const harness = await joined({ "_gander/sessions/watch": () => ({ sessions: [{ sessionId: "s2", state: "running" }, { sessionId: "s1", state: "waiting" }] }) });
    const started = await harness.message(({ type }) => type === "TURN_STARTED");
    const before = harness.sent.length;
    await harness.chat.handleWebviewReady(true);
    expect(harness.sent.slice(before)).toContainEqual(started);
  });

  it("that fails says why", async () => {
    const harness = await joined();
    const messageId = await begin(harness);
    harness.agent.fail((await harness.agent.called("_gander/session/wait")).id, -32603, "no model");
    await harness.message(({ type }) => type === "GENERATION_CANCELLED");
    expect(harness.sent.slice(-2)).toEqual([
      { type: "ERROR", payload: { title: "The answer could not be completed", message: "no model" } },
      { type: "GENERATION_CANCELLED", payload: { messageId } },
    ]);
  });

  it("is steered, not prompted, by what is said here", async () => {
    const harness = await joined();
    await begin(harness);
    await harness.chat.handle(send("and this"));
    expect((await harness.agent.called("_session/steering")).params).toEqual({ sessionId: "s1", prompt: [{ type: "text", text: "and this" }] });
    expect(harness.agent.received.filter(({ method }) => method === "session/prompt")).toEqual([]);
  });

  it("is asked for once of an agent that does not know the method", async () => {
    const harness = await joined();
    await begin(harness);
    harness.agent.fail((await harness.agent.called("_gander/session/wait")).id, -32601, "Method not found");
    await harness.message(({ type }) => type === "GENERATION_COMPLETE");
    harness.agent.say("s1", "more");
    await harness.message(({ type, payload }) => type === "SESSION_UPDATE" && JSON.stringify(payload).includes("more"));
    expect(harness.types().filter((type) => type === "TURN_STARTED" || type === "ERROR")).toEqual(["TURN_STARTED"]);
  });

  it("ends with the agent, which is told once", async () => {
    const harness = await joined();
    const messageId = await begin(harness);
    await harness.agent.called("_gander/session/wait");
    harness.client.dispose();
    expect((await harness.message(({ type }) => type === "GENERATION_CANCELLED")).payload).toEqual({ messageId });
    expect(harness.types()).not.toContain("ERROR");
  });
});

describe("what the webview asks for", () => {
  it("is answered or passed on", async () => {
    const { connect, chat, calls, sent, agent } = chatHarness({ ...created, "session/set_mode": () => ({}), "session/set_config_option": () => ({ configOptions: [{ id: "model" }] }) });
    await connect();
    await chat.handle({ type: "GET_STATUS", payload: {} });
    expect(sent.at(-1)).toEqual({ type: "STATUS_UPDATE", payload: { status: "running" } });
    await chat.handle({ type: "FILE_SEARCH", payload: { query: "q" } });
    expect(sent.at(-1)).toEqual({ type: "SEARCH_RESULTS", payload: { query: "q", results: [{ filePath: "/project/q", fileName: "q", relativePath: "q" }] } });
    await chat.handle({ type: "OPEN_EXTERNAL_LINK", payload: { url: "https://example.org" } });
    await chat.handle({ type: "OPEN_EXTERNAL_LINK", payload: { url: "file:///etc/passwd" } });
    await chat.handle({ type: "OPEN_FILE", payload: { path: "/a", line: 3 } });
    await chat.handle({ type: "OPEN_DIFF", payload: { toolCallId: "t" } });
    await chat.handle({ type: "OPEN_TERMINAL", payload: { terminalId: "x" } });
    await chat.handle({ type: "RUN_ACTION", payload: { action: "restart" } });
    expect(calls.filter(([name]) => !["log", "turnsChanged"].includes(String(name)))).toEqual([["openExternal", "https://example.org/"], ["openFile", "/a", 3], ["openDiff", "t"], ["openTerminal", "x"], ["runAction", "restart"]]);
    await chat.handle({ type: "ADD_FILES", payload: { uris: ["file:///dropped", "https://no"] } });
    expect(sent.filter(({ type }) => type === "ADD_CONTEXT_CHIP")).toHaveLength(1);
    await chat.handle({ type: "SET_MODE", payload: { modeId: "b" } });
    expect((await agent.called("session/set_mode")).params).toEqual({ sessionId: "s1", modeId: "b" });
    expect(sent.at(-1)).toMatchObject({ type: "SESSION_UPDATE", payload: { update: { sessionUpdate: "current_mode_update", currentModeId: "b" } } });
    await chat.handle({ type: "SET_CONFIG_OPTION", payload: { configId: "model", value: "m" } });
    await chat.handle({ type: "SET_CONFIG_OPTION", payload: { configId: "flag", value: true } });
    expect(agent.received.filter(({ method }) => method === "session/set_config_option").map(({ params }) => params)).toEqual([{ sessionId: "s1", configId: "model", value: "m" }, { sessionId: "s1", configId: "flag", type: "boolean", value: true }]);
    expect(sent.at(-1)).toMatchObject({ type: "SESSION_OPTIONS", payload: { configOptions: [{ id: "model" }], modes: { currentModeId: "a" } } });
    await chat.handle({ type: "WEBVIEW_READY", payload: { version: "1" } });
  });

  it("has the agents that a session can be set to, where there are several", async () => {
    const agents = [{ name: "gander", title: "Gander", modes: ["assistant"] }, { name: "coding", title: "Coding", modes: ["backend"] }];
    const { connect, message, agent } = chatHarness({ ...created, "_gander/agents/list": () => ({ agents }) });
    await connect();
    expect((await message(({ type }) => type === "SESSION_AGENTS")).payload).toEqual({ sessionId: "s1", agents });
    expect((await agent.called("_gander/agents/list")).params).toEqual({ sessionId: "s1" });
  });

  it("that fails is told, and ends no answer", async () => {
    const { chat, sent } = chatHarness();
    await chat.handle({ type: "SET_MODE", payload: { modeId: "x" } });
    await chat.handle({ type: "CREATE_SESSION", payload: {} });
    await chat.handle({ type: "SELECT_SESSION", payload: { sessionId: "x" } });
    expect(sent.map(({ type }) => type)).toEqual(["NOTICE", "NOTICE", "NOTICE"]);
  });

  it("answers permission requests and forms", async () => {
    const { connect, chat, agent, message, sent } = chatHarness(created);
    await connect();
    const asked = agent.request("session/request_permission", { sessionId: "s1", toolCall: { toolCallId: "t", title: "T" }, options: [{ optionId: "yes", name: "Yes", kind: "allow_once" }] });
    const request = await message(({ type }) => type === "PERMISSION_REQUEST");
    expect(request.payload).toMatchObject({ sessionId: "s1", toolCall: { title: "T" }, options: [{ optionId: "yes" }] });
    await chat.handle({ type: "PERMISSION_RESPONSE", payload: { requestId: String(request.payload["requestId"]), optionId: "yes" } });
    expect(await asked.response).toMatchObject({ result: { outcome: { outcome: "selected", optionId: "yes" } } });
    await chat.handle({ type: "PERMISSION_RESPONSE", payload: { requestId: "too late", optionId: "yes" } });
    expect(sent.at(-1)).toEqual({ type: "PERMISSION_RESOLVED", payload: { requestId: "too late", optionId: null } });
    const form = agent.request("elicitation/create", { sessionId: "s1", message: "Which?", mode: "form", requestedSchema: { type: "object", properties: { name: { type: "string" } } } });
    const elicitation = await message(({ type }) => type === "ELICITATION_REQUEST");
    await chat.handle({ type: "ELICITATION_RESPONSE", payload: { requestId: String(elicitation.payload["requestId"]), action: "accept", content: { name: "x" } } });
    expect(await form.response).toMatchObject({ result: { action: "accept", content: { name: "x" } } });
    await chat.handle({ type: "ELICITATION_RESPONSE", payload: { requestId: "too late", action: "decline" } });
    expect(sent.at(-1)).toEqual({ type: "ELICITATION_RESOLVED", payload: { requestId: "too late" } });
  });

  it("tells a webview that was created again what is open", async () => {
    const { connect, chat, agent, message, types } = chatHarness({ ...created, "session/load": () => ({}) });
    await connect();
    void agent.request("session/request_permission", { sessionId: "s1", toolCall: { toolCallId: "t" }, options: [] });
    await message(({ type }) => type === "PERMISSION_REQUEST");
    const before = types().length;
    await chat.handleWebviewReady(true);
    expect(types().slice(before)).toEqual(expect.arrayContaining(["SESSION_CREATED", "HISTORY_COMPLETE", "SESSION_LOADED", "PERMISSION_REQUEST", "SESSIONS_LIST"]));
    const again = types().length;
    await chat.handleWebviewReady(false);
    expect(types().slice(again)).toEqual(["PERMISSION_REQUEST", "SESSIONS_LIST"]);
  });

  it("says that the agent is gone, and offers a restart", async () => {
    const { connect, chat, sent } = chatHarness(created);
    await connect();
    chat.handleLost(jsonRpcError(-32000, "gone"));
    expect(sent.at(-1)).toEqual({ type: "ERROR", payload: { title: "The agent is gone", message: "gone", action: { label: "Restart", action: "restart" } } });
    chat.handleVersion({ status: "blocked_missing", minimumVersion: "1.16.0" });
    expect(sent.at(-1)).toEqual({ type: "VERSION_STATUS", payload: { status: "blocked_missing", minimumVersion: "1.16.0" } });
    chat.addChip({ id: "c", filePath: "/a", fileName: "a" });
    expect(sent.slice(-2).map(({ type }) => type)).toEqual(["ADD_CONTEXT_CHIP", "FOCUS_CHAT_INPUT"]);
  });
});

describe("what the agent asks of the editor", () => {
  it("is done, or refused with a reason", async () => {
    const { agent } = chatHarness();
    expect(await agent.request("fs/read_text_file", { sessionId: "s", path: "/x" }).response).toMatchObject({ result: { content: "text" } });
    expect(await agent.request("fs/write_text_file", { sessionId: "s", path: "/x", content: "" }).response).toMatchObject({ error: { code: -32602, message: "Invalid params: read only" } });
    const outside = await agent.request("terminal/create", { sessionId: "s", command: "true", cwd: "/" }).response;
    expect(outside.error?.message).toContain("outside of the folders");
    const { result } = await agent.request("terminal/create", { sessionId: "s", command: process.execPath, args: ["-e", "console.log(1)"], cwd: process.cwd() }).response;
    const { terminalId } = result as { terminalId: string };
    expect(await agent.request("terminal/wait_for_exit", { sessionId: "s", terminalId }).response).toMatchObject({ result: { exitCode: 0 } });
    expect(await agent.request("terminal/output", { sessionId: "s", terminalId }).response).toMatchObject({ result: { output: "1\n", truncated: false, exitStatus: { exitCode: 0 } } });
    expect(await agent.request("terminal/kill", { sessionId: "s", terminalId }).response).toMatchObject({ result: {} });
    expect(await agent.request("terminal/release", { sessionId: "s", terminalId }).response).toMatchObject({ result: {} });
    expect((await agent.request("terminal/output", { sessionId: "s", terminalId }).response).error?.message).toContain("no such terminal");
  });
});
