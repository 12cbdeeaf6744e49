/** The same extension with the real goose, whose model is a server on loopback. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { judgeVersion, runVersion } from "../src/extension/version";
import { GOOSE, isThere, makeHome, realExtension } from "./doubles/real";

/** Chat completions: "slow" is answered piece by piece until the client goes, everything else at once. */
const model = createServer((request, response) => {
  let body = "";
  request.on("data", (chunk) => (body += String(chunk)));
  request.on("end", () => {
    const { messages = [], stream } = (body === "" ? {} : JSON.parse(body)) as { messages?: { role: string; content: unknown }[]; stream?: boolean };
    const base = { id: "chatcmpl-1", created: 1, model: "mock" };
    if (stream !== true) {
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify({ ...base, object: "chat.completion", choices: [{ index: 0, message: { role: "assistant", content: "A title" }, finish_reason: "stop" }] }));
      return;
    }
    response.setHeader("content-type", "text/event-stream");
    const piece = (delta: unknown, finish_reason: string | null = null) =>
      response.write(`data: ${JSON.stringify({ ...base, object: "chat.completion.chunk", choices: [{ index: 0, delta, finish_reason }] })}\n\n`);
    const last = JSON.stringify(messages.filter(({ role }) => role === "user").at(-1)?.content ?? "");
    if (last.includes("slow")) {
      const timer = setInterval(() => piece({ content: "tick " }), 20);
      response.on("close", () => clearInterval(timer));
      return;
    }
    ["The model ", "heard ", "you."].forEach((content) => piece({ content }));
    piece({}, "stop");
    response.end("data: [DONE]\n\n");
  });
});

describe.runIf(isThere(GOOSE))("with the real goose", () => {
  const home = makeHome();
  const editors: ReturnType<typeof realExtension>[] = [];
  let env: Record<string, string> = {};
  const open = (memory?: Parameters<typeof realExtension>[0]["memory"]) => {
    const editor = realExtension({ binary: GOOSE, ...home, env, args: ["--with-builtin", "developer"], ...(memory && { memory }) });
    editors.push(editor);
    return editor;
  };
  beforeAll(async () => {
    await new Promise<void>((resolve) => model.listen(0, "127.0.0.1", resolve));
    const host = `http://127.0.0.1:${(model.address() as AddressInfo).port}`;
    env = { GOOSE_PATH_ROOT: join(home.root, "goose"), GOOSE_PROVIDER: "openai", GOOSE_MODEL: "mock", OPENAI_HOST: host, OPENAI_API_KEY: "none", GOOSE_DISABLE_KEYRING: "1", GOOSE_DISABLE_SESSION_NAMING: "true" };
  });
  afterAll(async () => {
    await Promise.all(editors.map(({ connection }) => connection.stop()));
    model.closeAllConnections();
    model.close();
    home.remove();
  });

  it("is new enough", async () => {
    expect(judgeVersion(GOOSE, await runVersion(GOOSE))).toMatchObject({ product: "goose", status: { status: "compatible", minimumVersion: "1.16.0" } });
  });

  it("prompts, streams, cancels and loads", async () => {
    const editor = open();
    await editor.connection.connect();
    expect(editor.connection.agent?.info.agentInfo?.name).toBe("goose");
    const { sessionId } = (await editor.message("SESSION_CREATED")).payload["session"] as { sessionId: string };
    await editor.send("hello", "r1");
    expect(editor.answer("r1")).toBe("The model heard you.");
    expect(editor.sent.filter(({ type }) => type.startsWith("GENERATION")).at(-1)).toMatchObject({ type: "GENERATION_COMPLETE", payload: { messageId: "r1" } });
    const slow = editor.send("slow", "r2");
    await editor.message("STREAM_TOKEN", ({ messageId }) => messageId === "r2");
    await editor.chat.handle({ type: "STOP_GENERATION", payload: {} });
    await slow;
    expect(editor.sent.filter(({ type }) => type.startsWith("GENERATION")).at(-1)).toEqual({ type: "GENERATION_CANCELLED", payload: { messageId: "r2" } });
    await editor.connection.stop();
    const again = open(editor.memory);
    await again.connection.connect();
    expect(await again.message("HISTORY_COMPLETE")).toMatchObject({ payload: { sessionId } });
    const history = again.sent.filter(({ type }) => type === "HISTORY_MESSAGE").map(({ payload }) => payload["message"] as { role: string; content: string });
    expect(history.slice(0, 2)).toMatchObject([{ role: "user", content: "hello" }, { role: "assistant", content: "The model heard you." }]);
    await again.send("and again", "r3");
    expect(again.answer("r3")).toBe("The model heard you.");
  }, 120_000);
});
