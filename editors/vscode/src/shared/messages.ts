/** The messages between extension and webview: typed envelopes `{ type, payload }` and their guards. */
import type { CreateElicitationRequest, PermissionOption, SessionUpdate, ToolCallUpdate } from "@agentclientprotocol/sdk";
import {
  type Guard, isArrayOf, isBoolean, isEither, isLineNumber, isNonEmptyString, isNumber, isObject, isOneOf, isRecord, isString, isUnknown,
} from "./guards";
import {
  type AgentChoice, type ChatMessage, type ContextChip, type FileSearchResult, type LineRange, type ListedSession, type MessageContext, type ProcessStatus,
  type SessionEntry, type VersionStatus, MESSAGE_ROLES, MESSAGE_STATUSES, PROCESS_STATUSES, VERSION_STATES,
} from "./types";

/** What a button of an error or a blocked state may start. Nothing else can be started from the webview. */
export const ACTIONS = ["restart", "install", "showLog", "openSettings", "attach"] as const;
export type Action = (typeof ACTIONS)[number];

export interface ErrorPayload {
  readonly title: string;
  readonly message: string;
  readonly action?: { readonly label: string; readonly action: Action };
}

/** A picture that was pasted or chosen, in base64. */
export interface AttachedImage {
  readonly data: string;
  readonly mimeType: string;
}

export interface PermissionRequestPayload {
  readonly requestId: string;
  readonly sessionId: string;
  readonly toolCall: ToolCallUpdate;
  readonly options: readonly PermissionOption[];
}

/** What the webview sends. */
export interface ToExtension {
  WEBVIEW_READY: { readonly version: string };
  GET_STATUS: Record<string, never>;
  SEND_MESSAGE: {
    readonly content: string;
    readonly messageId: string;
    readonly responseId: string;
    readonly contextChips?: readonly ContextChip[];
    readonly images?: readonly AttachedImage[];
  };
  STOP_GENERATION: Record<string, never>;
  OPEN_EXTERNAL_LINK: { readonly url: string };
  CREATE_SESSION: { readonly workingDirectory?: string };
  GET_SESSIONS: Record<string, never>;
  SELECT_SESSION: { readonly sessionId: string };
  FILE_SEARCH: { readonly query: string };
  /** `optionId` null: dismissed without a choice. */
  PERMISSION_RESPONSE: { readonly requestId: string; readonly optionId: string | null; readonly meta?: Record<string, unknown> };
  ELICITATION_RESPONSE: { readonly requestId: string; readonly action: "accept" | "decline" | "cancel"; readonly content?: Record<string, unknown> };
  SET_CONFIG_OPTION: { readonly configId: string; readonly value: string | boolean };
  SET_MODE: { readonly modeId: string };
  OPEN_FILE: { readonly path: string; readonly line?: number };
  OPEN_DIFF: { readonly toolCallId: string };
  OPEN_TERMINAL: { readonly terminalId: string };
  /** Files that were dropped on the input, as URIs. */
  ADD_FILES: { readonly uris: readonly string[] };
  RUN_ACTION: { readonly action: Action };
}

/** What the extension sends. */
export interface ToWebview {
  STATUS_UPDATE: { readonly status: ProcessStatus; readonly message?: string };
  ERROR: ErrorPayload;
  STREAM_TOKEN: { readonly messageId: string; readonly token: string; readonly done: boolean };
  GENERATION_COMPLETE: { readonly messageId: string; readonly stopReason?: string };
  GENERATION_CANCELLED: { readonly messageId: string };
  CHAT_HISTORY: { readonly messages: readonly ChatMessage[] };
  SESSION_CREATED: { readonly session: SessionEntry };
  SESSIONS_LIST: { readonly sessions: readonly ListedSession[]; readonly activeSessionId: string | null };
  SESSION_LOADED: { readonly sessionId: string; readonly historyUnavailable?: boolean };
  HISTORY_MESSAGE: { readonly message: ChatMessage; readonly isReplay: true };
  HISTORY_COMPLETE: { readonly sessionId: string; readonly messageCount: number };
  VERSION_STATUS: VersionStatus;
  ADD_CONTEXT_CHIP: { readonly chip: ContextChip };
  SEARCH_RESULTS: { readonly results: readonly FileSearchResult[]; readonly query: string };
  FOCUS_CHAT_INPUT: Record<string, never>;
  /** Everything of a `session/update` that is not plain text of the own turn: tool calls, thoughts, plan, usage, other clients. */
  SESSION_UPDATE: { readonly sessionId: string; readonly update: SessionUpdate };
  PERMISSION_REQUEST: PermissionRequestPayload;
  /** The request is settled; `optionId` null: without a choice, or elsewhere. */
  PERMISSION_RESOLVED: { readonly requestId: string; readonly optionId: string | null };
  ELICITATION_REQUEST: { readonly requestId: string; readonly request: CreateElicitationRequest };
  ELICITATION_RESOLVED: { readonly requestId: string };
  /** Modes and config options as the agent gave them with the session. */
  SESSION_OPTIONS: { readonly sessionId: string; readonly modes?: unknown; readonly configOptions?: unknown; readonly canSteer?: boolean };
  /** The agents that the session can be set to, where the agent's program has more than one. */
  SESSION_AGENTS: { readonly sessionId: string; readonly agents: readonly AgentChoice[] };
  /** The session that is shown has a turn under way: the next tokens belong to this answer. */
  TURN_STARTED: { readonly messageId: string };
  NOTICE: { readonly severity: "info" | "warning" | "error"; readonly text: string };
}

export type WebviewMessagePayloads = ToExtension & ToWebview;
export type WebviewMessageType = keyof WebviewMessagePayloads;

export interface WebviewMessage<T extends WebviewMessageType> {
  readonly type: T;
  readonly payload: WebviewMessagePayloads[T];
}

export type MessageToExtension = { [T in keyof ToExtension]: WebviewMessage<T> }[keyof ToExtension];
export type MessageToWebview = { [T in keyof ToWebview]: WebviewMessage<T> }[keyof ToWebview];
export type AnyWebviewMessage = MessageToExtension | MessageToWebview;

export function message<T extends WebviewMessageType>(type: T, payload: WebviewMessagePayloads[T]): WebviewMessage<T> {
  return { type, payload };
}

const isEmpty = isRecord as Guard<Record<string, never>>;
const isRange: Guard<LineRange> = (value): value is LineRange =>
  isObject<LineRange>({ required: { startLine: isLineNumber, endLine: isLineNumber } })(value) && value.startLine <= value.endLine;

export const isContextChip = isObject<ContextChip>({
  required: { id: isNonEmptyString, filePath: isNonEmptyString, fileName: isString },
  optional: { languageId: isString, range: isRange },
});
const isImage = isObject<AttachedImage>({ required: { data: isString, mimeType: isNonEmptyString } });
const isContext = isObject<MessageContext>({ required: { filePath: isString, fileName: isString }, optional: { content: isString } });
export const isChatMessage = isObject<ChatMessage>({
  required: {
    id: isNonEmptyString, role: isOneOf(MESSAGE_ROLES), content: isString, timestamp: isString, status: isOneOf(MESSAGE_STATUSES),
  },
  optional: { context: isArrayOf(isContext) },
});
const entryFields = { sessionId: isNonEmptyString, title: isString, cwd: isString, createdAt: isString };
export const isSessionEntry = isObject<SessionEntry>({ required: entryFields });
const isListed = isObject<ListedSession>({
  required: { ...entryFields, origin: isOneOf(["here", "elsewhere"]) },
  optional: { updatedAt: isString },
});
const isVersionStatus = isObject<VersionStatus>({
  required: { status: isOneOf(VERSION_STATES), minimumVersion: isString },
  optional: {
    detectedVersion: isString, installUrl: isString, updateUrl: isString,
    hint: isObject<{ text: string; command: string }>({ required: { text: isString, command: isString } }),
  },
});
const isResult = isObject<FileSearchResult>({ required: { filePath: isString, fileName: isString, relativePath: isString } });
const isUpdate: Guard<SessionUpdate> = (value): value is SessionUpdate => isRecord(value) && isNonEmptyString(value["sessionUpdate"]);
const isToolCall: Guard<ToolCallUpdate> = (value): value is ToolCallUpdate => isRecord(value) && isNonEmptyString(value["toolCallId"]);
const isOption: Guard<PermissionOption> = (value): value is PermissionOption =>
  isRecord(value) && isNonEmptyString(value["optionId"]) && isString(value["name"]) && isString(value["kind"]);
const isElicitation: Guard<CreateElicitationRequest> = (value): value is CreateElicitationRequest =>
  isRecord(value) && isString(value["message"]) && isString(value["mode"]);
const isAgentChoice = isObject<AgentChoice>({
  required: { name: isNonEmptyString, title: isString, modes: isArrayOf(isString) },
  optional: { description: isString },
});
export const isAgentList = isObject<{ agents: readonly AgentChoice[] }>({ required: { agents: isArrayOf(isAgentChoice) } });
const isOptionId = isEither(isString, isOneOf([null]));

type PayloadGuards<M> = { readonly [T in keyof M]: Guard<M[T]> };

export const TO_EXTENSION: PayloadGuards<ToExtension> = {
  WEBVIEW_READY: isObject<ToExtension["WEBVIEW_READY"]>({ required: { version: isString } }),
  GET_STATUS: isEmpty,
  SEND_MESSAGE: isObject<ToExtension["SEND_MESSAGE"]>({
    required: { content: isString, messageId: isNonEmptyString, responseId: isNonEmptyString },
    optional: { contextChips: isArrayOf(isContextChip), images: isArrayOf(isImage) },
  }),
  STOP_GENERATION: isEmpty,
  OPEN_EXTERNAL_LINK: isObject<ToExtension["OPEN_EXTERNAL_LINK"]>({ required: { url: isNonEmptyString } }),
  CREATE_SESSION: isObject<ToExtension["CREATE_SESSION"]>({ required: {}, optional: { workingDirectory: isNonEmptyString } }),
  GET_SESSIONS: isEmpty,
  SELECT_SESSION: isObject<ToExtension["SELECT_SESSION"]>({ required: { sessionId: isNonEmptyString } }),
  FILE_SEARCH: isObject<ToExtension["FILE_SEARCH"]>({ required: { query: isString } }),
  PERMISSION_RESPONSE: isObject<ToExtension["PERMISSION_RESPONSE"]>({ required: { requestId: isNonEmptyString, optionId: isOptionId }, optional: { meta: isRecord } }),
  ELICITATION_RESPONSE: isObject<ToExtension["ELICITATION_RESPONSE"]>({
    required: { requestId: isNonEmptyString, action: isOneOf(["accept", "decline", "cancel"]) },
    optional: { content: isRecord },
  }),
  SET_CONFIG_OPTION: isObject<ToExtension["SET_CONFIG_OPTION"]>({ required: { configId: isNonEmptyString, value: isEither(isString, isBoolean) } }),
  SET_MODE: isObject<ToExtension["SET_MODE"]>({ required: { modeId: isNonEmptyString } }),
  OPEN_FILE: isObject<ToExtension["OPEN_FILE"]>({ required: { path: isNonEmptyString }, optional: { line: isLineNumber } }),
  OPEN_DIFF: isObject<ToExtension["OPEN_DIFF"]>({ required: { toolCallId: isNonEmptyString } }),
  OPEN_TERMINAL: isObject<ToExtension["OPEN_TERMINAL"]>({ required: { terminalId: isNonEmptyString } }),
  ADD_FILES: isObject<ToExtension["ADD_FILES"]>({ required: { uris: isArrayOf(isString) } }),
  RUN_ACTION: isObject<ToExtension["RUN_ACTION"]>({ required: { action: isOneOf(ACTIONS) } }),
};

export const TO_WEBVIEW: PayloadGuards<ToWebview> = {
  STATUS_UPDATE: isObject<ToWebview["STATUS_UPDATE"]>({ required: { status: isOneOf(PROCESS_STATUSES) }, optional: { message: isString } }),
  ERROR: isObject<ErrorPayload>({
    required: { title: isString, message: isString },
    optional: { action: isObject<{ label: string; action: Action }>({ required: { label: isString, action: isOneOf(ACTIONS) } }) },
  }),
  STREAM_TOKEN: isObject<ToWebview["STREAM_TOKEN"]>({ required: { messageId: isNonEmptyString, token: isString, done: isBoolean } }),
  GENERATION_COMPLETE: isObject<ToWebview["GENERATION_COMPLETE"]>({ required: { messageId: isNonEmptyString }, optional: { stopReason: isString } }),
  GENERATION_CANCELLED: isObject<ToWebview["GENERATION_CANCELLED"]>({ required: { messageId: isNonEmptyString } }),
  CHAT_HISTORY: isObject<ToWebview["CHAT_HISTORY"]>({ required: { messages: isArrayOf(isChatMessage) } }),
  SESSION_CREATED: isObject<ToWebview["SESSION_CREATED"]>({ required: { session: isSessionEntry } }),
  SESSIONS_LIST: isObject<ToWebview["SESSIONS_LIST"]>({
    required: { sessions: isArrayOf(isListed), activeSessionId: isEither(isString, isOneOf([null])) },
  }),
  SESSION_LOADED: isObject<ToWebview["SESSION_LOADED"]>({ required: { sessionId: isNonEmptyString }, optional: { historyUnavailable: isBoolean } }),
  HISTORY_MESSAGE: isObject<ToWebview["HISTORY_MESSAGE"]>({ required: { message: isChatMessage, isReplay: isOneOf([true]) } }),
  HISTORY_COMPLETE: isObject<ToWebview["HISTORY_COMPLETE"]>({ required: { sessionId: isNonEmptyString, messageCount: isNumber } }),
  VERSION_STATUS: isVersionStatus,
  ADD_CONTEXT_CHIP: isObject<ToWebview["ADD_CONTEXT_CHIP"]>({ required: { chip: isContextChip } }),
  SEARCH_RESULTS: isObject<ToWebview["SEARCH_RESULTS"]>({ required: { results: isArrayOf(isResult), query: isString } }),
  FOCUS_CHAT_INPUT: isEmpty,
  SESSION_UPDATE: isObject<ToWebview["SESSION_UPDATE"]>({ required: { sessionId: isNonEmptyString, update: isUpdate } }),
  PERMISSION_REQUEST: isObject<PermissionRequestPayload>({
    required: { requestId: isNonEmptyString, sessionId: isNonEmptyString, toolCall: isToolCall, options: isArrayOf(isOption) },
  }),
  PERMISSION_RESOLVED: isObject<ToWebview["PERMISSION_RESOLVED"]>({ required: { requestId: isNonEmptyString, optionId: isOptionId } }),
  ELICITATION_REQUEST: isObject<ToWebview["ELICITATION_REQUEST"]>({ required: { requestId: isNonEmptyString, request: isElicitation } }),
  ELICITATION_RESOLVED: isObject<ToWebview["ELICITATION_RESOLVED"]>({ required: { requestId: isNonEmptyString } }),
  SESSION_OPTIONS: isObject<ToWebview["SESSION_OPTIONS"]>({ required: { sessionId: isNonEmptyString }, optional: { modes: isUnknown, configOptions: isUnknown, canSteer: isBoolean } }),
  SESSION_AGENTS: isObject<ToWebview["SESSION_AGENTS"]>({ required: { sessionId: isNonEmptyString, agents: isArrayOf(isAgentChoice) } }),
  TURN_STARTED: isObject<ToWebview["TURN_STARTED"]>({ required: { messageId: isNonEmptyString } }),
  NOTICE: isObject<ToWebview["NOTICE"]>({ required: { severity: isOneOf(["info", "warning", "error"]), text: isString } }),
};

function isEnvelope<M>(guards: PayloadGuards<M>, value: unknown): boolean {
  if (!isRecord(value) || !isString(value["type"]) || !Object.hasOwn(guards, value["type"])) return false;
  return guards[value["type"] as keyof M](value["payload"]);
}

export function isMessageToExtension(value: unknown): value is MessageToExtension {
  return isEnvelope(TO_EXTENSION, value);
}

export function isMessageToWebview(value: unknown): value is MessageToWebview {
  return isEnvelope(TO_WEBVIEW, value);
}
