/** The sessions of one agent: create, load, switch, list, with the history that comes along. */
import { randomUUID } from "node:crypto";
import {
  type LoadSessionResponse, type NewSessionResponse, type SessionInfo, type SessionNotification, type SessionUpdate, methods,
} from "@agentclientprotocol/sdk";
import { isRecord } from "../shared/guards";
import type { ListedSession, SessionEntry } from "../shared/types";
import type { ReadyAgent } from "./agentConnection";
import { HistoryReplay, type Replayed } from "./history";
import type { SessionStore } from "./sessionStore";
import { DEFAULT_TITLE } from "./titles";

/** More pages than anybody scrolls through; an agent that never ends its list must not keep us asking. */
const MAX_LIST_PAGES = 20;

export type SessionOptions = Pick<NewSessionResponse | LoadSessionResponse, "modes" | "configOptions">;

export interface LoadedSession {
  readonly options: SessionOptions;
  readonly messageCount: number;
}

export interface LoadListener {
  /** Comes before anything of the history. */
  begun(sessionId: string): void;
  replayed(sessionId: string, replayed: Replayed): void;
}

export class Sessions {
  #loading: { readonly sessionId: string; readonly replay: HistoryReplay; readonly listener: LoadListener } | undefined;

  constructor(private readonly store: SessionStore, private readonly now: () => string = () => new Date().toISOString()) {}

  async create(agent: ReadyAgent, cwd: string): Promise<{ entry: SessionEntry; options: SessionOptions }> {
    const created = await agent.client.request(methods.agent.session.new, { cwd, mcpServers: [] });
    const entry: SessionEntry = { sessionId: created.sessionId, title: DEFAULT_TITLE, cwd, createdAt: this.now() };
    await this.store.activate(entry);
    return { entry, options: created };
  }

  canLoad(agent: ReadyAgent): boolean {
    return agent.info.agentCapabilities?.loadSession === true;
  }

  /**
   * Loads a session and gives its history to the listener as it comes. A second load that begins meanwhile takes over: what is still
   * replayed for the first one is then an ordinary update of a session that is not shown.
   */
  async load(agent: ReadyAgent, entry: SessionEntry, listener: LoadListener): Promise<LoadedSession> {
    const { sessionId, cwd } = entry;
    const replay = new HistoryReplay({ newId: randomUUID, now: this.now });
    const loading = { sessionId, replay, listener };
    this.#loading = loading;
    listener.begun(sessionId);
    try {
      const loaded = await agent.client.request(methods.agent.session.load, { sessionId, cwd, mcpServers: [] });
      if (this.#loading === loading) replay.end().forEach((each) => listener.replayed(sessionId, each));
      await this.store.activate(entry);
      return { options: isRecord(loaded) ? loaded : {}, messageCount: replay.messageCount };
    } finally {
      if (this.#loading === loading) this.#loading = undefined;
    }
  }

  /** Takes an update if it belongs to a history that is being replayed. */
  handleReplay({ sessionId, update }: SessionNotification): boolean {
    const loading = this.#loading;
    if (loading === undefined || loading.sessionId !== sessionId) return false;
    loading.replay.push(update).forEach((each) => loading.listener.replayed(sessionId, each));
    return true;
  }

  /** Ours, and those that were begun at other doors, the latest first. */
  async list(agent: ReadyAgent | undefined): Promise<ListedSession[]> {
    const listed = new Map<string, ListedSession>();
    for (const entry of this.store.sessions) listed.set(entry.sessionId, { ...entry, origin: "here" });
    if (agent?.info.agentCapabilities?.sessionCapabilities?.list) {
      for (const info of await agentSessions(agent)) listed.set(info.sessionId, listedSession(info, this.store.find(info.sessionId)));
    }
    return [...listed.values()].sort((a, b) => (a.updatedAt ?? a.createdAt) < (b.updatedAt ?? b.createdAt) ? 1 : -1);
  }

  /** What is known of a session that may have been begun elsewhere. */
  async find(agent: ReadyAgent, sessionId: string): Promise<SessionEntry | undefined> {
    const known = this.store.find(sessionId);
    if (known !== undefined) return known;
    const found = (await this.list(agent)).find((session) => session.sessionId === sessionId);
    return found && { sessionId, title: found.title, cwd: found.cwd, createdAt: found.createdAt };
  }
}

async function agentSessions(agent: ReadyAgent): Promise<SessionInfo[]> {
  const sessions: SessionInfo[] = [];
  let cursor: string | null | undefined;
  for (let page = 0; page < MAX_LIST_PAGES; page += 1) {
    const list = await agent.client.request(methods.agent.session.list, cursor == null ? {} : { cursor });
    sessions.push(...list.sessions);
    cursor = list.nextCursor;
    if (cursor == null) break;
  }
  return sessions;
}

function listedSession(info: SessionInfo, ours: SessionEntry | undefined): ListedSession {
  const updated = info.updatedAt == null ? {} : { updatedAt: info.updatedAt };
  const title = info.title == null || info.title === "" ? (ours?.title ?? DEFAULT_TITLE) : info.title;
  const createdAt = ours?.createdAt ?? info.updatedAt ?? new Date(0).toISOString();
  return { sessionId: info.sessionId, title, cwd: info.cwd, createdAt, origin: ours === undefined ? "elsewhere" : "here", ...updated };
}

/** Whether an update is a piece of the agent's plain answer. */
export function answerText(update: SessionUpdate): string | undefined {
  return update.sessionUpdate === "agent_message_chunk" && update.content.type === "text" ? update.content.text : undefined;
}
