// The page's state: the connection, the sessions, those that are open here, and what waits for an answer.

import {
  type Agent, ChatSession, type ElicitationParams, messageOf, type OpenRequest, type PermissionParams, type RpcPeer, RpcError,
  type SessionOpened, type SessionUpdate,
} from '../chat';
import { type AgentInfo, CLIENT_TITLE, type ConnectionState, acpAddress, ServerConnection } from './connection';

export interface WatchedSession {
  sessionId: string;
  cwd: string;
  title: string | null;
  agent: string;
  state: 'idle' | 'running' | 'waiting';
  createdAt: string;
  updatedAt: string;
  archived: boolean;
  messages: number;
  parent: string | null;
  clientNames: string[];
}
interface Watched { cursor: string; sessions: WatchedSession[]; more: boolean; waiting: string[] }
export interface InboxEntry { chat: ChatSession; request: OpenRequest }

const PAGE = 50;

export class Server {
  connection = $state<ConnectionState>('connecting');
  agent = $state.raw<AgentInfo | null>(null);
  sessions = $state.raw<WatchedSession[]>([]);
  more = $state(false);
  waiting = $state.raw<string[]>([]);
  inbox = $state.raw<InboxEntry[]>([]);
  search = $state('');
  archived = $state(false);
  /** The last thing that went wrong, until it is dismissed. */
  problem = $state('');
  /** The session that was shown last. */
  shown: string | null = null;
  onasked: (entry: InboxEntry) => void = () => {};

  #limit = PAGE;
  #peer: RpcPeer | null = null;
  #open = new Map<string, ChatSession>();
  /** Those whose history is shown; the others are only asked by. */
  #loaded = new Set<string>();
  #states = new Map<string, WatchedSession['state']>();
  /** Grows with every change of what is watched: an answer to an older question is late. */
  #round = 0;
  #connection = new ServerConnection(acpAddress(), {
    state: (state) => {
      this.connection = state;
      if (state !== 'online') for (const chat of this.#open.values()) chat.handleDisconnected();
    },
    ready: (peer, agent) => this.#ready(peer, agent),
    notification: (method, params) => this.#notified(method, params),
    request: (id, method, params, respond) => {
      const sessionId = (params as { sessionId?: string } | undefined)?.sessionId ?? '';
      if (method === 'session/request_permission') this.#chat(sessionId).handlePermission(id, params as PermissionParams, respond);
      else if (method === 'elicitation/create') this.#chat(sessionId).handleElicitation(id, params as ElicitationParams, respond);
      else this.#peer?.refuse(id, method);
    },
  });

  constructor() {
    this.#connection.open();
  }

  retry(): void {
    this.#connection.retryNow();
  }

  request<T>(method: string, params: unknown): Promise<T> {
    return this.#peer?.request<T>(method, params) ?? Promise.reject(new Error('not connected'));
  }

  /** Does something on behalf of the person, who is told if it fails. */
  async attempt<T>(what: Promise<T>): Promise<T | null> {
    try {
      return await what;
    } catch (error) {
      this.problem = messageOf(error);
      return null;
    }
  }

  /** Shows other sessions in the list: a search, the archive, or more of them. */
  watch(change: { search?: string; archived?: boolean; more?: boolean }): void {
    this.search = change.search ?? this.search;
    this.archived = change.archived ?? this.archived;
    this.#limit = change.more ? this.#limit + PAGE * 2 : this.#limit;
    if (this.#peer) void this.#watch(this.#peer);
  }

  /** A session that nobody has prompted yet. */
  async create(cwd: string | null): Promise<ChatSession> {
    const params = { mcpServers: [], ...(cwd ? { cwd } : {}) };
    const opened = await this.request<SessionOpened & { sessionId: string }>('session/new', params);
    return this.#adopt(opened, cwd ?? '');
  }

  /** Deletes a session that was made and never used. */
  discard(chat: ChatSession): void {
    this.forget(chat.id);
    void this.request('session/delete', { sessionId: chat.id }).catch(() => {});
  }

  async fork(source: WatchedSession): Promise<ChatSession> {
    const params = { sessionId: source.sessionId, cwd: source.cwd, mcpServers: [] };
    const opened = await this.request<SessionOpened & { sessionId: string }>('session/fork', params);
    return this.open(opened.sessionId, source.cwd);
  }

  /** The session with its history, read once per connection. */
  open(id: string, cwd?: string): ChatSession {
    this.shown = id;
    const chat = this.#chat(id, cwd);
    if (!this.#loaded.has(id)) {
      this.#loaded.add(id);
      void this.attempt(this.#load(chat));
    }
    return chat;
  }

  /** Which other clients are attached to a session, in words. */
  others(session: WatchedSession | undefined): string {
    const names = session?.clientNames.slice() ?? [];
    // One of them is this page, if the session is open in it.
    const own = session && this.#open.has(session.sessionId) ? names.indexOf(CLIENT_TITLE) : -1;
    if (own >= 0) names.splice(own, 1);
    const counted = [...new Set(names)].map((name) => [name, names.filter((one) => one === name).length] as const);
    return counted.map(([name, count]) => (count > 1 ? `${name} ×${count}` : name)).join(', ');
  }

  forget(id: string): void {
    this.#open.delete(id);
    this.#loaded.delete(id);
    this.#collect();
  }

  async complete(sessionId: string, query: string): Promise<string[]> {
    return (await this.request<{ paths: string[] }>('_gander/workspace/files', { sessionId, query })).paths;
  }

  answer({ chat, request }: InboxEntry, answer: Parameters<ChatSession['answerElicitation']>[1] | { optionId: string }): void {
    if ('optionId' in answer) chat.answerPermission(request.id, answer.optionId);
    else chat.answerElicitation(request.id, answer);
  }

  #adopt(opened: SessionOpened & { sessionId: string }, cwd: string): ChatSession {
    const chat = this.#chat(opened.sessionId, cwd);
    this.#loaded.add(chat.id);
    chat.begin(opened);
    void this.#readAgents(chat);
    return chat;
  }

  #chat(id: string, cwd = this.sessions.find((session) => session.sessionId === id)?.cwd ?? ''): ChatSession {
    const known = this.#open.get(id);
    if (known) return known;
    const chat = new ChatSession(id, cwd, { request: (method, params) => this.request(method, params), notify: (method, params) => this.#peer?.notify(method, params) });
    this.#open.set(id, chat);
    let asked = chat.state.requests;
    chat.subscribe(({ requests }) => {
      if (requests === asked) return;
      const fresh = requests.filter((request) => !asked.some((known) => known.id === request.id));
      asked = requests;
      this.#collect();
      for (const request of fresh) this.onasked({ chat, request });
    });
    return chat;
  }

  #collect(): void {
    this.inbox = [...this.#open.values()].flatMap((chat) => chat.state.requests.map((request) => ({ chat, request })));
  }

  async #load(chat: ChatSession): Promise<void> {
    const loading = chat.load();
    const state = this.#states.get(chat.id);
    if (state) chat.handleRunning(state !== 'idle');
    await loading;
    void this.#readAgents(chat);
  }

  async #readAgents(chat: ChatSession): Promise<void> {
    // An empty session may be deleted meanwhile; without the answer there is one picker less.
    const found = await this.request<{ agents: Agent[] }>('_gander/agents/list', { sessionId: chat.id }).catch(() => null);
    if (found) chat.handleAgents(found.agents);
  }

  async #ready(peer: RpcPeer, agent: AgentInfo): Promise<void> {
    this.#peer = peer;
    this.agent = agent;
    await this.#apply(peer, await peer.request<Watched>('_gander/sessions/watch', this.#query()));
    void this.#watch(peer);
    const loaded = [...this.#loaded].flatMap((id) => this.#open.get(id) ?? []);
    // Questions of the old connection are asked again by those that are read anew.
    for (const [id, chat] of this.#open) {
      if (!this.#loaded.has(id)) {
        this.#open.delete(id);
        for (const request of chat.state.requests) chat.handleWithdrawn(request.id);
      }
    }
    this.#collect();
    await Promise.all(loaded.map((chat) => this.#load(chat).catch((error: unknown) => {
      // One that was never prompted is gone with its connection, and so is one that was deleted meanwhile.
      if (!(error instanceof RpcError)) throw error;
      this.forget(chat.id);
    })));
  }

  #query(after?: string) {
    return { after: after ?? null, text: this.search, archived: this.archived, limit: this.#limit };
  }

  async #watch(peer: RpcPeer): Promise<void> {
    const round = ++this.#round;
    let after: string | undefined;
    while (round === this.#round && peer === this.#peer) {
      try {
        const watched = await peer.request<Watched>('_gander/sessions/watch', this.#query(after));
        if (round !== this.#round || peer !== this.#peer) return;
        after = watched.cursor;
        await this.#apply(peer, watched);
      } catch (error) {
        if (!(error instanceof RpcError)) return;
        // The store is busy, or the server is about to end.
        await new Promise((resolve) => setTimeout(resolve, 1000));
      }
    }
  }

  async #apply(peer: RpcPeer, watched: Watched): Promise<void> {
    // A session that nobody has said anything in is somebody's empty page.
    this.sessions = watched.sessions.filter((one) => one.messages > 0 || one.title !== null || one.state !== 'idle');
    this.more = watched.more;
    this.waiting = watched.waiting;
    for (const { sessionId, state } of watched.sessions) this.#states.set(sessionId, state);
    for (const id of watched.waiting) this.#states.set(id, 'waiting');
    for (const chat of this.#open.values()) {
      const running = (this.#states.get(chat.id) ?? 'idle') !== 'idle';
      if (chat.isLoading || chat.state.running !== running) chat.handleRunning(running);
    }
    // Whoever is attached is asked: a question of any session shows here.
    const unheard = watched.waiting.filter((id) => !this.#open.has(id));
    await Promise.all(unheard.map(async (sessionId) => {
      const chat = this.#chat(sessionId);
      const params = { sessionId, mcpServers: [], ...(chat.cwd ? { cwd: chat.cwd } : {}) };
      await peer.request('session/resume', params).catch(() => this.#open.delete(sessionId));
    }));
  }

  #notified(method: string, params: unknown): void {
    if (method === 'session/update') {
      const { sessionId, update } = params as { sessionId: string; update: SessionUpdate };
      if (this.#loaded.has(sessionId)) this.#open.get(sessionId)?.handleUpdate(update);
    } else if (method === '$/cancel_request') {
      const { requestId } = params as { requestId: string };
      for (const chat of this.#open.values()) chat.handleWithdrawn(requestId);
    }
  }
}
