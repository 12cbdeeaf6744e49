/** The state of the chat view: the nine actions of the bridge's contract, and those beyond it, on the reducer of the web page. */
import type { Action as SharedAction, ContentBlock, Item, OpenRequest, SessionOpened, SessionUpdate } from "../../../../web/src/chat";
import { type ChatState as SharedChat, emptyChat } from "../../../../web/src/chat/state";
import { plainText, reduce } from "../../../../web/src/chat/reduce";
import type { AgentChoice, ChatMessage, MessageContext, MessageStatus } from "../shared/types";

export type ChatAction =
  | { readonly type: "ADD_USER_MESSAGE"; readonly payload: { readonly blocks: readonly ContentBlock[] } }
  | { readonly type: "START_GENERATION"; readonly payload: { readonly messageId: string } }
  | { readonly type: "STREAM_TOKEN"; readonly payload: { readonly messageId: string; readonly token: string } }
  | { readonly type: "COMPLETE_GENERATION"; readonly payload: { readonly messageId: string } }
  | { readonly type: "CANCEL_GENERATION"; readonly payload: { readonly messageId: string } }
  | { readonly type: "SET_MESSAGES"; readonly payload: { readonly messages: readonly ChatMessage[] } }
  | { readonly type: "ADD_HISTORY_MESSAGE"; readonly payload: { readonly message: ChatMessage } }
  | { readonly type: "CLEAR_MESSAGES" }
  | { readonly type: "ADD_ERROR_MESSAGE"; readonly payload: { readonly title: string; readonly message: string } }
  // Beyond the contract: what it lists as missing, and what the view itself does.
  | { readonly type: "SESSION_UPDATE"; readonly payload: { readonly update: SessionUpdate } }
  | { readonly type: "ASK"; readonly payload: { readonly request: OpenRequest } }
  | { readonly type: "SETTLE"; readonly payload: { readonly requestId: string } }
  | { readonly type: "SET_OPTIONS"; readonly payload: SessionOpened }
  | { readonly type: "SET_AGENTS"; readonly payload: { readonly agents: readonly AgentChoice[] } }
  | { readonly type: "SET_INPUT"; readonly payload: { readonly value: string } }
  | { readonly type: "FOCUS_MESSAGE"; readonly payload: { readonly index: number | null } };

export interface ViewState {
  readonly chat: SharedChat;
  readonly currentResponseId: string | null;
  readonly inputValue: string;
  readonly focusedIndex: number | null;
  /** How our own answers ended. One that is not here is complete. */
  readonly outcomes: Readonly<Record<string, "cancelled">>;
}

export function emptyView(): ViewState {
  return { chat: emptyChat(), currentResponseId: null, inputValue: "", focusedIndex: null, outcomes: {} };
}

/** Takes everything of one animation frame at once: the list of items is copied once, however many tokens came. */
export function reduceView(state: ViewState, actions: readonly ChatAction[]): ViewState {
  let view = state;
  let pending: SharedAction[] = [];
  const settle = () => {
    if (pending.length === 0) return;
    view = { ...view, chat: reduce(view.chat, pending) };
    pending = [];
  };
  for (const action of actions) {
    if (action.type === "CLEAR_MESSAGES" || action.type === "SET_MESSAGES") {
      pending = [];
      view = { ...view, chat: cleared(view.chat), currentResponseId: null, focusedIndex: null, outcomes: {} };
    }
    pending.push(...sharedActions(view, action));
    view = withOwn(view, action);
  }
  settle();
  return view;
}

/** What an action means to the page's reducer. */
function sharedActions(view: ViewState, action: ChatAction): SharedAction[] {
  switch (action.type) {
    case "ADD_USER_MESSAGE": return [{ type: "prompted", blocks: [...action.payload.blocks] }, ...(view.chat.running ? [] : ended)];
    case "START_GENERATION": return [{ type: "started" }];
    case "STREAM_TOKEN": {
      const { messageId, token } = action.payload;
      // A token of an answer that is over, or of a session that is not shown any more.
      if (messageId !== view.currentResponseId) return [];
      return [update({ sessionUpdate: "agent_message_chunk", messageId, content: { type: "text", text: token } })];
    }
    case "COMPLETE_GENERATION":
    case "CANCEL_GENERATION": {
      if (action.payload.messageId !== view.currentResponseId) return [];
      return [{ type: "ended", stopReason: action.type === "CANCEL_GENERATION" ? "cancelled" : "end_turn" }];
    }
    case "SET_MESSAGES": return action.payload.messages.flatMap(historyActions);
    case "ADD_HISTORY_MESSAGE": return historyActions(action.payload.message);
    case "CLEAR_MESSAGES": return [];
    case "ADD_ERROR_MESSAGE": return [{ type: "failed", title: action.payload.title, description: action.payload.message }];
    case "SESSION_UPDATE": return [update(action.payload.update)];
    case "ASK": return [{ type: "asked", request: action.payload.request }];
    case "SETTLE": return [{ type: "settled", id: action.payload.requestId }];
    case "SET_OPTIONS": return [{ type: "opened", opened: action.payload }];
    case "SET_AGENTS": return [{ type: "agents", agents: action.payload.agents.map((agent) => ({ ...agent, modes: [...agent.modes] })) }];
    case "SET_INPUT":
    case "FOCUS_MESSAGE": return [];
  }
}

/** What an action changes beside the conversation. */
function withOwn(view: ViewState, action: ChatAction): ViewState {
  switch (action.type) {
    case "ADD_USER_MESSAGE": return { ...view, inputValue: "" };
    case "START_GENERATION": return { ...view, currentResponseId: action.payload.messageId };
    case "COMPLETE_GENERATION":
    case "CANCEL_GENERATION": {
      const { messageId } = action.payload;
      if (messageId !== view.currentResponseId) return view;
      const outcomes = action.type === "CANCEL_GENERATION" ? { ...view.outcomes, [messageId]: "cancelled" as const } : view.outcomes;
      return { ...view, currentResponseId: null, outcomes };
    }
    // The contract: an error ends the answer. The cancellation that follows it finds the answer by its id.
    case "SET_INPUT": return { ...view, inputValue: action.payload.value };
    case "FOCUS_MESSAGE": return { ...view, focusedIndex: action.payload.index };
    case "STREAM_TOKEN":
    case "SET_MESSAGES":
    case "ADD_HISTORY_MESSAGE":
    case "CLEAR_MESSAGES":
    case "ADD_ERROR_MESSAGE":
    case "SESSION_UPDATE":
    case "ASK":
    case "SETTLE":
    case "SET_AGENTS":
    case "SET_OPTIONS": return view;
  }
}

const ended: SharedAction[] = [{ type: "ended", stopReason: null }];

function update(update: SessionUpdate): SharedAction {
  return { type: "update", update };
}

/** A message of the history, which is complete as it comes. */
function historyActions(message: ChatMessage): SharedAction[] {
  if (message.role === "error") return [{ type: "failed", title: message.content, description: null }];
  const sessionUpdate = message.role === "user" ? "user_message_chunk" : "agent_message_chunk";
  const blocks: ContentBlock[] = [...(message.content === "" ? [] : [text(message.content)]), ...(message.context ?? []).map(contextBlock)];
  return [...blocks.map((content) => update({ sessionUpdate, messageId: message.id, content })), ...ended];
}

function text(value: string): ContentBlock {
  return { type: "text", text: value };
}

function contextBlock({ filePath, fileName, content }: MessageContext): ContentBlock {
  const uri = fileUri(filePath);
  if (content === undefined) return { type: "resource_link", uri, name: fileName };
  return { type: "resource", resource: { uri, text: content } };
}

export function fileUri(path: string): string {
  if (/^[a-z][a-z0-9+.-]+:/i.test(path) && !/^[a-z]:[\\/]/i.test(path)) return path;
  const slashes = path.replaceAll("\\", "/");
  return `file://${slashes.startsWith("/") ? "" : "/"}${encodeURI(slashes).replaceAll("#", "%23").replaceAll("?", "%3F")}`;
}

/** Nothing of the conversation stays; commands, modes and options come anew with the session. */
function cleared(chat: SharedChat): SharedChat {
  return { ...emptyChat(), made: chat.made };
}

/** The state as the contract has it. */
export interface ContractState {
  readonly messages: readonly ChatMessage[];
  readonly isGenerating: boolean;
  readonly currentResponseId: string | null;
  readonly inputValue: string;
  readonly focusedIndex: number | null;
}

/** The contract's view of the state: pieces of one answer, which tool calls separate in the list, are one message here. */
export function contractState(view: ViewState): ContractState {
  const messages: ChatMessage[] = [];
  for (const item of view.chat.items) {
    const message = messageOf(view, item);
    const last = messages.at(-1);
    if (message === undefined) continue;
    if (last !== undefined && last.id === message.id) messages[messages.length - 1] = { ...last, content: last.content + message.content, status: message.status };
    else messages.push(message);
  }
  const { currentResponseId, inputValue, focusedIndex } = view;
  if (currentResponseId !== null && !messages.some(({ id }) => id === currentResponseId)) {
    messages.push({ id: currentResponseId, role: "assistant", content: "", timestamp: "", status: "streaming" });
  }
  return { messages, isGenerating: view.chat.running, currentResponseId, inputValue, focusedIndex };
}

function messageOf(view: ViewState, item: Item): ChatMessage | undefined {
  if (item.type === "notice" && item.severity === "error") {
    return { id: item.id, role: "error", content: item.description ?? item.title, timestamp: "", status: "error" };
  }
  if (item.type !== "message") return undefined;
  const id = item.messageId ?? item.id;
  const content = item.blocks.map((block) => (block.type === "text" ? plainText(block) : "")).join("");
  const context = item.blocks.flatMap(blockContext);
  const role = item.role === "user" ? "user" : "assistant";
  return { id, role, content, timestamp: "", status: statusOf(view, id), ...(context.length > 0 && { context }) };
}

function statusOf(view: ViewState, id: string): MessageStatus {
  if (id === view.currentResponseId) return "streaming";
  return view.outcomes[id] ?? "complete";
}

function blockContext(block: ContentBlock): MessageContext[] {
  if (block.type === "resource_link") return [{ filePath: pathOf(block.uri), fileName: block.name }];
  if (block.type !== "resource") return [];
  const filePath = pathOf(block.resource.uri);
  const fileName = filePath.slice(filePath.lastIndexOf("/") + 1);
  return [block.resource.text === undefined ? { filePath, fileName } : { filePath, fileName, content: block.resource.text }];
}

export function pathOf(uri: string): string {
  if (!uri.startsWith("file://")) return uri;
  const path = decodeURIComponent(uri.slice("file://".length));
  return /^\/[a-z]:/i.test(path) ? path.slice(1) : path;
}
