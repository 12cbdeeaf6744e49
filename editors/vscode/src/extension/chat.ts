/** The conversation: what the webview asks for goes to the agent, what the agent says goes to the webview. */
import { type ContentBlock, type SessionNotification, type StopReason, methods } from "@agentclientprotocol/sdk";
import { CLIENT_DISPOSED, type GooseError, describeError } from "../shared/errors";
import { isRecord } from "../shared/guards";
import { externalLink } from "../shared/links";
import {
  type Action, type MessageToExtension, type MessageToWebview, type ToExtension, type WebviewMessagePayloads, isAgentList, message,
} from "../shared/messages";
import type { ContextChip, FileSearchResult, ProcessStatus, VersionStatus } from "../shared/types";
import type { ReadyAgent } from "./agentConnection";
import { OtherTurns, type Turn } from "./otherTurns";
import { type ReadLines, buildPromptBlocks } from "./promptBlocks";
import type { Questions } from "./questions";
import type { SessionStore } from "./sessionStore";
import { type SessionOptions, Sessions, answerText } from "./sessions";
import { DEFAULT_TITLE, sessionTitle } from "./titles";
import { TokenBatch } from "./tokenBatch";

/** What the conversation needs of the editor. */
export interface ChatHost {
  post(message: MessageToWebview): void;
  /** The text in the person's language. */
  t(text: string, ...values: string[]): string;
  workingDirectory(): string;
  readLines: ReadLines;
  searchFiles(query: string, cwd: string): Promise<FileSearchResult[]>;
  openExternal(url: string): void;
  openFile(path: string, line: number | undefined): void;
  openDiff(toolCallId: string): void;
  openTerminal(terminalId: string): void;
  chipOf(uri: string): Promise<ContextChip | undefined>;
  runAction(action: Action): void;
  log(text: string): void;
  /** A turn began or ended, in whichever session. */
  turnsChanged(running: boolean): void;
  /** Every update of the agent, also of sessions that are not shown. */
  sessionUpdated(notification: SessionNotification): void;
}

export class Chat {
  readonly #sessions: Sessions;
  readonly #tokens = new TokenBatch((messageId, token) => this.#send("STREAM_TOKEN", { messageId, token, done: false }));
  #agent: ReadyAgent | undefined;
  #sessionId: string | undefined;
  /** Our prompts that are under way, one for each session at most. */
  readonly #turns = new Map<string, Turn>();
  /** Turns of other clients that are under way in sessions that were opened here. */
  readonly #others = new OtherTurns({
    began: ({ sessionId }) => {
      this.#sendTurn(sessionId);
      this.host.turnsChanged(true);
    },
    ended: (turn, stopReason) => this.#otherEnded(turn, stopReason),
    failed: (turn, error) => this.#otherFailed(turn, error),
  });
  readonly #options = new Map<string, SessionOptions>();
  #status: { status: ProcessStatus; message?: string } = { status: "stopped" };
  /** Loading and creating happen one after the other; the last one that was asked for is shown. */
  #switching: Promise<unknown> = Promise.resolve();

  constructor(private readonly host: ChatHost, private readonly store: SessionStore, private readonly questions: Questions) {
    this.#sessions = new Sessions(store);
  }

  get sessionId(): string | undefined {
    return this.#sessionId;
  }

  get isRunning(): boolean {
    return this.#turns.size + this.#others.size > 0;
  }

  // What the agent does.

  handleStatus(status: ProcessStatus, error?: GooseError): void {
    this.#status = error === undefined ? { status } : { status, message: describeError(error) };
    if (status !== "running") this.#agent = undefined;
    this.#send("STATUS_UPDATE", this.#status);
  }

  handleVersion(status: VersionStatus): void {
    this.#send("VERSION_STATUS", status);
  }

  /** A new connection: the session that was open last is loaded again, else a new one is made. */
  handleReady(agent: ReadyAgent): Promise<void> {
    this.#agent = agent;
    return this.#inTurn(() => this.#restore(agent));
  }

  handleLost(error: GooseError): void {
    this.questions.cancelAll();
    this.#fail(this.host.t("The agent is gone"), describeError(error), "restart", this.host.t("Restart"));
  }

  handleUpdate(notification: SessionNotification): void {
    this.host.sessionUpdated(notification);
    const { sessionId, update } = notification;
    if (update.sessionUpdate === "session_info_update" && update.title) void this.#rename(sessionId, update.title);
    if (this.#sessions.handleReplay(notification)) return;
    const turn = this.#turns.get(sessionId);
    if (turn === undefined && this.#agent !== undefined) this.#others.handleUpdate(this.#agent, notification);
    if (sessionId !== this.#sessionId) return;
    const text = answerText(update);
    if (turn !== undefined && text !== undefined) this.#tokens.push(turn.responseId, text);
    else this.#send("SESSION_UPDATE", { sessionId, update });
  }

  // What the person does.

  /** Handles a message of the webview. Never rejects: what goes wrong is shown. */
  async handle(received: MessageToExtension): Promise<void> {
    try {
      await this.#dispatch(received);
    } catch (error) {
      // No ERROR: that would end an answer which is under way.
      this.#send("NOTICE", { severity: "error", text: describeError(error) });
    }
  }

  /** A webview is ready. One that was created anew is told the history again, unless the answer is being written just now. */
  async handleWebviewReady(isStale: boolean): Promise<void> {
    const sessionId = this.#sessionId;
    const agent = this.#agent;
    if (isStale && sessionId !== undefined && agent !== undefined && !this.#turns.has(sessionId) && this.#sessions.canLoad(agent)) {
      await this.select(sessionId);
    }
    this.#sendQuestions();
    if (sessionId !== undefined) this.#sendTurn(sessionId);
    await this.#sendList();
  }

  create(workingDirectory?: string): Promise<void> {
    return this.#inTurn(async () => {
      const agent = this.#requireAgent();
      await this.#create(agent, workingDirectory ?? this.host.workingDirectory());
    });
  }

  select(sessionId: string): Promise<void> {
    return this.#inTurn(async () => {
      const agent = this.#requireAgent();
      if (!this.#sessions.canLoad(agent)) {
        this.#show(sessionId);
        this.#send("SESSION_CREATED", { session: await this.#entry(agent, sessionId) });
        this.#send("SESSION_LOADED", { sessionId, historyUnavailable: true });
        return;
      }
      await this.#load(agent, sessionId);
    });
  }

  sessions() {
    return this.#sessions.list(this.#agent);
  }

  addChip(chip: ContextChip): void {
    this.#send("ADD_CONTEXT_CHIP", { chip });
    this.#send("FOCUS_CHAT_INPUT", {});
  }

  stop(): void {
    const sessionId = this.#sessionId;
    if (sessionId === undefined) return;
    this.#agent?.client.cancel(sessionId);
    this.questions.cancelSession(sessionId);
  }

  async #dispatch(received: MessageToExtension): Promise<void> {
    const { host } = this;
    switch (received.type) {
      case "WEBVIEW_READY": return;
      case "GET_STATUS": return this.#send("STATUS_UPDATE", this.#status);
      case "SEND_MESSAGE": return this.#prompt(received.payload);
      case "STOP_GENERATION": return this.stop();
      case "OPEN_EXTERNAL_LINK": return this.#openLink(received.payload.url);
      case "CREATE_SESSION": return this.create(received.payload.workingDirectory);
      case "GET_SESSIONS": return this.#sendList();
      case "SELECT_SESSION": return this.select(received.payload.sessionId);
      case "FILE_SEARCH": return this.#search(received.payload.query);
      case "PERMISSION_RESPONSE": return this.#answerPermission(received.payload);
      case "ELICITATION_RESPONSE": return this.#answerElicitation(received.payload);
      case "SET_CONFIG_OPTION": return this.#setConfigOption(received.payload);
      case "SET_MODE": return this.#setMode(received.payload.modeId);
      case "OPEN_FILE": return host.openFile(received.payload.path, received.payload.line);
      case "OPEN_DIFF": return host.openDiff(received.payload.toolCallId);
      case "OPEN_TERMINAL": return host.openTerminal(received.payload.terminalId);
      case "ADD_FILES": return this.#addFiles(received.payload.uris);
      case "RUN_ACTION": return host.runAction(received.payload.action);
    }
  }

  async #prompt(sent: ToExtension["SEND_MESSAGE"]): Promise<void> {
    const { content, responseId } = sent;
    const agent = this.#agent;
    const sessionId = this.#sessionId;
    if (agent === undefined || sessionId === undefined) {
      const state = this.#status.message ?? this.#status.status;
      this.#fail(this.host.t("No agent is running"), state, "restart", this.host.t("Restart"));
      this.#send("GENERATION_CANCELLED", { messageId: responseId });
      return;
    }
    if (this.#turns.has(sessionId) || this.#others.find(sessionId) !== undefined) {
      await this.#steer(agent, sessionId, sent);
      return;
    }
    this.#turns.set(sessionId, { responseId, sessionId });
    this.host.turnsChanged(true);
    try {
      const prompt = await this.#blocks(sent);
      await this.#nameAfter(sessionId, content);
      const { stopReason } = await agent.client.request(methods.agent.session.prompt, { sessionId, prompt });
      this.#finish(sessionId, responseId, stopReason);
    } catch (error) {
      this.#tokens.flush();
      this.#fail(this.host.t("The answer could not be completed"), describeError(error));
      this.#send("GENERATION_CANCELLED", { messageId: responseId });
    } finally {
      this.#turns.delete(sessionId);
      this.host.turnsChanged(this.isRunning);
    }
  }

  /** Says something into the turn that is under way, where the agent can hear it. */
  async #steer(agent: ReadyAgent, sessionId: string, sent: ToExtension["SEND_MESSAGE"]): Promise<void> {
    if (!canSteer(agent)) throw new Error(this.host.t("The agent still answers in this session: stop it first"));
    await agent.client.requestExtension("_session/steering", { sessionId, prompt: await this.#blocks(sent) });
  }

  async #blocks({ content, contextChips, images }: ToExtension["SEND_MESSAGE"]): Promise<ContentBlock[]> {
    const blocks = await buildPromptBlocks(content, contextChips ?? [], this.host.readLines);
    return [...blocks, ...(images ?? []).map(({ data, mimeType }) => ({ type: "image" as const, data, mimeType }))];
  }

  #finish(sessionId: string, messageId: string, stopReason: StopReason): void {
    this.#tokens.flush();
    this.questions.cancelSession(sessionId);
    if (stopReason === "cancelled") this.#send("GENERATION_CANCELLED", { messageId });
    else this.#send("GENERATION_COMPLETE", { messageId, stopReason });
  }

  #otherEnded({ sessionId, responseId: messageId }: Turn, stopReason: string | null): void {
    this.host.turnsChanged(this.isRunning);
    if (sessionId !== this.#sessionId) return;
    if (stopReason === "cancelled") this.#send("GENERATION_CANCELLED", { messageId });
    else this.#send("GENERATION_COMPLETE", { messageId, ...(stopReason !== null && { stopReason }) });
  }

  #otherFailed(turn: Turn, error: unknown): void {
    // That the agent is gone is told once, for everything that was under way.
    const isGone = isRecord(error) && error["code"] === CLIENT_DISPOSED;
    if (!isGone && turn.sessionId === this.#sessionId) this.#fail(this.host.t("The answer could not be completed"), describeError(error));
    this.#otherEnded(turn, "cancelled");
  }

  async #restore(agent: ReadyAgent): Promise<void> {
    const active = this.store.activeSessionId;
    if (active !== null && this.#sessions.canLoad(agent)) {
      try {
        await this.#load(agent, active);
        return;
      } catch (error) {
        this.host.log(`cannot load session ${active}: ${describeError(error)}`);
        const text = this.host.t("The last session could not be opened, this is a new one: {0}", describeError(error));
        this.#send("NOTICE", { severity: "warning", text });
      }
    }
    try {
      await this.#create(agent, this.host.workingDirectory());
    } catch (error) {
      this.#fail(this.host.t("No session could be created"), describeError(error), "showLog", this.host.t("Show log"));
    }
  }

  async #create(agent: ReadyAgent, cwd: string): Promise<void> {
    const { entry, options } = await this.#sessions.create(agent, cwd);
    this.#show(entry.sessionId);
    this.#send("SESSION_CREATED", { session: entry });
    this.#setOptions(entry.sessionId, options);
    void this.#sendAgents(agent, entry.sessionId);
    await this.#sendList();
  }

  async #load(agent: ReadyAgent, sessionId: string): Promise<void> {
    const entry = await this.#entry(agent, sessionId);
    const before = this.#sessionId;
    const loaded = await this.#sessions.load(agent, entry, {
      begun: () => {
        this.#show(sessionId);
        this.#send("SESSION_CREATED", { session: entry });
      },
      replayed: (id, replayed) => {
        if ("message" in replayed) this.#send("HISTORY_MESSAGE", { message: replayed.message, isReplay: true });
        else this.#send("SESSION_UPDATE", { sessionId: id, update: replayed.update });
      },
    }).catch((error: unknown) => {
      this.#sessionId = before;
      throw error;
    });
    this.#send("HISTORY_COMPLETE", { sessionId, messageCount: loaded.messageCount });
    this.#send("SESSION_LOADED", { sessionId });
    this.#setOptions(sessionId, loaded.options);
    void this.#sendAgents(agent, sessionId);
    this.#sendTurn(sessionId);
    this.#sendQuestions();
    await this.#sendList();
    if (!this.#turns.has(sessionId)) void this.#others.handleOpened(agent, sessionId);
  }

  async #entry(agent: ReadyAgent, sessionId: string) {
    const entry = await this.#sessions.find(agent, sessionId);
    if (entry === undefined) throw new Error(`no such session: ${sessionId}`);
    return entry;
  }

  #show(sessionId: string): void {
    this.#tokens.flush();
    this.#sessionId = sessionId;
  }

  /** The title of a session is that of its first message, until the agent gives it a better one. */
  async #nameAfter(sessionId: string, content: string): Promise<void> {
    if (this.store.find(sessionId)?.title !== DEFAULT_TITLE) return;
    await this.store.setTitle(sessionId, sessionTitle(content));
    await this.#sendList();
  }

  async #rename(sessionId: string, title: string): Promise<void> {
    if (this.store.find(sessionId) === undefined) return;
    await this.store.setTitle(sessionId, sessionTitle(title));
    await this.#sendList();
  }

  async #sendList(): Promise<void> {
    // An agent that cannot list its sessions must not hide those that we know.
    const sessions = await this.#sessions.list(this.#agent).catch((error: unknown) => {
      this.host.log(`cannot list sessions: ${describeError(error)}`);
      return this.#sessions.list(undefined);
    });
    this.#send("SESSIONS_LIST", { sessions, activeSessionId: this.#sessionId ?? null });
  }

  /** A webview that shows a session whose turn is under way must know which answer the next tokens belong to. */
  #sendTurn(sessionId: string): void {
    const turn = this.#turns.get(sessionId) ?? this.#others.find(sessionId);
    if (turn !== undefined && sessionId === this.#sessionId) this.#send("TURN_STARTED", { messageId: turn.responseId });
  }

  #sendQuestions(): void {
    for (const { requestId, request } of this.questions.permissions) {
      if (request.sessionId === this.#sessionId) this.#send("PERMISSION_REQUEST", { requestId, ...request });
    }
    for (const { requestId, request } of this.questions.elicitations) this.#send("ELICITATION_REQUEST", { requestId, request });
  }

  #setOptions(sessionId: string, options: SessionOptions): void {
    this.#options.set(sessionId, options);
    if (sessionId !== this.#sessionId) return;
    const { modes, configOptions } = options;
    const steering = this.#agent === undefined ? {} : { canSteer: canSteer(this.#agent) };
    this.#send("SESSION_OPTIONS", { sessionId, ...(modes && { modes }), ...(configOptions && { configOptions }), ...steering });
  }

  /** The protocol has modes, but not whose they are. An agent that does not know the method has one agent. */
  async #sendAgents(agent: ReadyAgent, sessionId: string): Promise<void> {
    const found = await agent.client.requestExtension("_gander/agents/list", { sessionId }).catch(() => undefined);
    if (isAgentList(found) && sessionId === this.#sessionId) this.#send("SESSION_AGENTS", { sessionId, agents: found.agents });
  }

  async #setConfigOption({ configId, value }: ToExtension["SET_CONFIG_OPTION"]): Promise<void> {
    const { agent, sessionId } = this.#requireSession();
    const typed = typeof value === "boolean" ? { type: "boolean" as const, value } : { value };
    const { configOptions } = await agent.client.request(methods.agent.session.setConfigOption, { sessionId, configId, ...typed });
    this.#setOptions(sessionId, { ...this.#options.get(sessionId), configOptions });
  }

  async #setMode(modeId: string): Promise<void> {
    const { agent, sessionId } = this.#requireSession();
    await agent.client.request(methods.agent.session.setMode, { sessionId, modeId });
    this.#send("SESSION_UPDATE", { sessionId, update: { sessionUpdate: "current_mode_update", currentModeId: modeId } });
  }

  #answerPermission({ requestId, optionId, meta }: ToExtension["PERMISSION_RESPONSE"]): void {
    if (!this.questions.answerPermission(requestId, optionId, meta)) this.#send("PERMISSION_RESOLVED", { requestId, optionId: null });
  }

  #answerElicitation({ requestId, action, content }: ToExtension["ELICITATION_RESPONSE"]): void {
    const response = action === "accept" ? { action, content: (content ?? {}) as Record<string, string> } : { action };
    if (!this.questions.answerElicitation(requestId, response)) this.#send("ELICITATION_RESOLVED", { requestId });
  }

  #openLink(url: string): void {
    const link = externalLink(url);
    if (link === undefined) this.host.log(`a link that is neither http, https nor mailto is not opened: ${url}`);
    else this.host.openExternal(link);
  }

  async #search(query: string): Promise<void> {
    const cwd = this.store.find(this.#sessionId ?? "")?.cwd ?? this.host.workingDirectory();
    this.#send("SEARCH_RESULTS", { query, results: await this.host.searchFiles(query, cwd) });
  }

  async #addFiles(uris: readonly string[]): Promise<void> {
    for (const uri of uris) {
      const chip = await this.host.chipOf(uri);
      if (chip !== undefined) this.#send("ADD_CONTEXT_CHIP", { chip });
    }
  }

  #requireAgent(): ReadyAgent {
    if (this.#agent === undefined) throw new Error(`no agent is running: ${this.#status.message ?? this.#status.status}`);
    return this.#agent;
  }

  #requireSession(): { agent: ReadyAgent; sessionId: string } {
    const agent = this.#requireAgent();
    if (this.#sessionId === undefined) throw new Error("no session is open");
    return { agent, sessionId: this.#sessionId };
  }

  #inTurn<T>(operation: () => Promise<T>): Promise<T> {
    const result = this.#switching.then(operation);
    this.#switching = result.catch(() => {});
    return result;
  }

  #fail(title: string, text: string, action?: Action, label?: string): void {
    const button = action === undefined || label === undefined ? {} : { action: { label, action } };
    this.#send("ERROR", { title, message: text, ...button });
  }

  #send<T extends MessageToWebview["type"]>(type: T, payload: WebviewMessagePayloads[T]): void {
    if (type !== "STREAM_TOKEN") this.#tokens.flush();
    this.host.post(message(type, payload) as MessageToWebview);
  }
}

/** Agents that take a message into a running turn say so at `initialize`. */
function canSteer(agent: ReadyAgent): boolean {
  const steering = agent.info._meta?.["steering"];
  return isRecord(steering) && steering["supported"] === true;
}
