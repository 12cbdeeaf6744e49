/** Which sessions this editor knows: metadata only, the conversations stay with the agent. */
import { isArrayOf, isObject, isOneOf, isRecord, isString } from "../shared/guards";
import { isSessionEntry } from "../shared/messages";
import type { SessionEntry } from "../shared/types";

export const SESSIONS_KEY = "goose.sessions.v1";
export const ACTIVE_SESSION_KEY = "goose.activeSession";
export const SCHEMA_VERSION = 1;

/** The picker shows the newest; older ones stay with the agent, whose own list has them. */
export const MAX_STORED_SESSIONS = 200;

export interface SessionStorageData {
  readonly schemaVersion: 1;
  readonly activeSessionId: string | null;
  readonly sessions: readonly SessionEntry[];
}

/** The part of VS Code's `Memento` that is used. */
export interface KeyValueStore {
  get(key: string): unknown;
  update(key: string, value: unknown): PromiseLike<void>;
}

const isStored = isObject<{ schemaVersion: 1; sessions: readonly unknown[] }>({
  required: { schemaVersion: (value): value is 1 => value === SCHEMA_VERSION, sessions: isArrayOf((_each): _each is unknown => true) },
});

export class SessionStore {
  #data: SessionStorageData;

  constructor(private readonly store: KeyValueStore) {
    this.#data = read(store);
  }

  get sessions(): readonly SessionEntry[] {
    return this.#data.sessions;
  }

  get activeSessionId(): string | null {
    return this.#data.activeSessionId;
  }

  find(sessionId: string): SessionEntry | undefined {
    return this.#data.sessions.find((entry) => entry.sessionId === sessionId);
  }

  /** Adds a session, or replaces what was known of it, and makes it the active one. The newest stands first. */
  async activate(entry: SessionEntry): Promise<void> {
    const others = this.#data.sessions.filter((known) => known.sessionId !== entry.sessionId);
    const sessions = this.find(entry.sessionId) === undefined ? [entry, ...others] : this.#replaced(entry);
    await this.#write({ ...this.#data, activeSessionId: entry.sessionId, sessions: sessions.slice(0, MAX_STORED_SESSIONS) });
  }

  async setTitle(sessionId: string, title: string): Promise<void> {
    const entry = this.find(sessionId);
    if (entry === undefined || entry.title === title) return;
    await this.#write({ ...this.#data, sessions: this.#replaced({ ...entry, title }) });
  }

  async forget(sessionId: string): Promise<void> {
    const activeSessionId = this.#data.activeSessionId === sessionId ? null : this.#data.activeSessionId;
    const sessions = this.#data.sessions.filter((entry) => entry.sessionId !== sessionId);
    await this.#write({ ...this.#data, activeSessionId, sessions });
  }

  #replaced(entry: SessionEntry): readonly SessionEntry[] {
    return this.#data.sessions.map((known) => (known.sessionId === entry.sessionId ? entry : known));
  }

  async #write(data: SessionStorageData): Promise<void> {
    this.#data = data;
    await this.store.update(SESSIONS_KEY, data);
    await this.store.update(ACTIVE_SESSION_KEY, data.activeSessionId);
  }
}

/** Data of another schema version is left alone until something is written; entries that cannot be read are dropped one by one. */
function read(store: KeyValueStore): SessionStorageData {
  const stored = store.get(SESSIONS_KEY);
  const sessions = isStored(stored) ? stored.sessions.filter(isSessionEntry) : [];
  const active = store.get(ACTIVE_SESSION_KEY);
  const fallback = isRecord(stored) && isString(stored["activeSessionId"]) ? stored["activeSessionId"] : null;
  const activeSessionId = isString(active) || isOneOf([null])(active) ? active : fallback;
  return { schemaVersion: SCHEMA_VERSION, activeSessionId, sessions };
}
