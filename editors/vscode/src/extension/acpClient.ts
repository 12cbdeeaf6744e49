/** An ACP client on the official SDK, with time-outs, tagged errors, and updates in the order in which they came. */
import {
  type AgentRequestMethod, type AgentRequestParamsByMethod, type AgentRequestResponsesByMethod, type AnyMessage, type ClientConnection,
  type CreateElicitationRequest, type CreateElicitationResponse, type CreateTerminalRequest, type CreateTerminalResponse,
  type InitializeResponse, type KillTerminalRequest, type ReadTextFileRequest, type ReadTextFileResponse, type ReleaseTerminalRequest,
  type RequestPermissionRequest, type RequestPermissionResponse, type SessionNotification, type TerminalOutputRequest,
  type TerminalOutputResponse, type WaitForTerminalExitRequest, type WaitForTerminalExitResponse, type WriteTextFileRequest,
  RequestError, client, methods,
} from "@agentclientprotocol/sdk";
import { type GooseError, type JsonRpcError, clientDisposed, isGooseError, jsonRpcError, jsonRpcTimeout } from "../shared/errors";
import { isRecord } from "../shared/guards";
import type { JsonRpcObject } from "./ndjson";
import { WAIT_METHOD } from "./otherTurns";
import type { Transport } from "./transport";

export const REQUEST_TIMEOUT_MS = 30_000;
const UNTIMED: ReadonlySet<string> = new Set([methods.agent.session.prompt, WAIT_METHOD]);

/** What the agent may ask of the editor. `signal` ends a question that was answered elsewhere or belongs to a turn that is over. */
export interface ClientHandlers {
  requestPermission(request: RequestPermissionRequest, signal: AbortSignal): Promise<RequestPermissionResponse>;
  createElicitation(request: CreateElicitationRequest, signal: AbortSignal): Promise<CreateElicitationResponse>;
  readTextFile(request: ReadTextFileRequest): Promise<ReadTextFileResponse>;
  writeTextFile(request: WriteTextFileRequest): Promise<void>;
  createTerminal(request: CreateTerminalRequest): Promise<CreateTerminalResponse>;
  terminalOutput(request: TerminalOutputRequest): Promise<TerminalOutputResponse>;
  waitForTerminalExit(request: WaitForTerminalExitRequest, signal: AbortSignal): Promise<WaitForTerminalExitResponse>;
  killTerminal(request: KillTerminalRequest): Promise<void>;
  releaseTerminal(request: ReleaseTerminalRequest): Promise<void>;
}

export interface ClientEvents {
  sessionUpdate(notification: SessionNotification): void;
  log(text: string): void;
  /** The transport ended by itself. */
  closed(reason: string): void;
}

export interface ClientInfo {
  readonly name: string;
  readonly title: string;
  readonly version: string;
}

export class AcpClient {
  readonly #connection: ClientConnection;
  #disposed = false;

  constructor(
    private readonly transport: Transport,
    handlers: ClientHandlers,
    private readonly events: ClientEvents,
    private readonly timeoutMs = REQUEST_TIMEOUT_MS,
  ) {
    this.#connection = clientApp(handlers, events).connect(this.#stream());
  }

  initialize(clientInfo: ClientInfo): Promise<InitializeResponse> {
    return this.request(methods.agent.initialize, {
      protocolVersion: 1,
      clientInfo: { ...clientInfo },
      clientCapabilities: {
        fs: { readTextFile: true, writeTextFile: true },
        terminal: true,
        elicitation: { form: {}, url: {} },
        session: { configOptions: { boolean: {} }, notices: {}, compaction: {} },
      },
    });
  }

  /** A prompt lasts as long as its turn does, and so does waiting for somebody else's; everything else must be answered within the time-out. */
  request<M extends AgentRequestMethod>(method: M, params: AgentRequestParamsByMethod[M]): Promise<AgentRequestResponsesByMethod[M]> {
    return this.#timed(method, (signal) =>
      this.#connection.agent.request(method, params, { cancellationSignal: signal, stopWaitingOnCancel: true }),
    );
  }

  /** A method that is not part of the protocol's stable surface, such as `session/set_title`. */
  requestExtension(method: string, params: unknown): Promise<unknown> {
    return this.#timed(method, (signal) =>
      this.#connection.agent.request<unknown>(method, params, { cancellationSignal: signal, stopWaitingOnCancel: true }),
    );
  }

  /** Cancels a turn. A notification: the answer is that of the prompt. */
  cancel(sessionId: string): void {
    this.#connection.agent.notify(methods.agent.session.cancel, { sessionId }).catch((error: unknown) => {
      this.events.log(`cannot cancel: ${String(error)}`);
    });
  }

  /** Rejects everything that is pending. */
  dispose(): void {
    if (this.#disposed) return;
    this.#disposed = true;
    this.#connection.close(clientDisposed());
    this.transport.close();
  }

  async #timed<T>(method: string, send: (signal: AbortSignal) => Promise<T>): Promise<T> {
    if (this.#disposed) throw clientDisposed();
    const controller = new AbortController();
    let timedOut = false;
    const timer = UNTIMED.has(method) ? undefined : setTimeout(() => {
      timedOut = true;
      controller.abort();
    }, this.timeoutMs);
    try {
      return await send(controller.signal);
    } catch (error) {
      throw timedOut ? jsonRpcTimeout(method, this.timeoutMs) : tagged(error);
    } finally {
      clearTimeout(timer);
    }
  }

  /**
   * The SDK's end of the transport. Session updates are taken out before the SDK sees them: it hands notifications to their handlers
   * asynchronously, so that the answer of `session/load` could overtake the last of the history, and it would refuse kinds of updates
   * that it does not know.
   */
  #stream() {
    const { transport, events } = this;
    const readable = new ReadableStream<AnyMessage>({
      start(controller) {
        transport.listen({
          message(message) {
            const notification = sessionNotification(message);
            if (notification === undefined) controller.enqueue(message as unknown as AnyMessage);
            else events.sessionUpdate(notification);
          },
          malformed(error) {
            events.log(error.message);
          },
          closed(reason) {
            controller.error(clientDisposed());
            events.closed(reason);
          },
        });
      },
    });
    const writable = new WritableStream<AnyMessage>({ write: (message) => transport.send(message) });
    return { readable, writable };
  }
}

function clientApp(handlers: ClientHandlers, events: ClientEvents) {
  const app = client({ name: "gander" });
  const { session, fs, terminal, elicitation } = methods.client;
  app.onRequest(session.requestPermission, ({ params, signal }) => handlers.requestPermission(params, signal));
  app.onRequest(elicitation.create, ({ params, signal }) => handlers.createElicitation(params, signal));
  app.onRequest(fs.readTextFile, ({ params }) => handlers.readTextFile(params));
  app.onRequest(fs.writeTextFile, async ({ params }) => (await handlers.writeTextFile(params), {}));
  app.onRequest(terminal.create, ({ params }) => handlers.createTerminal(params));
  app.onRequest(terminal.output, ({ params }) => handlers.terminalOutput(params));
  app.onRequest(terminal.waitForExit, ({ params, signal }) => handlers.waitForTerminalExit(params, signal));
  app.onRequest(terminal.kill, async ({ params }) => (await handlers.killTerminal(params), {}));
  app.onRequest(terminal.release, async ({ params }) => (await handlers.releaseTerminal(params), {}));
  app.onNotification("*", ({ method }) => events.log(`a notification that means nothing here: ${method}`));
  return app;
}

function sessionNotification(message: JsonRpcObject): SessionNotification | undefined {
  if (message["method"] !== methods.client.session.update || "id" in message) return undefined;
  const params = message["params"];
  if (!isRecord(params) || typeof params["sessionId"] !== "string" || !isRecord(params["update"])) return undefined;
  if (typeof params["update"]["sessionUpdate"] !== "string") return undefined;
  return params as unknown as SessionNotification;
}

/** Errors of the SDK, of the transport and of the agent become ours. */
function tagged(error: unknown): GooseError {
  if (isGooseError(error)) return error;
  if (error instanceof RequestError) return jsonRpcError(error.code, error.message, error.data);
  return writeError(error);
}

const WRITE_FAILED = -32001;

function writeError(error: unknown): JsonRpcError {
  return jsonRpcError(WRITE_FAILED, error instanceof Error ? error.message : String(error));
}
