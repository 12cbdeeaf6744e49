/** The history that `session/load` replays, as chat messages. */
import { fileURLToPath } from "node:url";
import type { ContentBlock, SessionUpdate } from "@agentclientprotocol/sdk";
import type { ChatMessage, MessageContext } from "../shared/types";

export interface ReplayOptions {
  readonly newId: () => string;
  readonly now: () => string;
}

/** What a replayed update means: a message that is complete, or an update to be shown as it is. */
export type Replayed = { readonly message: ChatMessage } | { readonly update: SessionUpdate };

interface OpenMessage {
  readonly role: "user" | "assistant";
  readonly messageId: string | undefined;
  content: string;
  readonly context: MessageContext[];
}

/**
 * Joins the chunks of a message. A message ends where another role, another message id or anything that is no message begins; a
 * picture or sound stays an update, because a chat message has no place for it.
 */
export class HistoryReplay {
  #open: OpenMessage | undefined;
  #count = 0;

  constructor(private readonly options: ReplayOptions) {}

  /** How many messages were given. */
  get messageCount(): number {
    return this.#count;
  }

  push(update: SessionUpdate): Replayed[] {
    const chunk = messageChunk(update);
    if (chunk === undefined) return [...this.end(), { update }];
    const finished = this.#open !== undefined && (this.#open.role !== chunk.role || this.#open.messageId !== chunk.messageId) ? this.end() : [];
    this.#open ??= { role: chunk.role, messageId: chunk.messageId, content: "", context: [] };
    if (chunk.content.type === "text") this.#open.content += chunk.content.text;
    else this.#open.context.push(contextOf(chunk.content));
    return finished;
  }

  /** The history is over, or something else comes: the open message is complete. */
  end(): Replayed[] {
    const open = this.#open;
    this.#open = undefined;
    if (open === undefined) return [];
    this.#count += 1;
    const context = open.context.length === 0 ? {} : { context: open.context };
    const id = open.messageId ?? this.options.newId();
    return [{ message: { id, role: open.role, content: open.content, timestamp: this.options.now(), status: "complete", ...context } }];
  }
}

type FileBlock = Extract<ContentBlock, { type: "text" } | { type: "resource_link" } | { type: "resource" }>;

function messageChunk(update: SessionUpdate): { role: "user" | "assistant"; messageId: string | undefined; content: FileBlock } | undefined {
  if (update.sessionUpdate !== "user_message_chunk" && update.sessionUpdate !== "agent_message_chunk") return undefined;
  const { content } = update;
  if (content.type !== "text" && content.type !== "resource_link" && content.type !== "resource") return undefined;
  const role = update.sessionUpdate === "user_message_chunk" ? "user" : "assistant";
  return { role, messageId: update.messageId ?? undefined, content };
}

export function contextOf(block: Exclude<FileBlock, { type: "text" }>): MessageContext {
  const uri = block.type === "resource_link" ? block.uri : block.resource.uri;
  const filePath = pathOf(uri);
  const fileName = block.type === "resource_link" && block.name !== "" ? block.name : filePath.slice(filePath.lastIndexOf("/") + 1);
  const text = block.type === "resource" && "text" in block.resource ? block.resource.text : undefined;
  return text === undefined ? { filePath, fileName } : { filePath, fileName, content: text };
}

function pathOf(uri: string): string {
  try {
    return uri.startsWith("file:") ? fileURLToPath(uri) : uri;
  } catch {
    return uri;
  }
}
