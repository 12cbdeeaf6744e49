import { describe, expect, it } from "vitest";
import { LineSplitter, encodeMessage, parseMessage } from "../src/extension/ndjson";

const messages = [
  { jsonrpc: "2.0", id: 1, result: { text: "grüße, 你好, 🪿 and \"quotes\"" } },
  { jsonrpc: "2.0", method: "session/update", params: { text: "line\nbreak\u2028" } },
  { jsonrpc: "2.0", id: 2, error: { code: -32602, message: "né" } },
];
const bytes = Buffer.from(messages.map(encodeMessage).join(""));
const parsed = (lines: string[]) => lines.map(parseMessage);

describe("ndjson", () => {
  it("reads the same messages, split at every byte", () => {
    for (let at = 0; at <= bytes.length; at += 1) {
      const lines = new LineSplitter();
      expect(parsed([...lines.push(bytes.subarray(0, at)), ...lines.push(bytes.subarray(at)), ...lines.end()])).toEqual(messages);
    }
  });

  it("reads the same messages byte by byte", () => {
    const lines = new LineSplitter();
    expect(parsed([...bytes].flatMap((byte) => lines.push(Buffer.from([byte]))))).toEqual(messages);
  });

  it("skips empty lines and takes carriage returns and a last line without its end", () => {
    const lines = new LineSplitter();
    expect(lines.push(Buffer.from("\n\r\n  \na\r\nb"))).toEqual(["a"]);
    expect(lines.end()).toEqual(["b"]);
    expect(lines.end()).toEqual([]);
  });

  it("drops a line that is too long and goes on with the next", () => {
    const lines = new LineSplitter(8);
    expect(lines.push(Buffer.from("0123"))).toEqual([]);
    expect(lines.push(Buffer.from("456789"))).toEqual([]);
    expect(lines.push(Buffer.from("more\nnext\n"))).toEqual(["next"]);
    expect(lines.push(Buffer.from("0123456789\nlast\n"))).toEqual(["last"]);
  });

  it.each(["not json", "[]", "3", "null", "\"x\"", "{}", '{"jsonrpc":"1.0","id":1}', '{"id":1}', "{"])("is no message: %s", (line) =>
    expect(parseMessage(line)).toBeUndefined());

  it("writes one line for a message, whatever is in it", () => {
    const line = encodeMessage(messages[1]);
    expect(line.indexOf("\n")).toBe(line.length - 1);
  });
});
