import { describe, expect, it } from "vitest";
import { type ChatAction, type ViewState, contractState, emptyView, fileUri, pathOf, reduceView } from "../src/webview/reducer";
import type { ChatMessage } from "../src/shared/types";

const apply = (...actions: ChatAction[]) => reduceView(emptyView(), actions);
const one = (state: ViewState, action: ChatAction) => reduceView(state, [action]);
const user = (text: string): ChatAction => ({ type: "ADD_USER_MESSAGE", payload: { blocks: [{ type: "text", text }] } });
const start = (messageId: string): ChatAction => ({ type: "START_GENERATION", payload: { messageId } });
const token = (messageId: string, text: string): ChatAction => ({ type: "STREAM_TOKEN", payload: { messageId, token: text } });
const complete = (messageId: string): ChatAction => ({ type: "COMPLETE_GENERATION", payload: { messageId } });
const cancel = (messageId: string): ChatAction => ({ type: "CANCEL_GENERATION", payload: { messageId } });
const error: ChatAction = { type: "ADD_ERROR_MESSAGE", payload: { title: "It failed", message: "why" } };
const tool = (status: string): ChatAction => ({ type: "SESSION_UPDATE", payload: { update: { sessionUpdate: "tool_call_update", toolCallId: "t", title: "List", status } as never } });
const past = (id: string, role: ChatMessage["role"], content: string, context?: ChatMessage["context"]): ChatMessage =>
  ({ id, role, content, timestamp: "", status: "complete", ...(context && { context }) });
const shape = (state: ViewState) => contractState(state).messages.map(({ role, content, status }) => `${role}:${content}:${status}`);

describe("the nine actions of the contract", () => {
  it("ADD_USER_MESSAGE appends the message and clears the input", () => {
    const before = one(emptyView(), { type: "SET_INPUT", payload: { value: "typed" } });
    expect(contractState(before).inputValue).toBe("typed");
    const state = one(before, user("Hello"));
    expect(shape(state)).toEqual(["user:Hello:complete"]);
    expect(contractState(state)).toMatchObject({ inputValue: "", isGenerating: false });
  });

  it("START_GENERATION appends an empty answer that streams", () => {
    const state = apply(user("Hi"), start("r"));
    expect(shape(state)).toEqual(["user:Hi:complete", "assistant::streaming"]);
    expect(contractState(state)).toMatchObject({ isGenerating: true, currentResponseId: "r" });
  });

  it("STREAM_TOKEN appends to the answer with its id", () => {
    const state = apply(user("Hi"), start("r"), token("r", "Hel"), token("other", "XX"), token("r", "lo"));
    expect(contractState(state).messages.at(-1)).toMatchObject({ id: "r", role: "assistant", content: "Hello", status: "streaming" });
    expect(contractState(state).messages).toHaveLength(2);
  });

  it("COMPLETE_GENERATION completes the answer", () => {
    const state = apply(user("Hi"), start("r"), token("r", "Hello"), complete("r"));
    expect(shape(state)).toEqual(["user:Hi:complete", "assistant:Hello:complete"]);
    expect(contractState(state)).toMatchObject({ isGenerating: false, currentResponseId: null });
    expect(shape(one(state, token("r", "late")))).toEqual(shape(state));
  });

  it("CANCEL_GENERATION cancels the answer", () => {
    const state = apply(user("Hi"), start("r"), token("r", "Hel"), cancel("r"));
    expect(shape(state)).toEqual(["user:Hi:complete", "assistant:Hel:cancelled"]);
    expect(contractState(state)).toMatchObject({ isGenerating: false, currentResponseId: null });
  });

  it("SET_MESSAGES replaces everything", () => {
    const state = apply(user("old"), start("r"), token("r", "x"), { type: "SET_MESSAGES", payload: { messages: [past("1", "user", "a"), past("2", "assistant", "b"), past("3", "error", "c")] } });
    expect(shape(state)).toEqual(["user:a:complete", "assistant:b:complete", "error:c:error"]);
    expect(contractState(state)).toMatchObject({ isGenerating: false, currentResponseId: null });
  });

  it("ADD_HISTORY_MESSAGE appends one message, with its files", () => {
    const context = [{ filePath: "/a b/x.ts", fileName: "x.ts" }, { filePath: "/y.ts", fileName: "y.ts", content: "text" }];
    const state = apply(
      { type: "ADD_HISTORY_MESSAGE", payload: { message: past("1", "user", "look", context) } },
      { type: "ADD_HISTORY_MESSAGE", payload: { message: past("2", "assistant", "seen") } },
      { type: "ADD_HISTORY_MESSAGE", payload: { message: past("3", "assistant", "again") } },
    );
    expect(contractState(state).messages).toEqual([past("1", "user", "look", context), past("2", "assistant", "seen"), past("3", "assistant", "again")]);
    expect(state.chat.items.every((item) => item.type !== "message" || !item.open)).toBe(true);
  });

  it("CLEAR_MESSAGES leaves nothing", () => {
    const state = apply(user("Hi"), start("r"), token("r", "x"), error, { type: "CLEAR_MESSAGES" });
    expect(contractState(state)).toEqual({ messages: [], isGenerating: false, currentResponseId: null, inputValue: "", focusedIndex: null });
    expect(shape(one(state, token("r", "late")))).toEqual([]);
  });

  it("ADD_ERROR_MESSAGE appends the error and ends the answer", () => {
    const state = apply(user("Hi"), start("r"), token("r", "x"), error);
    expect(shape(state)).toContain("error:why:error");
    expect(contractState(state).isGenerating).toBe(false);
    // The extension sends GENERATION_CANCELLED after every ERROR of a turn.
    expect(shape(one(state, cancel("r")))).toEqual(["user:Hi:complete", "assistant:x:cancelled", "error:why:error"]);
  });
});

describe("beyond the contract", () => {
  it("shows tool calls between the pieces of an answer, which is still one message", () => {
    const state = apply(user("Hi"), start("r"), token("r", "before "), tool("in_progress"), token("r", "after"), tool("completed"), complete("r"));
    expect(state.chat.items.map((item) => item.type)).toEqual(["message", "message", "tool", "message"]);
    expect(shape(state)).toEqual(["user:Hi:complete", "assistant:before after:complete"]);
  });

  it("asks and settles", () => {
    const request = { type: "permission", id: "q", params: { sessionId: "s", toolCall: { toolCallId: "t" }, options: [] } } as const;
    const asked = apply({ type: "ASK", payload: { request: request as never } });
    expect(asked.chat.requests).toEqual([request]);
    expect(one(asked, { type: "SETTLE", payload: { requestId: "q" } }).chat.requests).toEqual([]);
  });

  it("has the options of the session and the focus of the list", () => {
    const modes = { currentModeId: "a", availableModes: [{ id: "a", name: "A" }] };
    const state = apply({ type: "SET_OPTIONS", payload: { modes, configOptions: [] } }, { type: "FOCUS_MESSAGE", payload: { index: 3 } });
    expect(state.chat.modes).toEqual(modes);
    expect(contractState(state).focusedIndex).toBe(3);
  });

  it("gives the same state in one batch as one by one, and never changes an old one", () => {
    const actions = [user("a"), start("1"), token("1", "x"), tool("in_progress"), token("1", "y"), complete("1"), user("b"), start("2"), token("2", "z"), cancel("2"), error];
    const batch = apply(...actions);
    let single = emptyView();
    for (const action of actions) {
      const frozen = JSON.stringify(single);
      const next = one(single, action);
      expect(JSON.stringify(single)).toBe(frozen);
      single = next;
    }
    expect(contractState(single)).toEqual(contractState(batch));
    expect(single.chat).toEqual(batch.chat);
  });

  it("copies the list once for a thousand tokens of one frame", () => {
    const state = apply(user("a"), start("1"));
    const next = reduceView(state, Array.from({ length: 1000 }, () => token("1", "x")));
    expect(next.chat.items).toHaveLength(2);
    expect(contractState(next).messages[1]?.content).toHaveLength(1000);
  });

  it.each([["/a b/c#d?.ts", "file:///a%20b/c%23d%3F.ts"], ["C:\\a\\b.ts", "file:///C:/a/b.ts"], ["https://x/y", "https://x/y"]])("writes %s as an address", (path, uri) => {
    expect(fileUri(path)).toBe(uri);
    expect(pathOf(uri)).toBe(path.replaceAll("\\", "/"));
  });
});
