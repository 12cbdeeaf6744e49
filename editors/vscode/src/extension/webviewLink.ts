/** The extension's end of the webview bridge: holds messages back until the webview is ready, and starts over with a new one. */
import { type MessageToExtension, type MessageToWebview, isMessageToExtension, message } from "../shared/messages";

/** The part of `vscode.Webview` that is used. */
export interface WebviewPort {
  postMessage(message: unknown): PromiseLike<boolean>;
}

export interface LinkEvents {
  message(message: MessageToExtension): void;
  /** A webview is ready. `recreated`: it is not the first one, and knows only what the one before had saved. */
  ready(recreated: boolean): void;
  log(text: string): void;
}

/** More than this is not kept for a webview that nobody opens; what was dropped is read again from the agent. */
export const MAX_QUEUED = 5_000;

type Kept = "STATUS_UPDATE" | "VERSION_STATUS";

export class WebviewLink {
  #port: WebviewPort | undefined;
  #isReady = false;
  #queue: MessageToWebview[] = [];
  #overflowed = false;
  #readyBefore = false;
  readonly #last = new Map<Kept, MessageToWebview>();
  #waiting: (() => void)[] = [];

  constructor(private readonly events: LinkEvents) {}

  get isReady(): boolean {
    return this.#isReady;
  }

  /** A webview was created. Nothing is sent to it before it says that it is ready. */
  attach(port: WebviewPort): void {
    this.#port = port;
    this.#isReady = false;
  }

  detach(port: WebviewPort): void {
    // The old webview may be disposed after its successor was attached.
    if (this.#port !== port) return;
    this.#port = undefined;
    this.#isReady = false;
  }

  waitForReady(): Promise<void> {
    return this.#isReady ? Promise.resolve() : new Promise((resolve) => this.#waiting.push(resolve));
  }

  post(sent: MessageToWebview): void {
    if (sent.type === "STATUS_UPDATE" || sent.type === "VERSION_STATUS") this.#last.set(sent.type, sent);
    if (this.#isReady && this.#port !== undefined) void this.#port.postMessage(sent);
    else this.#keep(sent);
  }

  /** Takes what a webview sent. Anything that is no message of ours is dropped. */
  receive(port: WebviewPort, value: unknown): void {
    if (port !== this.#port) return;
    if (!isMessageToExtension(value)) {
      this.events.log("the webview sent something that is no message, it is ignored");
      return;
    }
    if (value.type === "WEBVIEW_READY") this.#becomeReady();
    else this.events.message(value);
  }

  /** Whether messages were dropped since the last call: then the whole state must be sent again. */
  takeOverflow(): boolean {
    const overflowed = this.#overflowed;
    this.#overflowed = false;
    return overflowed;
  }

  #becomeReady(): void {
    const recreated = this.#readyBefore;
    this.#readyBefore = true;
    this.#isReady = true;
    const queue = this.#queue;
    this.#queue = [];
    // What the queue tells about status and version is old news by now: the last word of each comes after it.
    for (const queued of queue) {
      if (!this.#last.has(queued.type as Kept)) void this.#port?.postMessage(queued);
    }
    for (const last of this.#last.values()) void this.#port?.postMessage(last);
    this.#waiting.splice(0).forEach((resolve) => resolve());
    this.events.ready(recreated);
  }

  #keep(sent: MessageToWebview): void {
    const last = this.#queue.at(-1);
    if (sent.type === "STREAM_TOKEN" && last?.type === "STREAM_TOKEN" && last.payload.messageId === sent.payload.messageId) {
      const { messageId, done } = sent.payload;
      this.#queue[this.#queue.length - 1] = message("STREAM_TOKEN", { messageId, token: last.payload.token + sent.payload.token, done });
      return;
    }
    if (this.#queue.length >= MAX_QUEUED) {
      this.#queue = [];
      this.#overflowed = true;
    }
    this.#queue.push(sent);
  }
}
