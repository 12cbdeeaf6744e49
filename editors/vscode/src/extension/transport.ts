/** How messages of JSON-RPC travel: the lines of a child process, or the frames of a WebSocket. */
import type { Readable, Writable } from "node:stream";
import { WebSocket } from "ws";
import { type JsonRpcParseError, jsonRpcParse } from "../shared/errors";
import { type JsonRpcObject, LineSplitter, MAX_LINE_BYTES, encodeMessage, parseMessage } from "./ndjson";

export interface TransportEvents {
  message(message: JsonRpcObject): void;
  /** A line that is no message. It is skipped, the next one counts again. */
  malformed(error: JsonRpcParseError): void;
  /** Nothing comes any more. Called once; never after `close` of this side. */
  closed(reason: string): void;
}

export interface Transport {
  listen(events: TransportEvents): void;
  /** Resolves when the message was handed over, rejects when it could not be written. */
  send(message: unknown): Promise<void>;
  close(): void;
}

/** Messages as lines: what `gander acp` and `goose acp` speak on their standard streams. */
export class StdioTransport implements Transport {
  #closed = false;

  constructor(private readonly stdin: Writable, private readonly stdout: Readable) {}

  listen(events: TransportEvents): void {
    const lines = new LineSplitter();
    const take = (line: string) => {
      if (!this.#closed) deliver(line, events);
    };
    const end = (reason: string) => {
      if (this.#closed) return;
      this.#closed = true;
      events.closed(reason);
    };
    this.stdout.on("data", (chunk: Buffer) => lines.push(chunk).forEach(take));
    this.stdout.on("end", () => {
      lines.end().forEach(take);
      end("the agent closed its output");
    });
    this.stdout.on("error", (error) => end(error.message));
    // Without a listener a broken pipe would end the extension host; the request that was being written learns of it by `send`.
    this.stdin.on("error", () => {});
  }

  send(message: unknown): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.#closed || !this.stdin.writable) {
        reject(new Error("the agent's input is closed"));
        return;
      }
      this.stdin.write(encodeMessage(message), (error) => (error ? reject(error) : resolve()));
    });
  }

  close(): void {
    this.#closed = true;
  }
}

/** Messages as text frames: what a running server speaks at `/acp`. */
export class WebSocketTransport implements Transport {
  #closed = false;

  constructor(private readonly socket: WebSocket) {}

  /**
   * Connects, or rejects with what the server said. The token goes into a header, never into the address: as a bearer token, and if
   * that is refused as goose wants it. Both at once are refused by servers that take either.
   */
  static async connect(url: string, token: string | undefined, timeoutMs: number): Promise<WebSocketTransport> {
    if (token === undefined || token === "") return open(url, {}, timeoutMs);
    try {
      return await open(url, { authorization: `Bearer ${token}` }, timeoutMs);
    } catch (error) {
      if (!(error instanceof TokenRefused)) throw error;
      return open(url, { "x-secret-key": token }, timeoutMs);
    }
  }

  listen(events: TransportEvents): void {
    this.socket.on("message", (data, binary) => {
      if (!binary && !this.#closed) deliver(String(data), events);
    });
    const end = (reason: string) => {
      if (this.#closed) return;
      this.#closed = true;
      events.closed(reason);
    };
    this.socket.on("close", (code, reason) => end(`the server closed the connection: ${reason.toString() || code}`));
    this.socket.on("error", (error) => end(error.message));
    this.socket.resume();
  }

  send(message: unknown): Promise<void> {
    return new Promise((resolve, reject) => {
      this.socket.send(JSON.stringify(message), (error) => (error ? reject(error) : resolve()));
    });
  }

  close(): void {
    this.#closed = true;
    this.socket.close();
  }
}

class TokenRefused extends Error {}

function open(url: string, headers: Record<string, string>, timeoutMs: number): Promise<WebSocketTransport> {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(url, { headers, handshakeTimeout: timeoutMs, maxPayload: MAX_LINE_BYTES, followRedirects: false });
    // Frames that arrive before `listen` would be lost, so nothing is read until then.
    socket.once("open", () => {
      socket.pause();
      resolve(new WebSocketTransport(socket));
    });
    socket.once("unexpected-response", (_request, response) => {
      const status = response.statusCode ?? 0;
      const refused = status === 401 || status === 403;
      reject(refused ? new TokenRefused(`the server refuses the token: ${status}`) : new Error(`the server answers ${status}`));
      socket.terminate();
    });
    socket.on("error", (error) => reject(error));
  });
}

function deliver(line: string, events: TransportEvents): void {
  const message = parseMessage(line);
  if (message === undefined) events.malformed(jsonRpcParse(line));
  else events.message(message);
}

/** The WebSocket address of a server that somebody gave as `http://…`, with `/acp` if no path is named. */
export function acpAddress(url: string): string {
  const parsed = new URL(url);
  const schemes: Record<string, string> = { "http:": "ws:", "https:": "wss:", "ws:": "ws:", "wss:": "wss:" };
  const scheme = schemes[parsed.protocol];
  if (scheme === undefined) throw new Error(`the server's address must begin with http, https, ws or wss: ${url}`);
  if (parsed.username !== "" || parsed.password !== "") throw new Error("the server's address must not hold a password");
  const path = parsed.pathname === "/" ? "/acp" : parsed.pathname;
  return `${scheme}//${parsed.host}${path}${parsed.search}`;
}
