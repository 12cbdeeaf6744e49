/** An agent of a few lines: the other end of the pipes, with answers that the test gives. */
import { PassThrough } from "node:stream";
import type { ClientHandlers } from "../../src/extension/acpClient";
import { LineSplitter, encodeMessage } from "../../src/extension/ndjson";
import { StdioTransport } from "../../src/extension/transport";

export interface Received {
  readonly id?: number | string;
  readonly method?: string;
  readonly params?: Record<string, unknown>;
  readonly result?: unknown;
  readonly error?: { code: number; message: string };
}

type Answer = (params: Record<string, unknown>, agent: TestAgent) => unknown;

/** A method without an answer stays open until the test calls `respond`. */
export class TestAgent {
  readonly stdin = new PassThrough();
  readonly stdout = new PassThrough();
  readonly received: Received[] = [];
  readonly transport = new StdioTransport(this.stdin, this.stdout);
  #waiting: { test: (received: Received) => boolean; resolve: (received: Received) => void }[] = [];
  #nextId = 100;

  constructor(readonly answers: Record<string, Answer> = {}) {
    const lines = new LineSplitter();
    this.stdin.on("data", (chunk: Buffer) => lines.push(chunk).forEach((line) => this.#take(JSON.parse(line) as Received)));
  }

  send(message: unknown): void {
    this.stdout.write(encodeMessage(message));
  }

  update(sessionId: string, update: Record<string, unknown>): void {
    this.send({ jsonrpc: "2.0", method: "session/update", params: { sessionId, update } });
  }

  say(sessionId: string, text: string, messageId = "m"): void {
    this.update(sessionId, { sessionUpdate: "agent_message_chunk", messageId, content: { type: "text", text } });
  }

  respond(id: number | string | undefined, result: unknown): void {
    this.send({ jsonrpc: "2.0", id, result });
  }

  fail(id: number | string | undefined, code: number, message: string, data?: unknown): void {
    this.send({ jsonrpc: "2.0", id, error: { code, message, data } });
  }

  /** A request of the agent; gives the client's response. */
  request(method: string, params: unknown): { readonly id: number; readonly response: Promise<Received> } {
    const id = this.#nextId++;
    const response = this.next((received) => received.id === id && received.method === undefined);
    this.send({ jsonrpc: "2.0", id, method, params });
    return { id, response };
  }

  /** The first message that matches, also one that has already come. */
  next(test: (received: Received) => boolean): Promise<Received> {
    const found = this.received.find(test);
    return found === undefined ? new Promise((resolve) => this.#waiting.push({ test, resolve })) : Promise.resolve(found);
  }

  called(method: string): Promise<Received> {
    return this.next((received) => received.method === method);
  }

  #take(received: Received): void {
    this.received.push(received);
    const answer = received.method === undefined ? undefined : this.answers[received.method];
    if (answer !== undefined && received.id !== undefined) this.respond(received.id, answer(received.params ?? {}, this));
    this.#waiting = this.#waiting.filter(({ test, resolve }) => {
      if (!test(received)) return true;
      resolve(received);
      return false;
    });
  }
}

export const initialize = { initialize: () => ({ protocolVersion: 1, agentCapabilities: { loadSession: true, sessionCapabilities: { list: {} } }, agentInfo: { name: "test", version: "1" } }) };

const refuse = () => Promise.reject(new Error("not in this test"));
export const noHandlers: ClientHandlers = {
  requestPermission: refuse, createElicitation: refuse, readTextFile: refuse, writeTextFile: refuse, createTerminal: refuse, terminalOutput: refuse,
  waitForTerminalExit: refuse, killTerminal: refuse, releaseTerminal: refuse,
};
