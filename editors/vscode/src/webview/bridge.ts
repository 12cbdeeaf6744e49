/** The webview's end of the bridge: one handshake, typed messages, and state that survives being hidden. */
import { type MessageToExtension, type MessageToWebview, type ToExtension, isMessageToWebview } from "../shared/messages";

/** What VS Code gives a webview, once. */
export interface VsCodeApi {
  postMessage(message: unknown): void;
  getState(): unknown;
  setState(state: unknown): void;
}

export type MessageHandler = (message: MessageToWebview) => void;

export class Bridge {
  readonly #handlers = new Set<MessageHandler>();

  constructor(private readonly api: VsCodeApi, private readonly source: EventTarget) {}

  /** Listens, and says that messages may come. Handlers are registered before. */
  initialize(version: string): void {
    this.source.addEventListener("message", (event) => this.#receive((event as MessageEvent<unknown>).data));
    this.post("WEBVIEW_READY", { version });
  }

  post<T extends keyof ToExtension>(type: T, payload: ToExtension[T]): void {
    this.api.postMessage({ type, payload } as MessageToExtension);
  }

  onMessage(handler: MessageHandler): () => void {
    this.#handlers.add(handler);
    return () => this.#handlers.delete(handler);
  }

  getState<T>(guard: (value: unknown) => value is T): T | undefined {
    const state = this.api.getState();
    return guard(state) ? state : undefined;
  }

  setState(state: unknown): void {
    this.api.setState(state);
  }

  #receive(value: unknown): void {
    if (!isMessageToWebview(value)) return;
    for (const handler of this.#handlers) handler(value);
  }
}
