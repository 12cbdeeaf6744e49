/** The integration checklist of a client for goose's ACP, its twelve points in one test, with the real gander. */
import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { discoverBinary, realEnvironment } from "../src/extension/binaryDiscovery";
import { LineSplitter, encodeMessage } from "../src/extension/ndjson";
import { judgeVersion, runVersion } from "../src/extension/version";
import { GANDER, PRODUCTS, isThere, makeHome, realExtension } from "./doubles/real";

const home = makeHome();
const demo = { binary: GANDER, ...home, env: { GANDER_MODEL: "demo/demo", GANDER_DAEMON_IDLE: "2s" } };
const editors: ReturnType<typeof realExtension>[] = [];
const open = (options: Partial<Parameters<typeof realExtension>[0]> = {}) => {
  const editor = realExtension({ ...demo, ...options });
  editors.push(editor);
  return editor;
};
afterAll(async () => {
  await Promise.all(editors.map(({ connection }) => connection.stop()));
  home.remove();
});

describe("with the real gander", () => {
  it("is there", () => expect(isThere(GANDER), `no binary at ${GANDER}: build it with cargo, or set GANDER_BINARY`).toBe(true));

  it("passes all twelve points of the checklist", async () => {
    // 1. Binary discovery: in PATH, and by a configured path.
    const environment = { ...realEnvironment(), env: { PATH: dirname(GANDER) } };
    expect(discoverBinary({ configuredPath: "", products: PRODUCTS }, environment)).toEqual({ found: { path: GANDER, source: "PATH" } });
    expect(discoverBinary({ configuredPath: GANDER, products: PRODUCTS }, environment)).toEqual({ found: { path: GANDER, source: "setting" } });
    // 2. Version check.
    expect(judgeVersion(GANDER, await runVersion(GANDER))).toMatchObject({ product: "gander", status: { status: "compatible" } });
    // 3. Spawn `acp` with piped streams. 4. ndjson framing: written and read by the parts that the extension uses.
    const editor = open();
    await editor.connection.connect();
    expect(editor.children[0]?.spawnargs.slice(1)).toEqual(["acp"]);
    expect(new LineSplitter().push(Buffer.from(encodeMessage({ jsonrpc: "2.0", id: 1 })))).toHaveLength(1);
    // 5. initialize with protocolVersion 1 and clientInfo; capabilities are read.
    expect(editor.connection.agent?.info).toMatchObject({ protocolVersion: 1, agentCapabilities: { loadSession: true, promptCapabilities: { embeddedContext: true } }, agentInfo: { name: "gander" } });
    // 6. A session with the working directory.
    const created = await editor.message("SESSION_CREATED");
    const { sessionId, cwd } = created.payload["session"] as { sessionId: string; cwd: string };
    expect(cwd).toBe(home.work);
    // 7. and 8. Streaming while a prompt is pending.
    await editor.send("text", "r1");
    expect(editor.answer("r1")).toContain("It streams in small pieces");
    expect(editor.sent.filter(({ type }) => type === "STREAM_TOKEN").length).toBeGreaterThan(1);
    expect(editor.sent.at(-1)).toMatchObject({ type: "GENERATION_COMPLETE", payload: { messageId: "r1", stopReason: "end_turn" } });
    // Beyond: permissions are asked, and what was allowed runs.
    const asking = editor.send("ask", "r2");
    const request = await editor.message("PERMISSION_REQUEST");
    expect(existsSync(join(home.work, "gander-hello.txt"))).toBe(false);
    await editor.chat.handle({ type: "PERMISSION_RESPONSE", payload: { requestId: String(request.payload["requestId"]), optionId: "allow_once" } });
    await asking;
    expect(existsSync(join(home.work, "gander-hello.txt"))).toBe(true);
    // 9. Cancellation.
    const long = editor.send("long", "r3");
    await editor.message("STREAM_TOKEN", ({ messageId }) => messageId === "r3");
    await editor.chat.handle({ type: "STOP_GENERATION", payload: {} });
    await long;
    expect(editor.sent.filter(({ payload }) => payload["messageId"] === "r3").at(-1)).toEqual({ type: "GENERATION_CANCELLED", payload: { messageId: "r3" } });
    // 10. Restoration: another editor with the same memory finds the session and its history.
    const again = open({ memory: editor.memory });
    await again.connection.connect();
    expect(await again.message("HISTORY_COMPLETE")).toMatchObject({ payload: { sessionId } });
    const history = again.sent.filter(({ type }) => type === "HISTORY_MESSAGE").map(({ payload }) => payload["message"] as { role: string; content: string });
    expect(history.slice(0, 2)).toMatchObject([{ role: "user", content: "text" }, { role: "assistant", content: editor.answer("r1") }]);
    // 11. A crash: the prompt is rejected, the state is told, a restart works.
    const lost = again.send("long", "r4");
    await again.message("STREAM_TOKEN", ({ messageId }) => messageId === "r4");
    again.children[0]?.kill("SIGKILL");
    await lost;
    await again.message("STATUS_UPDATE", ({ status }) => status === "error");
    expect(again.sent.filter(({ type }) => type === "GENERATION_CANCELLED")).toHaveLength(1);
    const from = again.sent.length;
    await again.connection.connect();
    await again.message("SESSION_LOADED", () => true, from);
    // 12. Graceful shutdown.
    const child = again.children[1];
    await again.connection.stop();
    expect([child?.signalCode, child?.exitCode]).not.toEqual([null, null]);
    expect(child?.signalCode).not.toBe("SIGKILL");
  }, 120_000);

  it("sees what another client says in the same session, live, and the end of its turn", async () => {
    const first = open();
    await first.connection.connect();
    const { sessionId } = (await first.message("SESSION_CREATED")).payload["session"] as { sessionId: string };
    await first.send("help", "a1");
    const second = open();
    await second.connection.connect();
    await second.message("SESSION_CREATED");
    await second.chat.handle({ type: "GET_SESSIONS", payload: {} });
    const list = second.sent.at(-1)?.payload["sessions"] as { sessionId: string; origin: string }[];
    expect(list).toContainEqual(expect.objectContaining({ sessionId, origin: "elsewhere" }));
    await second.chat.handle({ type: "SELECT_SESSION", payload: { sessionId } });
    const word = `text ${randomUUID()}`;
    const turn = first.send(word, "a2");
    await second.message("SESSION_UPDATE", ({ update }) => JSON.stringify(update).includes(word));
    const { messageId } = (await second.message("TURN_STARTED")).payload;
    const end = await second.message("GENERATION_COMPLETE");
    expect(end.payload).toEqual({ messageId, stopReason: "end_turn" });
    // The end is the last word: nothing of the answer comes after it.
    const isAnswer = ({ type, payload }: (typeof second.sent)[number]) => type === "SESSION_UPDATE" && (payload["update"] as { sessionUpdate: string }).sessionUpdate === "agent_message_chunk";
    expect(second.sent.findLastIndex(isAnswer)).toBeLessThan(second.sent.indexOf(end));
    expect(second.sent.filter(isAnswer).map(({ payload }) => (payload["update"] as { content: { text: string } }).content.text).join("")).toContain("It streams in small pieces");
    await turn;
    // A turn that is cancelled here ends in both.
    const long = first.send("long", "a3");
    const from = second.sent.indexOf(end) + 1;
    await second.message("SESSION_UPDATE", ({ update }) => (update as { sessionUpdate: string }).sessionUpdate === "agent_message_chunk", from);
    expect(second.chat.isRunning).toBe(true);
    await second.chat.handle({ type: "STOP_GENERATION", payload: {} });
    await long;
    await second.message("GENERATION_CANCELLED", () => true, from);
    expect(second.chat.isRunning).toBe(false);
  }, 60_000);

  it("answers a client that ignores permission requests as soon as it stops: the turn does not hang", async () => {
    const editor = open({ ignorePermissions: true });
    await editor.connection.connect();
    await editor.message("SESSION_CREATED");
    const turn = editor.send("ask", "r1");
    await editor.message("SESSION_UPDATE", ({ update }) => (update as { sessionUpdate: string }).sessionUpdate === "tool_call");
    await editor.chat.handle({ type: "STOP_GENERATION", payload: {} });
    await turn;
    expect(editor.sent.at(-1)).toEqual({ type: "GENERATION_CANCELLED", payload: { messageId: "r1" } });
  }, 60_000);
});
