// One session of an ACP connection as a store of chat states: load, prompt, steer, queue, stop, answer.

import type {
  Agent, ContentBlock, ElicitationParams, PermissionParams, PlanEntry, SessionOpened, SessionUpdate, StopReason,
} from './acp';
import { FrameQueue } from './frames';
import { type Action, plainText, reduce } from './reduce';
import { Disconnected, type Id, type Respond, RpcError } from './rpc';
import { type ChatState, emptyChat, type OpenRequest } from './state';

/** What a session needs of the connection. `RpcPeer` has it; so has a webview's bridge to its extension. */
export interface Caller {
  request<T>(method: string, params: unknown): Promise<T>;
  notify(method: string, params: unknown): void;
}

type Listener = (state: ChatState) => void;

/** So many messages are read first, and with each further part. */
const PART = 40;
/** No part has more, whatever is asked for. */
const MAX_PART = 500;
interface HistoryPart { updates: SessionUpdate[]; earlier: string | null; state: SessionUpdate[] }

/** What the components need of a session. `ChatSession` has it over ACP; a webview's bridge has it over its own messages. */
export interface ChatStore {
  readonly cwd: string;
  subscribe(listener: (state: ChatState) => void): () => void;
  send(blocks: ContentBlock[]): Promise<void>;
  enqueue(blocks: ContentBlock[]): void;
  unqueue(index: number): ContentBlock[] | undefined;
  stop(): void;
  setConfigOption(configId: string, value: string | boolean): Promise<void>;
  answerPermission(id: string, optionId: string, plan?: readonly PlanEntry[]): void;
  answerElicitation(id: string, answer: { action: 'accept' | 'decline' | 'cancel'; content?: unknown }): void;
  onunsent: (blocks: ContentBlock[]) => void;
  onqueue: (queue: readonly ContentBlock[][]) => void;
  /** Reads what comes before all that is shown. Without it everything is there. */
  readEarlier?(): Promise<void>;
}

export class ChatSession implements ChatStore {
  #state = emptyChat();
  /** While the history is told, what it gives; it replaces the state when it is complete, in one step. */
  #loading: Action[] | null = null;
  #listeners = new Set<Listener>();
  #frames = new FrameQueue<Action>((batch) => this.#set(reduce(this.#state, batch)));
  #answers = new Map<string, Respond>();
  #queue: ContentBlock[][] = [];
  #prompting = false;
  #readingEarlier = false;
  /** A prompt whose answer was lost with the connection. */
  #unconfirmed: ContentBlock[] | null = null;
  /** Called with a prompt that did not reach the server, so that nothing typed is lost. */
  onunsent: (blocks: ContentBlock[]) => void = () => {};
  onqueue: (queue: readonly ContentBlock[][]) => void = () => {};

  constructor(readonly id: string, readonly cwd: string, private caller: Caller) {}

  get isLoading(): boolean {
    return this.#loading !== null;
  }

  get state(): ChatState {
    return this.#state;
  }

  /** The contract of a Svelte store. */
  subscribe(listener: Listener): () => void {
    this.#listeners.add(listener);
    listener(this.#state);
    return () => this.#listeners.delete(listener);
  }

  /** Takes over a session that `session/new` or `session/fork` has just made. */
  begin(opened: SessionOpened): void {
    this.#push({ type: 'opened', opened });
  }

  /** Reads the end of the session, on a new connection if one is given. Until it is read the old state stays. */
  async load(caller: Caller = this.caller): Promise<void> {
    this.#frames.flushNow();
    this.#loading = [];
    this.caller = caller;
    try {
      const { opened, part } = await this.#readEnd(caller);
      const told = this.#loading ?? [];
      // The history does not say whether a turn runs. A server that tells has told by now; else none is known of.
      // It counts after the history, whenever it came: what was said last may still grow.
      const isState = (action: Action) => action.type === 'started' || action.type === 'ended';
      const state = told.findLast(isState) ?? { type: 'ended', stopReason: null };
      this.#loading = null;
      // A question that this connection has asked already is not asked again.
      const asked = this.#state.requests.filter((open) => this.#answers.has(open.id));
      const still = asked.map((request): Action => ({ type: 'asked', request }));
      const history = [...part.updates, ...part.state].map((update): Action => ({ type: 'update', update }));
      const end: Action = { type: 'earlier', updates: [], earlier: part.earlier };
      this.#set(reduce(emptyChat(), [...still, ...history, ...told.filter((action) => !isState(action)), state, end, { type: 'opened', opened }]));
      this.#returnUnsent();
    } finally {
      this.#loading = null;
    }
  }

  /** Attaches to the session, and reads what was said before that: what is told from then on follows it without a seam. */
  async #readEnd(caller: Caller): Promise<{ opened: SessionOpened; part: HistoryPart }> {
    const opened = await caller.request<SessionOpened>('session/resume', {
      sessionId: this.id, ...(this.cwd ? { cwd: this.cwd } : {}), mcpServers: [],
    });
    // Whatever was told before this answer is part of the history.
    this.#loading = (this.#loading ?? []).filter((action) => action.type !== 'update');
    const last = opened._meta?.['gander/head'];
    const limit = Math.min(MAX_PART, Math.max(PART, this.#state.items.length));
    const part = await caller.request<HistoryPart>('_gander/session/history', { sessionId: this.id, last, limit });
    return { opened, part };
  }

  /** Reads the part of the conversation before the first item, if there is one and it is not being read. */
  async readEarlier(): Promise<void> {
    const { earlier } = this.#state;
    if (earlier === null || this.#readingEarlier) return;
    this.#readingEarlier = true;
    try {
      const part = await this.caller.request<HistoryPart>('_gander/session/history', { sessionId: this.id, last: earlier, limit: PART * 2 });
      // The session may have been read anew meanwhile.
      if (this.#state.earlier !== earlier || this.#loading) return;
      this.#push({ type: 'earlier', updates: part.updates, earlier: part.earlier });
      this.#frames.flushNow();
    } catch (error) {
      if (!(error instanceof Disconnected)) throw error;
    } finally {
      this.#readingEarlier = false;
    }
  }

  handleUpdate(update: SessionUpdate): void {
    this.#push({ type: 'update', update });
  }

  /** The server says whether a turn runs, whoever began it. */
  handleRunning(running: boolean): void {
    // The answer to a prompt of our own says it better, and comes after all its updates.
    if (!running && this.#prompting) return;
    this.#push(running ? { type: 'started' } : { type: 'ended', stopReason: null });
    // Not with the next frame: who tells the end of a short turn before it compares with what is shown.
    if (!this.#loading) this.#frames.flushNow();
    if (!running) void this.#sendQueued();
  }

  /** What the session can be set to beyond the modes of its agent. The protocol does not tell: whoever knows does. */
  handleAgents(agents: readonly Agent[]): void {
    this.#push({ type: 'agents', agents });
  }

  handlePermission(id: Id, params: PermissionParams, respond: Respond): void {
    this.#ask({ type: 'permission', id: String(id), params }, respond);
  }

  handleElicitation(id: Id, params: ElicitationParams, respond: Respond): void {
    this.#ask({ type: 'elicitation', id: String(id), params }, respond);
  }

  /** `$/cancel_request`: somebody else answered, or the turn is over. */
  handleWithdrawn(id: Id): void {
    this.#answers.delete(String(id));
    this.#push({ type: 'settled', id: String(id) });
  }

  /** The connection is gone: its questions cannot be answered any more. The next reading asks them again. */
  handleDisconnected(): void {
    for (const id of this.#answers.keys()) this.#push({ type: 'settled', id });
    this.#answers.clear();
  }

  /** Sends a prompt, or says it into the running turn. */
  async send(blocks: ContentBlock[]): Promise<void> {
    if (this.#state.running) return this.#steer(blocks);
    return this.#prompt(blocks);
  }

  /** Keeps a prompt until the turn is over. */
  enqueue(blocks: ContentBlock[]): void {
    this.#setQueue([...this.#queue, blocks]);
    if (!this.#state.running) void this.#sendQueued();
  }

  unqueue(index: number): ContentBlock[] | undefined {
    const taken = this.#queue[index];
    this.#setQueue(this.#queue.filter((_, at) => at !== index));
    return taken;
  }

  stop(): void {
    this.caller.notify('session/cancel', { sessionId: this.id });
  }

  async setMode(modeId: string): Promise<void> {
    await this.caller.request('session/set_mode', { sessionId: this.id, modeId });
    this.#push({ type: 'update', update: { sessionUpdate: 'current_mode_update', currentModeId: modeId } });
  }

  async setConfigOption(configId: string, value: string | boolean): Promise<void> {
    const typed = typeof value === 'boolean' ? { type: 'boolean', value } : { value };
    const params = { sessionId: this.id, configId, ...typed };
    const opened = await this.caller.request<SessionOpened>('session/set_config_option', params);
    this.#push({ type: 'opened', opened });
  }

  /** Chooses an option, with the plan as it was edited if the question is about one. */
  answerPermission(id: string, optionId: string, plan?: readonly PlanEntry[]): void {
    const items = plan?.map(({ content, priority, status }) => ({ text: content, priority, status }));
    const meta = items ? { _meta: { 'gander/plan': { items } } } : {};
    this.#answer(id, { outcome: { outcome: 'selected', optionId }, ...meta });
  }

  answerElicitation(id: string, answer: { action: 'accept' | 'decline' | 'cancel'; content?: unknown }): void {
    this.#answer(id, answer);
  }

  async #prompt(blocks: ContentBlock[]): Promise<void> {
    this.#push({ type: 'prompted', blocks });
    this.#frames.flushNow();
    this.#unconfirmed = blocks;
    this.#prompting = true;
    try {
      const params = { sessionId: this.id, prompt: blocks };
      const { stopReason } = await this.caller.request<{ stopReason: StopReason }>('session/prompt', params);
      this.#unconfirmed = null;
      this.#push({ type: 'ended', stopReason });
    } catch (error) {
      // Whether it arrived is known when the session has been read again.
      if (error instanceof Disconnected) return;
      this.#unconfirmed = null;
      this.#push({ type: 'failed', title: 'The turn failed', description: messageOf(error) });
    } finally {
      this.#prompting = false;
    }
    this.#frames.flushNow();
    void this.#sendQueued();
  }

  async #steer(blocks: ContentBlock[]): Promise<void> {
    // Between two turns it begins one: it is never lost.
    this.#push({ type: 'prompted', blocks });
    try {
      await this.caller.request('_session/steering', { sessionId: this.id, prompt: blocks });
    } catch (error) {
      if (error instanceof Disconnected) return this.onunsent(blocks);
      this.#push({ type: 'update', update: notice('The message was not taken', messageOf(error)) });
      this.onunsent(blocks);
    }
  }

  async #sendQueued(): Promise<void> {
    const next = this.unqueue(0);
    if (next) await this.#prompt(next);
  }

  #setQueue(queue: ContentBlock[][]): void {
    this.#queue = queue;
    this.onqueue(queue);
  }

  /** After a new reading: a prompt that is not in the history was never accepted, and goes back to its writer. */
  #returnUnsent(): void {
    const unconfirmed = this.#unconfirmed;
    if (!unconfirmed) return;
    this.#unconfirmed = null;
    const text = unconfirmed.map(plainText).join('');
    const arrived = this.#state.items.some(
      (item) => item.type === 'message' && item.role === 'user' && item.blocks.map(plainText).join('') === text,
    );
    if (!arrived) this.onunsent(unconfirmed);
  }

  #ask(request: OpenRequest, respond: Respond): void {
    this.#answers.set(request.id, respond);
    this.#push({ type: 'asked', request });
  }

  #answer(id: string, result: unknown): void {
    this.#answers.get(id)?.(result);
    this.#answers.delete(id);
    this.#push({ type: 'settled', id });
    this.#frames.flushNow();
  }

  #push(action: Action): void {
    if (this.#loading) this.#loading.push(action);
    else this.#frames.push(action);
  }

  #set(state: ChatState): void {
    this.#state = state;
    for (const listener of this.#listeners) listener(state);
  }
}

function notice(title: string, description: string): SessionUpdate {
  return { sessionUpdate: 'notice', severity: 'warning', title, description };
}

export function messageOf(error: unknown): string {
  if (error instanceof RpcError) return error.message;
  return error instanceof Error ? error.message : String(error);
}
