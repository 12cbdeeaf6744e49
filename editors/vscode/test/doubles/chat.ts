/** A chat with a test agent behind it and a list of what the webview was sent. */
import { randomUUID } from "node:crypto";
import { AcpClient } from "../../src/extension/acpClient";
import { Chat, type ChatHost } from "../../src/extension/chat";
import { clientHandlers } from "../../src/extension/clientHandlers";
import { Questions } from "../../src/extension/questions";
import { SessionStore } from "../../src/extension/sessionStore";
import { Terminals } from "../../src/extension/terminals";
import type { MessageToWebview } from "../../src/shared/messages";
import { TestAgent, initialize } from "./agent";

type Sent = { type: string; payload: Record<string, unknown> };

export function memento(initial: Record<string, unknown> = {}) {
  const values = new Map(Object.entries(initial));
  return { values, get: (key: string) => values.get(key), update: async (key: string, value: unknown) => void values.set(key, value) };
}

export function chatHarness(answers: ConstructorParameters<typeof TestAgent>[0] = {}, stored: Record<string, unknown> = {}) {
  const agent = new TestAgent({ ...initialize, ...answers });
  const sent: Sent[] = [];
  const calls: unknown[][] = [];
  const waiting: { test: (message: Sent) => boolean; resolve: (message: Sent) => void }[] = [];
  const post = (message: MessageToWebview) => {
    const record = message as unknown as Sent;
    sent.push(record);
    for (const each of [...waiting]) {
      if (!each.test(record)) continue;
      waiting.splice(waiting.indexOf(each), 1);
      each.resolve(record);
    }
  };
  const note = (name: string) => (...values: unknown[]) => void calls.push([name, ...values]);
  const host: ChatHost = {
    post, t: (text, ...values) => text.replace("{0}", values[0] ?? ""), workingDirectory: () => "/project", readLines: async () => "line", openExternal: note("openExternal"),
    searchFiles: async (query, cwd) => [{ filePath: `${cwd}/${query}`, fileName: query, relativePath: query }], openFile: note("openFile"), openDiff: note("openDiff"),
    openTerminal: note("openTerminal"), chipOf: async (uri) => (uri.startsWith("file:") ? { id: "c", filePath: uri.slice(7), fileName: "f" } : undefined),
    runAction: note("runAction"), log: note("log"), turnsChanged: note("turnsChanged"), sessionUpdated: () => {},
  };
  const questions = new Questions({
    permissionAsked: ({ requestId, request }) => post({ type: "PERMISSION_REQUEST", payload: { requestId, ...request } }),
    permissionSettled: ({ requestId }, optionId) => post({ type: "PERMISSION_RESOLVED", payload: { requestId, optionId } }),
    elicitationAsked: ({ requestId, request }) => post({ type: "ELICITATION_REQUEST", payload: { requestId, request } }),
    elicitationSettled: ({ requestId }) => post({ type: "ELICITATION_RESOLVED", payload: { requestId } }),
  }, randomUUID);
  const memory = memento(stored);
  const store = new SessionStore(memory);
  const chat = new Chat(host, store, questions);
  const files = { readTextFile: async () => ({ content: "text" }), writeTextFile: () => Promise.reject(new Error("read only")) };
  const terminals = new Terminals(() => ({ write: () => {}, exited: () => {}, show: () => {} }));
  const handlers = clientHandlers(questions, files, terminals, () => [process.cwd()]);
  const client = new AcpClient(agent.transport, handlers, { sessionUpdate: (update) => chat.handleUpdate(update), log: () => {}, closed: () => {} }, 5_000);
  const connect = async () => {
    const info = await client.initialize({ name: "n", title: "t", version: "v" });
    chat.handleStatus("running");
    await chat.handleReady({ client, info, name: "test" });
  };
  /** The first message that matches, also one that was already sent. */
  const message = (test: (message: Sent) => boolean): Promise<Sent> => {
    const found = sent.find(test);
    return found === undefined ? new Promise((resolve) => waiting.push({ test, resolve })) : Promise.resolve(found);
  };
  const types = () => sent.map(({ type }) => type);
  return { agent, chat, client, connect, sent, calls, store, memory, message, types, questions };
}
