/** What extension and webview both know: the state of the agent's process, chat messages, sessions, context chips. */

export const PROCESS_STATUSES = ["stopped", "starting", "running", "error"] as const;
export type ProcessStatus = (typeof PROCESS_STATUSES)[number];

export const MESSAGE_ROLES = ["user", "assistant", "error"] as const;
export type MessageRole = (typeof MESSAGE_ROLES)[number];

export const MESSAGE_STATUSES = ["pending", "streaming", "complete", "cancelled", "error"] as const;
export type MessageStatus = (typeof MESSAGE_STATUSES)[number];

/** A file that a message refers to. `content` is there when the agent embedded it. */
export interface MessageContext {
  readonly filePath: string;
  readonly fileName: string;
  readonly content?: string;
}

export interface ChatMessage {
  readonly id: string;
  readonly role: MessageRole;
  readonly content: string;
  /** ISO 8601; a replayed message has the time at which it was read again. */
  readonly timestamp: string;
  readonly status: MessageStatus;
  readonly context?: readonly MessageContext[];
}

/** Lines are counted from 1, both ends are included, as an editor shows them. */
export interface LineRange {
  readonly startLine: number;
  readonly endLine: number;
}

/** An agent that a session can be set to, by one of its modes; the first is its default. */
export interface AgentChoice {
  readonly name: string;
  readonly title: string;
  readonly description?: string;
  readonly modes: readonly string[];
}

export interface ContextChip {
  readonly id: string;
  readonly filePath: string;
  readonly fileName: string;
  readonly languageId?: string;
  /** Without a range the chip is the whole file. */
  readonly range?: LineRange;
}

export interface FileSearchResult {
  readonly filePath: string;
  readonly fileName: string;
  readonly relativePath: string;
}

export interface SessionEntry {
  readonly sessionId: string;
  readonly title: string;
  readonly cwd: string;
  /** ISO 8601. */
  readonly createdAt: string;
}

/** A session as the picker shows it: one of ours, or one that was begun at another door of the same agent. */
export interface ListedSession extends SessionEntry {
  readonly origin: "here" | "elsewhere";
  readonly updatedAt?: string;
}

export const VERSION_STATES = ["compatible", "blocked_missing", "blocked_outdated"] as const;
export type VersionState = (typeof VERSION_STATES)[number];

export interface VersionStatus {
  readonly status: VersionState;
  readonly detectedVersion?: string;
  readonly minimumVersion: string;
  readonly installUrl?: string;
  readonly updateUrl?: string;
  /** Where no native binary exists: what to do instead, and the command to paste. */
  readonly hint?: { readonly text: string; readonly command: string };
}
