/** The extension's parts around a real agent: everything but VS Code. */
import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { AgentConnection, type AgentSettings } from "../../src/extension/agentConnection";
import { PRODUCTS, realEnvironment } from "../../src/extension/binaryDiscovery";
import { Chat } from "../../src/extension/chat";
import { clientHandlers } from "../../src/extension/clientHandlers";
import { linesOf } from "../../src/extension/promptBlocks";
import { Questions } from "../../src/extension/questions";
import { SessionStore } from "../../src/extension/sessionStore";
import { Terminals } from "../../src/extension/terminals";
import type { MessageToWebview } from "../../src/shared/messages";
import { memento } from "./chat";

/** The binaries that the tests use: `GANDER_BINARY`, else what cargo built here; `GOOSE_BINARY`, else none. */
export const GANDER = process.env["GANDER_BINARY"] ?? fileURLToPath(new URL("../../../../target/debug/gander", import.meta.url));
export const GOOSE = process.env["GOOSE_BINARY"] ?? "";
export const isThere = (path: string) => path !== "" && existsSync(path);

export interface Sent {
  readonly type: MessageToWebview["type"];
  readonly payload: Record<string, unknown>;
}

/** One home for all editors of a test, so that they share the agent's sessions. */
export function makeHome(): { root: string; work: string; remove: () => void } {
  const root = mkdtempSync(join(tmpdir(), "extension-"));
  const work = join(root, "work");
  mkdirSync(work);
  writeFileSync(join(work, "a.txt"), "one\ntwo\nthree\n");
  return { root, work, remove: () => rmSync(root, { recursive: true, force: true, maxRetries: 5 }) };
}

export interface RealOptions {
  readonly binary: string;
  readonly root: string;
  readonly work: string;
  readonly env?: Record<string, string>;
  readonly args?: readonly string[];
  readonly memory?: ReturnType<typeof memento>;
  readonly settings?: Partial<AgentSettings>;
  readonly ignorePermissions?: boolean;
}

export function realExtension({ binary, root, work, env = {}, args = [], memory = memento(), settings = {}, ignorePermissions = false }: RealOptions) {
  const sent: Sent[] = [];
  const log: string[] = [];
  const children: ChildProcessWithoutNullStreams[] = [];
  const watchers = new Set<() => void>();
  const post = (message: MessageToWebview) => {
    sent.push(message as unknown as Sent);
    for (const watcher of watchers) watcher();
  };
  const questions = new Questions({
    permissionAsked: ({ requestId, request }) => post({ type: "PERMISSION_REQUEST", payload: { requestId, ...request } }),
    permissionSettled: ({ requestId }, optionId) => post({ type: "PERMISSION_RESOLVED", payload: { requestId, optionId } }),
    elicitationAsked: ({ requestId, request }) => post({ type: "ELICITATION_REQUEST", payload: { requestId, request } }),
    elicitationSettled: ({ requestId }) => post({ type: "ELICITATION_RESOLVED", payload: { requestId } }),
  });
  const files = {
    readTextFile: async ({ path }: { path: string }) => ({ content: readFileSync(path, "utf8") }),
    writeTextFile: async ({ path, content }: { path: string; content: string }) => writeFileSync(path, content),
  };
  const terminals = new Terminals(() => ({ write: () => {}, exited: () => {}, show: () => {} }));
  const chat = new Chat({
    post, t: (text, ...values) => text.replace("{0}", values[0] ?? ""), workingDirectory: () => work, readLines: async (path, range) => linesOf(readFileSync(path, "utf8"), range),
    searchFiles: async () => [], openExternal: () => {}, openFile: () => {}, openDiff: () => {}, openTerminal: () => {}, chipOf: async () => undefined, runAction: () => {},
    log: (text) => void log.push(text), turnsChanged: () => {}, sessionUpdated: () => {},
  }, new SessionStore(memory), questions);
  const handlers = clientHandlers(questions, files, terminals, () => [work]);
  const connection = new AgentConnection({
    settings: () => ({ binaryPath: binary, agent: "auto", args, env: { HOME: root, XDG_CONFIG_HOME: join(root, ".config"), XDG_DATA_HOME: join(root, ".local/share"), ...env }, serverUrl: "", ...settings }),
    token: () => Promise.resolve(undefined),
    cwd: () => work,
    environment: realEnvironment(),
    clientInfo: { name: "vscode-gander", title: "Gander", version: "0.1.0" },
    handlers: ignorePermissions ? { ...handlers, requestPermission: () => new Promise(() => {}) } : handlers,
    events: {
      status: (status, error) => chat.handleStatus(status, error), version: (status) => chat.handleVersion(status), ready: (agent) => void chat.handleReady(agent),
      lost: (error) => chat.handleLost(error), sessionUpdate: (update) => chat.handleUpdate(update), log: (text) => void log.push(text),
    },
    spawn: ({ path, args: words, cwd, env: variables }) => {
      const child = spawn(path, [...words], { cwd, env: variables, stdio: ["pipe", "pipe", "pipe"] });
      children.push(child);
      return child;
    },
  });
  /** The first message at or after `from` that matches. */
  const message = async (type: Sent["type"], test: (payload: Record<string, unknown>) => boolean = () => true, from = 0): Promise<Sent> => {
    for (;;) {
      const found = sent.slice(from).find((each) => each.type === type && test(each.payload));
      if (found !== undefined) return found;
      await new Promise<void>((resolve) => {
        const watcher = () => {
          watchers.delete(watcher);
          resolve();
        };
        watchers.add(watcher);
      });
    }
  };
  const send = (content: string, responseId: string, contextChips = []) => chat.handle({ type: "SEND_MESSAGE", payload: { content, messageId: `${responseId}-question`, responseId, contextChips } });
  const answer = (responseId: string) => sent.filter(({ type, payload }) => type === "STREAM_TOKEN" && payload["messageId"] === responseId).map(({ payload }) => payload["token"]).join("");
  return { chat, connection, questions, sent, log, children, memory, message, send, answer };
}

export { PRODUCTS };
