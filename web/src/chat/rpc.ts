// A JSON-RPC 2.0 peer over any transport that carries whole messages: WebSocket frames, postMessage, a child's lines.

export type Id = string | number;
export interface Message {
  jsonrpc: '2.0';
  id?: Id | null;
  method?: string;
  params?: unknown;
  result?: unknown;
  error?: { code: number; message: string; data?: unknown };
}

export class RpcError extends Error {
  constructor(readonly code: number, message: string, readonly data?: unknown) {
    super(message);
    this.name = 'RpcError';
  }

  /** The server's word for programs, if it gave one. */
  get reason(): string | null {
    const reason = (this.data as { reason?: unknown } | undefined)?.reason;
    return typeof reason === 'string' ? reason : null;
  }
}

/** The transport ended before the answer came: what was asked may or may not have happened. */
export class Disconnected extends Error {
  constructor() {
    super('the connection was lost before the answer came');
    this.name = 'Disconnected';
  }
}

/** Answers a request of the other side, at most once. */
export type Respond = (result: unknown) => void;

export interface Handlers {
  notification(method: string, params: unknown): void;
  request(id: Id, method: string, params: unknown, respond: Respond): void;
}

const METHOD_NOT_FOUND = -32601;

export class RpcPeer {
  #next = 1;
  #pending = new Map<Id, { resolve(value: unknown): void; reject(error: Error): void }>();
  #closed = false;

  constructor(private readonly send: (message: Message) => void, private readonly handlers: Handlers) {}

  request<T>(method: string, params: unknown): Promise<T> {
    if (this.#closed) return Promise.reject(new Disconnected());
    const id = this.#next++;
    const answer = new Promise<unknown>((resolve, reject) => this.#pending.set(id, { resolve, reject }));
    this.send({ jsonrpc: '2.0', id, method, params });
    return answer as Promise<T>;
  }

  notify(method: string, params: unknown): void {
    if (!this.#closed) this.send({ jsonrpc: '2.0', method, params });
  }

  /** Feeds one message of the other side. */
  receive(message: Message): void {
    if (this.#closed) return;
    const { id, method } = message;
    if (method !== undefined) {
      if (id === undefined || id === null) this.handlers.notification(method, message.params);
      else this.handlers.request(id, method, message.params, this.#responder(id));
      return;
    }
    const waiting = id === undefined || id === null ? undefined : this.#pending.get(id);
    if (!waiting || id === undefined || id === null) return;
    this.#pending.delete(id);
    const { error } = message;
    if (error) waiting.reject(new RpcError(error.code, error.message, error.data));
    else waiting.resolve(message.result);
  }

  refuse(id: Id, method: string): void {
    const error = { code: METHOD_NOT_FOUND, message: `method not found: ${method}` };
    if (!this.#closed) this.send({ jsonrpc: '2.0', id, error });
  }

  /** The transport ended: whoever waits is told so. */
  close(): void {
    this.#closed = true;
    for (const { reject } of this.#pending.values()) reject(new Disconnected());
    this.#pending.clear();
  }

  #responder(id: Id): Respond {
    let answered = false;
    return (result) => {
      if (answered || this.#closed) return;
      answered = true;
      this.send({ jsonrpc: '2.0', id, result });
    };
  }
}
