/** The session that the chat components show, with the extension on the other side of the bridge. */
import type { ChatState, ChatStore, ContentBlock, OpenRequest, PlanEntry, SessionOpened, SessionUpdate } from "../../../../web/src/chat";
import { FrameQueue } from "../../../../web/src/chat/frames";
import { isRecord } from "../shared/guards";
import type { AttachedImage, MessageToWebview } from "../shared/messages";
import { ENGLISH, type Strings } from "../shared/strings";
import type { ContextChip } from "../shared/types";
import type { Bridge } from "./bridge";
import { type ChatAction, type ViewState, emptyView, fileUri, pathOf, reduceView } from "./reducer";

type Listener = (state: ChatState) => void;

/** Actions of one animation frame are one change of the state; ids are made by the caller, so that tests know them. */
export class BridgeSession implements ChatStore {
  #view: ViewState;
  #queue: ContentBlock[][] = [];
  #canSteer = false;
  readonly #listeners = new Set<Listener>();
  readonly #frames: FrameQueue<ChatAction>;
  /** The words of the view in the person's language. */
  strings: Strings = ENGLISH;
  chips: readonly ContextChip[] = [];
  onqueue: (queue: readonly ContentBlock[][]) => void = () => {};
  onunsent: (blocks: ContentBlock[]) => void = () => {};
  onchips: (chips: readonly ContextChip[]) => void = () => {};
  onchange: (view: ViewState) => void = () => {};

  constructor(private readonly bridge: Bridge, private readonly newId: () => string, restored: ViewState = emptyView()) {
    this.#view = restored;
    this.#frames = new FrameQueue((actions) => this.#set(reduceView(this.#view, actions)));
  }

  /** The session's folder: mentions are relative to it. */
  cwd = "";

  get state(): ChatState {
    return this.#view.chat;
  }

  get view(): ViewState {
    return this.#view;
  }

  subscribe(listener: Listener): () => void {
    this.#listeners.add(listener);
    listener(this.#view.chat);
    return () => this.#listeners.delete(listener);
  }

  dispatch(...actions: ChatAction[]): void {
    for (const action of actions) this.#frames.push(action);
  }

  /** Everything that waits for the next frame happens now. */
  flush(): void {
    this.#frames.flushNow();
  }

  /** Takes a message of the extension. What concerns no conversation is for others. */
  handle(message: MessageToWebview): void {
    switch (message.type) {
      case "STREAM_TOKEN": return this.dispatch({ type: "STREAM_TOKEN", payload: message.payload });
      case "GENERATION_COMPLETE": return this.#ended({ type: "COMPLETE_GENERATION", payload: message.payload });
      case "GENERATION_CANCELLED": return this.#ended({ type: "CANCEL_GENERATION", payload: message.payload });
      case "TURN_STARTED": return this.dispatch({ type: "START_GENERATION", payload: message.payload });
      case "CHAT_HISTORY": return this.dispatch({ type: "SET_MESSAGES", payload: message.payload });
      case "SESSION_CREATED":
        this.cwd = message.payload.session.cwd;
        return this.dispatch({ type: "CLEAR_MESSAGES" });
      case "HISTORY_MESSAGE": return this.dispatch({ type: "ADD_HISTORY_MESSAGE", payload: { message: message.payload.message } });
      case "ERROR": return this.dispatch({ type: "ADD_ERROR_MESSAGE", payload: message.payload });
      case "NOTICE": return this.#notice(message.payload.severity, message.payload.text);
      case "SESSION_UPDATE": return this.#update(message.payload.update as unknown as SessionUpdate);
      case "SESSION_OPTIONS": return this.#setOptions(message.payload);
      case "SESSION_AGENTS": return this.dispatch({ type: "SET_AGENTS", payload: message.payload });
      case "PERMISSION_REQUEST": {
        const { requestId, ...params } = message.payload;
        return this.#ask({ type: "permission", id: requestId, params } as unknown as OpenRequest);
      }
      case "ELICITATION_REQUEST":
        return this.#ask({ type: "elicitation", id: message.payload.requestId, params: message.payload.request } as unknown as OpenRequest);
      case "PERMISSION_RESOLVED":
      case "ELICITATION_RESOLVED": return this.dispatch({ type: "SETTLE", payload: { requestId: message.payload.requestId } });
      case "ADD_CONTEXT_CHIP": return this.#setChips([...this.chips.filter((chip) => !isSame(chip, message.payload.chip)), message.payload.chip]);
      case "SESSION_LOADED":
        if (message.payload.historyUnavailable === true) this.#notice("info", this.strings.historyUnavailable);
        return;
      case "STATUS_UPDATE":
      case "VERSION_STATUS":
      case "SESSIONS_LIST":
      case "HISTORY_COMPLETE":
      case "SEARCH_RESULTS":
      case "FOCUS_CHAT_INPUT": return;
    }
  }

  /** Sends a prompt. While an answer is written it is said into the turn, or waits where the agent cannot hear it. */
  async send(blocks: ContentBlock[]): Promise<void> {
    this.flush();
    if (!this.state.running) this.#prompt(blocks);
    else if (this.#canSteer) this.#steer(blocks);
    else this.enqueue(blocks);
  }

  enqueue(blocks: ContentBlock[]): void {
    this.#setQueue([...this.#queue, blocks]);
    if (!this.state.running) this.#sendQueued();
  }

  unqueue(index: number): ContentBlock[] | undefined {
    const taken = this.#queue[index];
    this.#setQueue(this.#queue.filter((_, at) => at !== index));
    return taken;
  }

  stop(): void {
    this.bridge.post("STOP_GENERATION", {});
  }

  async setMode(modeId: string): Promise<void> {
    this.bridge.post("SET_MODE", { modeId });
  }

  async setConfigOption(configId: string, value: string | boolean): Promise<void> {
    if (configId === MODE_OPTION) return this.setMode(String(value));
    this.bridge.post("SET_CONFIG_OPTION", { configId, value });
  }

  answerPermission(requestId: string, optionId: string, plan?: readonly PlanEntry[]): void {
    const items = plan?.map(({ content, priority, status }) => ({ text: content, priority, status }));
    const meta = items === undefined ? {} : { meta: { "gander/plan": { items } } };
    this.bridge.post("PERMISSION_RESPONSE", { requestId, optionId, ...meta });
    this.#settle(requestId);
  }

  answerElicitation(requestId: string, answer: { action: "accept" | "decline" | "cancel"; content?: unknown }): void {
    const content = isRecord(answer.content) ? { content: answer.content } : {};
    this.bridge.post("ELICITATION_RESPONSE", { requestId, action: answer.action, ...content });
    this.#settle(requestId);
  }

  removeChip(id: string): void {
    this.#setChips(this.chips.filter((chip) => chip.id !== id));
  }

  #prompt(blocks: readonly ContentBlock[]): void {
    const responseId = this.newId();
    this.#post(blocks, responseId);
    this.dispatch({ type: "START_GENERATION", payload: { messageId: responseId } });
    this.flush();
  }

  #steer(blocks: readonly ContentBlock[]): void {
    this.#post(blocks, this.#view.currentResponseId ?? this.newId());
    this.flush();
  }

  #post(blocks: readonly ContentBlock[], responseId: string): void {
    const content = blocks.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("\n");
    const images: AttachedImage[] = blocks.flatMap((block) => (block.type === "image" ? [{ data: block.data, mimeType: block.mimeType }] : []));
    const mentioned = blocks.flatMap((block) => (block.type === "resource_link" ? [this.#mention(block.uri, block.name)] : []));
    const contextChips = [...this.chips, ...mentioned];
    const chipBlocks = this.chips.map((chip): ContentBlock => ({ type: "resource_link", uri: fileUri(chip.filePath), name: labelOf(chip) }));
    this.dispatch({ type: "ADD_USER_MESSAGE", payload: { blocks: [...blocks, ...chipBlocks] } });
    this.bridge.post("SEND_MESSAGE", {
      content, messageId: this.newId(), responseId, ...(contextChips.length > 0 && { contextChips }), ...(images.length > 0 && { images }),
    });
    this.#setChips([]);
  }

  #mention(uri: string, fileName: string): ContextChip {
    return { id: this.newId(), filePath: pathOf(uri), fileName };
  }

  #ended(action: ChatAction): void {
    this.dispatch(action);
    this.flush();
    if (!this.state.running) this.#sendQueued();
  }

  #sendQueued(): void {
    const next = this.unqueue(0);
    if (next !== undefined) this.#prompt(next);
  }

  #setQueue(queue: ContentBlock[][]): void {
    if (queue.length === 0 && this.#queue.length === 0) return;
    this.#queue = queue;
    this.onqueue(queue);
  }

  #setChips(chips: readonly ContextChip[]): void {
    this.chips = chips;
    this.onchips(chips);
  }

  #setOptions({ modes, configOptions, canSteer }: { readonly modes?: unknown; readonly configOptions?: unknown; readonly canSteer?: boolean }): void {
    this.#canSteer = canSteer === true;
    this.dispatch({ type: "SET_OPTIONS", payload: withModeOption({ modes, configOptions } as SessionOpened) });
  }

  #update(update: SessionUpdate): void {
    this.dispatch({ type: "SESSION_UPDATE", payload: { update } });
    if (update.sessionUpdate !== "current_mode_update") return;
    this.flush();
    const configOptions = this.state.configOptions.map((option) => (option.id === MODE_OPTION ? { ...option, currentValue: update.currentModeId } : option));
    this.dispatch({ type: "SET_OPTIONS", payload: { configOptions } });
  }

  #notice(severity: "info" | "warning" | "error", title: string): void {
    this.dispatch({ type: "SESSION_UPDATE", payload: { update: { sessionUpdate: "notice", severity, title } } });
  }

  #ask(request: OpenRequest): void {
    this.dispatch({ type: "ASK", payload: { request } });
  }

  #settle(requestId: string): void {
    this.dispatch({ type: "SETTLE", payload: { requestId } });
    this.flush();
  }

  #set(view: ViewState): void {
    this.#view = view;
    for (const listener of this.#listeners) listener(view.chat);
    this.onchange(view);
  }
}

function isSame(left: ContextChip, right: ContextChip): boolean {
  return left.filePath === right.filePath && left.range?.startLine === right.range?.startLine && left.range?.endLine === right.range?.endLine;
}

export function labelOf({ fileName, range }: ContextChip): string {
  return range === undefined ? fileName : `${fileName}:${range.startLine}-${range.endLine}`;
}

/** The picker of the mode, for agents whose modes are no config option. */
const MODE_OPTION = "_mode";

function withModeOption({ modes, configOptions }: SessionOpened): SessionOpened {
  const given = configOptions ?? [];
  if (modes == null || given.some(({ id, category }) => category === "mode" || id === "mode")) return { modes: modes ?? null, configOptions: given };
  const options = modes.availableModes.map(({ id, name, description }) => ({ value: id, name, description: description ?? null }));
  const mode = { id: MODE_OPTION, name: "Mode", category: "mode", type: "select" as const, currentValue: modes.currentModeId, options };
  return { modes, configOptions: [mode, ...given] };
}
