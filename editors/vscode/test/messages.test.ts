import { describe, expect, it } from "vitest";
import {
  ACTIONS, TO_EXTENSION, TO_WEBVIEW, type ToExtension, type ToWebview, isMessageToExtension, isMessageToWebview, message,
} from "../src/shared/messages";
import { externalLink } from "../src/shared/links";
import type { ChatMessage } from "../src/shared/types";

const chip = { id: "c", filePath: "/a.ts", fileName: "a.ts", range: { startLine: 1, endLine: 2 } };
const chat: ChatMessage = { id: "m", role: "user", content: "x", timestamp: "t", status: "complete", context: [{ filePath: "/a", fileName: "a", content: "c" }] };
const entry = { sessionId: "s", title: "T", cwd: "/", createdAt: "2026-01-01T00:00:00Z" };
type Cases<M> = { [T in keyof M]: { good: M[T][]; bad: unknown[] } };

const toExtension: Cases<ToExtension> = {
  WEBVIEW_READY: { good: [{ version: "2.0.0" }], bad: [{}, { version: 2 }, null] },
  GET_STATUS: { good: [{}], bad: [null, "x", []] },
  SEND_MESSAGE: {
    good: [{ content: "", messageId: "m", responseId: "r" }, { content: "x", messageId: "m", responseId: "r", contextChips: [chip], images: [{ data: "AA", mimeType: "image/png" }] }],
    bad: [{ content: "x", messageId: "m" }, { content: "x", messageId: "", responseId: "r" }, { content: "x", messageId: "m", responseId: "r", contextChips: [{ id: "c" }] }, { content: "x", messageId: "m", responseId: "r", contextChips: [{ ...chip, range: { startLine: 3, endLine: 1 } }] }, { content: "x", messageId: "m", responseId: "r", contextChips: [{ ...chip, range: { startLine: 0, endLine: 1 } }] }, { content: "x", messageId: "m", responseId: "r", images: [{}] }],
  },
  STOP_GENERATION: { good: [{}], bad: [undefined] },
  OPEN_EXTERNAL_LINK: { good: [{ url: "https://x" }], bad: [{}, { url: "" }, { url: 1 }] },
  CREATE_SESSION: { good: [{}, { workingDirectory: "/w" }], bad: [{ workingDirectory: 1 }, null] },
  GET_SESSIONS: { good: [{}], bad: [3] },
  SELECT_SESSION: { good: [{ sessionId: "s" }], bad: [{}, { sessionId: "" }] },
  FILE_SEARCH: { good: [{ query: "" }], bad: [{}] },
  PERMISSION_RESPONSE: { good: [{ requestId: "r", optionId: "allow" }, { requestId: "r", optionId: null, meta: { x: 1 } }], bad: [{ requestId: "r" }, { requestId: "r", optionId: 1 }, { requestId: "r", optionId: "a", meta: 3 }] },
  ELICITATION_RESPONSE: { good: [{ requestId: "r", action: "accept", content: { a: 1 } }, { requestId: "r", action: "decline" }], bad: [{ requestId: "r", action: "maybe" }, { requestId: "r", action: "accept", content: [] }] },
  SET_CONFIG_OPTION: { good: [{ configId: "model", value: "x" }, { configId: "b", value: true }], bad: [{ configId: "model", value: 3 }, { value: "x" }] },
  SET_MODE: { good: [{ modeId: "auto" }], bad: [{}] },
  OPEN_FILE: { good: [{ path: "/a" }, { path: "/a", line: 3 }], bad: [{ path: "" }, { path: "/a", line: 0 }, { path: "/a", line: 1.5 }] },
  OPEN_DIFF: { good: [{ toolCallId: "t" }], bad: [{}] },
  OPEN_TERMINAL: { good: [{ terminalId: "t" }], bad: [{}] },
  ADD_FILES: { good: [{ uris: [] }, { uris: ["file:///a"] }], bad: [{}, { uris: [1] }] },
  RUN_ACTION: { good: ACTIONS.map((action) => ({ action })), bad: [{ action: "workbench.action.quit" }, {}] },
};

const toWebview: Cases<ToWebview> = {
  STATUS_UPDATE: { good: [{ status: "running" }, { status: "error", message: "m" }], bad: [{ status: "asleep" }, {}] },
  ERROR: { good: [{ title: "t", message: "m" }, { title: "t", message: "m", action: { label: "l", action: "restart" } }], bad: [{ title: "t" }, { title: "t", message: "m", action: { label: "l", action: "other" } }] },
  STREAM_TOKEN: { good: [{ messageId: "m", token: "t", done: false }], bad: [{ messageId: "m", token: "t" }, { token: "t", done: false }] },
  GENERATION_COMPLETE: { good: [{ messageId: "m" }, { messageId: "m", stopReason: "max_tokens" }], bad: [{}] },
  GENERATION_CANCELLED: { good: [{ messageId: "m" }], bad: [{ messageId: "" }] },
  CHAT_HISTORY: { good: [{ messages: [] }, { messages: [chat] }], bad: [{ messages: [{ ...chat, role: "system" }] }, { messages: [{ ...chat, status: "x" }] }, {}] },
  SESSION_CREATED: { good: [{ session: entry }], bad: [{ session: { sessionId: "s" } }, {}] },
  SESSIONS_LIST: { good: [{ sessions: [{ ...entry, origin: "here" }], activeSessionId: "s" }, { sessions: [{ ...entry, origin: "elsewhere", updatedAt: "t" }], activeSessionId: null }], bad: [{ sessions: [] }, { sessions: [entry], activeSessionId: null }] },
  SESSION_LOADED: { good: [{ sessionId: "s" }, { sessionId: "s", historyUnavailable: true }], bad: [{ sessionId: "s", historyUnavailable: "yes" }] },
  HISTORY_MESSAGE: { good: [{ message: chat, isReplay: true }], bad: [{ message: chat, isReplay: false } as unknown, { message: chat }] },
  HISTORY_COMPLETE: { good: [{ sessionId: "s", messageCount: 0 }], bad: [{ sessionId: "s" }] },
  VERSION_STATUS: {
    good: [{ status: "compatible", minimumVersion: "1.16.0", detectedVersion: "1.16.0" }, { status: "blocked_missing", minimumVersion: "1.16.0", installUrl: "u", hint: { text: "t", command: "c" } }, { status: "blocked_outdated", minimumVersion: "1.16.0", updateUrl: "u" }],
    bad: [{ status: "fine", minimumVersion: "1" }, { status: "compatible" }, { status: "compatible", minimumVersion: "1", hint: {} }],
  },
  ADD_CONTEXT_CHIP: { good: [{ chip }], bad: [{ chip: {} }] },
  SEARCH_RESULTS: { good: [{ query: "q", results: [{ filePath: "/a", fileName: "a", relativePath: "a" }] }], bad: [{ results: [] }, { query: "q", results: [{}] }] },
  FOCUS_CHAT_INPUT: { good: [{}], bad: [null] },
  SESSION_UPDATE: { good: [{ sessionId: "s", update: { sessionUpdate: "plan", entries: [] } }], bad: [{ sessionId: "s", update: {} }, { update: { sessionUpdate: "plan" } }] },
  PERMISSION_REQUEST: { good: [{ requestId: "r", sessionId: "s", toolCall: { toolCallId: "t" }, options: [{ optionId: "o", name: "n", kind: "allow_once" }] }], bad: [{ requestId: "r", sessionId: "s", toolCall: {}, options: [] }, { requestId: "r", sessionId: "s", toolCall: { toolCallId: "t" }, options: [{}] }] },
  PERMISSION_RESOLVED: { good: [{ requestId: "r", optionId: null }], bad: [{ requestId: "r" }] },
  ELICITATION_REQUEST: { good: [{ requestId: "r", request: { message: "m", mode: "form", sessionId: "s", requestedSchema: { type: "object", properties: {} } } }], bad: [{ requestId: "r", request: {} }] },
  ELICITATION_RESOLVED: { good: [{ requestId: "r" }], bad: [{}] },
  SESSION_OPTIONS: { good: [{ sessionId: "s" }, { sessionId: "s", modes: {}, configOptions: [], canSteer: true }], bad: [{}, { sessionId: "s", canSteer: 1 }] },
  SESSION_AGENTS: { good: [{ sessionId: "s", agents: [{ name: "a", title: "A", modes: ["m"] }, { name: "b", title: "B", description: "d", modes: [] }] }], bad: [{ sessionId: "s" }, { sessionId: "s", agents: [{ name: "a" }] }] },
  TURN_STARTED: { good: [{ messageId: "m" }], bad: [{}] },
  NOTICE: { good: [{ severity: "info", text: "t" }], bad: [{ severity: "loud", text: "t" }] },
};

/** The 24 types of the contract. */
const CONTRACT = [
  "WEBVIEW_READY", "STATUS_UPDATE", "GET_STATUS", "ERROR", "SEND_MESSAGE", "STREAM_TOKEN", "GENERATION_COMPLETE", "STOP_GENERATION", "GENERATION_CANCELLED",
  "CHAT_HISTORY", "OPEN_EXTERNAL_LINK", "CREATE_SESSION", "SESSION_CREATED", "GET_SESSIONS", "SESSIONS_LIST", "SELECT_SESSION", "SESSION_LOADED",
  "HISTORY_MESSAGE", "HISTORY_COMPLETE", "VERSION_STATUS", "ADD_CONTEXT_CHIP", "FILE_SEARCH", "SEARCH_RESULTS", "FOCUS_CHAT_INPUT",
];

describe("envelopes", () => {
  it("have all 24 types of the contract, each in one direction", () => {
    expect(CONTRACT).toHaveLength(24);
    for (const type of CONTRACT) expect([type in TO_EXTENSION, type in TO_WEBVIEW].filter(Boolean)).toHaveLength(1);
    expect(Object.keys(toExtension).sort()).toEqual(Object.keys(TO_EXTENSION).sort());
    expect(Object.keys(toWebview).sort()).toEqual(Object.keys(TO_WEBVIEW).sort());
  });

  describe.each([
    ["to the extension", toExtension as Record<string, { good: unknown[]; bad: unknown[] }>, isMessageToExtension, isMessageToWebview],
    ["to the webview", toWebview as Record<string, { good: unknown[]; bad: unknown[] }>, isMessageToWebview, isMessageToExtension],
  ] as const)("%s", (_name, cases, accepts, refuses) => {
    it.each(Object.keys(cases))("%s", (type) => {
      const { good = [], bad = [] } = cases[type] ?? {};
      for (const payload of good) {
        expect(accepts({ type, payload }), JSON.stringify(payload)).toBe(true);
        expect(refuses({ type, payload })).toBe(false);
        expect(accepts(JSON.parse(JSON.stringify({ type, payload })))).toBe(true);
      }
      for (const payload of bad) expect(accepts({ type, payload }), JSON.stringify(payload)).toBe(false);
    });
    it.each([null, undefined, 1, "x", [], {}, { type: 3 }, { type: "NO_SUCH_TYPE", payload: {} }, { type: "constructor", payload: {} }, { type: "__proto__", payload: {} }, { payload: {} }])("is no envelope: %j", (value) => expect(accepts(value)).toBe(false));
  });

  it("are made by one function", () => expect(message("TURN_STARTED", { messageId: "m" })).toEqual({ type: "TURN_STARTED", payload: { messageId: "m" } }));
});

describe("external links", () => {
  it.each(["http://example.org/a?b#c", "https://example.org/", "mailto:me@example.org", "HTTPS://EXAMPLE.org/"])("opens %s", (url) => expect(externalLink(url)).toBe(new URL(url).href));
  it.each(["javascript:alert(1)", "file:///etc/passwd", "vscode://x", "command:workbench.action.quit", "data:text/html,x", "ftp://x", "//example.org", "relative", "", " javascript:alert(1)"])("does not open %j", (url) => expect(externalLink(url)).toBeUndefined());
});
