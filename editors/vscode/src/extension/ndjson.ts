/** Newline-delimited JSON: bytes in any pieces to lines, lines to messages. */

const NEWLINE = 0x0a;

/** One message may be as large as a file with its embedded picture; more is a peer that lost its way. */
export const MAX_LINE_BYTES = 64 * 1024 * 1024;

/** Collects bytes and gives whole lines. Pieces may end anywhere, also inside a character. */
export class LineSplitter {
  #pending: Buffer[] = [];
  #length = 0;
  /** The rest of a line that was too long is dropped up to its end. */
  #skipping = false;

  constructor(private readonly maxBytes = MAX_LINE_BYTES) {}

  push(chunk: Buffer): string[] {
    const lines: string[] = [];
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      const line = this.#take(chunk.subarray(start, end));
      if (line !== undefined) lines.push(line);
      start = end + 1;
    }
    this.#keep(chunk.subarray(start));
    return lines;
  }

  /** What stands after the last newline when the stream has ended. */
  end(): string[] {
    const line = this.#take(Buffer.alloc(0));
    return line === undefined ? [] : [line];
  }

  #keep(rest: Buffer): void {
    if (rest.length === 0 || this.#skipping) return;
    this.#pending.push(rest);
    this.#length += rest.length;
    if (this.#length > this.maxBytes) {
      this.#pending = [];
      this.#length = 0;
      this.#skipping = true;
    }
  }

  #take(tail: Buffer): string | undefined {
    this.#keep(tail);
    const skipped = this.#skipping;
    const line = Buffer.concat(this.#pending, this.#length).toString("utf8").trim();
    this.#pending = [];
    this.#length = 0;
    this.#skipping = false;
    return skipped || line === "" ? undefined : line;
  }
}

/** A message of JSON-RPC as far as the framing knows it. */
export type JsonRpcObject = { readonly jsonrpc: "2.0" } & Record<string, unknown>;

/** The message of a line, or undefined: no JSON, or no message of JSON-RPC 2.0. */
export function parseMessage(line: string): JsonRpcObject | undefined {
  try {
    const value: unknown = JSON.parse(line);
    if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
    return "jsonrpc" in value && value.jsonrpc === "2.0" ? (value as JsonRpcObject) : undefined;
  } catch {
    return undefined;
  }
}

export function encodeMessage(message: unknown): string {
  return `${JSON.stringify(message)}\n`;
}
