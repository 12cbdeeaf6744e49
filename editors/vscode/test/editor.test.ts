/** The parts that touch VS Code's API, with a small double of it. */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import * as double from "./doubles/vscode";
import { DiffView, optionOf } from "../src/extension/diffView";
import { EditorFiles } from "../src/extension/editorFiles";
import { QuestionNotifier, notifyElicitation, notifyPermission } from "../src/extension/notifications";
import { Questions } from "../src/extension/questions";
import { TokenStore, askForServer, readSettings } from "../src/extension/settings";
import { StatusBar } from "../src/extension/statusBar";
import { openTerminalScreen } from "../src/extension/terminalScreen";
import { ToolCalls } from "../src/extension/toolCalls";
import { TurnProgress } from "../src/extension/turnProgress";
import { viewStrings } from "../src/extension/viewStrings";
import { escapeHtml, page } from "../src/extension/webviewProvider";
import { ENGLISH } from "../src/shared/strings";

const { fake, resetFake, Uri } = double;
const root = mkdtempSync(join(tmpdir(), "editor-"));
const path = join(root, "a.txt");
const options = [
  { optionId: "always", name: "Always", kind: "allow_always" as const }, { optionId: "once", name: "Once", kind: "allow_once" as const }, { optionId: "never", name: "Never", kind: "reject_always" as const },
];
beforeEach(resetFake);

const quietQuestions = () => new Questions({ permissionAsked: () => {}, permissionSettled: () => {}, elicitationAsked: () => {}, elicitationSettled: () => {} }, () => "q");
const document = (text: string, save = true) => ({ uri: Uri.file(path), languageId: "plaintext", lineCount: text.split("\n").length, getText: () => text, save: async () => save });

describe("EditorFiles", () => {
  const files = () => new EditorFiles(() => [root], () => "id");

  it("reads the changes that are not saved", async () => {
    fake.files.set(path, Buffer.from("on the disk"));
    expect(await files().readTextFile({ sessionId: "s", path })).toEqual({ content: "on the disk" });
    fake.documents.push(document("in the\neditor\nnow"));
    expect(await files().readTextFile({ sessionId: "s", path })).toEqual({ content: "in the\neditor\nnow" });
    expect(await files().readTextFile({ sessionId: "s", path, line: 2, limit: 1 })).toEqual({ content: "editor" });
    expect(await files().readTextFile({ sessionId: "s", path, line: 2 })).toEqual({ content: "editor\nnow" });
    expect(await files().readLines(path, { startLine: 1, endLine: 2 })).toBe("in the\neditor");
  });

  it("writes to the disk, or into the open document", async () => {
    await files().writeTextFile({ sessionId: "s", path: join(root, "new/b.txt"), content: "x" });
    expect(String(fake.files.get(join(root, "new/b.txt")))).toBe("x");
    fake.documents.push(document("old"));
    await files().writeTextFile({ sessionId: "s", path, content: "new" });
    expect(fake.applied.map(({ text }) => text)).toEqual(["new"]);
    fake.documents[0] = document("old", false);
    await expect(files().writeTextFile({ sessionId: "s", path, content: "new" })).rejects.toThrow("could not save");
  });

  it("keeps to the open folders", async () => {
    await expect(files().readTextFile({ sessionId: "s", path: "/etc/passwd" })).rejects.toThrow("outside");
    await expect(files().writeTextFile({ sessionId: "s", path: join(root, "../x"), content: "" })).rejects.toThrow("outside");
    await expect(files().readTextFile({ sessionId: "s", path: join(root, "absent") })).rejects.toThrow("no such file");
    await expect(files().readLines(join(root, "absent"), { startLine: 1, endLine: 1 })).rejects.toThrow("no such file");
    expect(await files().read(join(root, "absent"))).toBeUndefined();
  });

  it("searches, relative to the session's folder", async () => {
    fake.found.push(Uri.file(join(root, "src/main.ts")), Uri.file("/elsewhere/main.ts"));
    expect(await files().search("main", root)).toEqual([
      { filePath: join(root, "src/main.ts"), fileName: "main.ts", relativePath: "src/main.ts" },
      { filePath: "/elsewhere/main.ts", fileName: "main.ts", relativePath: "/elsewhere/main.ts" },
    ].sort((a, b) => a.relativePath.length - b.relativePath.length));
  });

  it("makes chips of files and selections", async () => {
    fake.files.set(path, Buffer.from(""));
    expect(await files().chipOf(`file://${path}`)).toEqual({ id: "id", filePath: path, fileName: "a.txt" });
    expect(await files().chipOf(path)).toMatchObject({ filePath: path });
    expect(await files().chipOf(`vscode-remote://localhost${path}`)).toMatchObject({ filePath: path });
    expect(await files().chipOf("https://example.org")).toBeUndefined();
    expect(await files().chipOf(join(root, "absent"))).toBeUndefined();
    const selected = (from: [number, number], to: [number, number]) => {
      const [start, end] = [from, to].map(([line, character]) => ({ line, character }));
      return files().chipOfEditor({ document: document("x"), selection: { start, end, isEmpty: String(from) === String(to) } } as never);
    };
    expect(selected([9, 0], [24, 3])).toMatchObject({ range: { startLine: 10, endLine: 25 } });
    expect(selected([0, 0], [4, 0])).toMatchObject({ range: { startLine: 1, endLine: 4 } });
    expect(selected([3, 1], [3, 1])).not.toHaveProperty("range");
    expect(files().chipOfEditor({ document: { uri: Uri.parse("untitled:x") }, selection: {} } as never)).toBeUndefined();
  });
});

describe("DiffView", () => {
  function harness() {
    const toolCalls = new ToolCalls();
    const questions = quietQuestions();
    const view = new DiffView(toolCalls, questions, async () => "old", () => root);
    toolCalls.merge({ toolCallId: "t", kind: "edit", rawInput: { path: "a.txt", content: "new" } });
    return { toolCalls, questions, view };
  }

  it("opens the change and takes the answer of its buttons", async () => {
    const { view, questions } = harness();
    const asked = questions.askPermission({ sessionId: "s", toolCall: { toolCallId: "t" }, options }, new AbortController().signal);
    expect(await view.open("t", true)).toBe(true);
    const [, left, right, title] = fake.executed.find(([name]) => name === "vscode.diff") as [string, never, never, string];
    expect([view.provideTextDocumentContent(left), view.provideTextDocumentContent(right), title]).toEqual(["old", "new", "a.txt (proposed by the agent)"]);
    expect(fake.executed.at(-1)).toEqual(["setContext", "gander.diffPending", true]);
    view.answer("allow");
    expect(await asked).toEqual({ outcome: { outcome: "selected", optionId: "once" } });
    await view.close("t");
    expect(fake.tabs).toEqual([]);
    view.updateContext();
    expect(fake.executed.at(-1)).toEqual(["setContext", "gander.diffPending", false]);
    view.answer("reject");
    view.dispose();
  });

  it("has nothing to open for a call without a change", async () => {
    const { view, toolCalls } = harness();
    toolCalls.merge({ toolCallId: "run", kind: "execute" });
    expect([await view.open("run", true), await view.open("unknown", true)]).toEqual([false, false]);
  });

  it("takes the mildest option", () => {
    expect(optionOf(options, "allow")?.optionId).toBe("once");
    expect(optionOf(options, "reject")?.optionId).toBe("never");
    expect(optionOf([], "allow")).toBeUndefined();
  });
});

describe("notifications", () => {
  const ask = (questions: Questions) => questions.askPermission({ sessionId: "s", toolCall: { toolCallId: "t", title: "Write a.txt" }, options }, new AbortController().signal);

  it("answer with the agent's own options", async () => {
    const questions = quietQuestions();
    const asked = ask(questions);
    fake.answers.push("Once");
    const [open] = questions.permissions;
    await notifyPermission(open as never, questions);
    expect(fake.shown[0]).toEqual(["The agent asks for permission: Write a.txt", "Once", "Show"]);
    expect(await asked).toMatchObject({ outcome: { optionId: "once" } });
    fake.answers.push("Once");
    await notifyPermission(open as never, questions);
    expect(fake.shown.at(-1)).toEqual(["This question was already answered."]);
  });

  it("show the chat, or leave the question open", async () => {
    const questions = quietQuestions();
    void ask(questions);
    const [open] = questions.permissions;
    fake.answers.push("Show", undefined);
    await notifyPermission(open as never, questions);
    await notifyPermission(open as never, questions);
    expect(questions.permissions).toHaveLength(1);
    expect(fake.executed).toEqual([["gander.focus"]]);
    fake.answers.push("Show");
    await notifyElicitation("Which?");
    expect(fake.executed).toHaveLength(2);
  });

  it("announce a question once, when the chat is hidden while it waits", () => {
    const questions = quietQuestions();
    let seen = true;
    const notifier = new QuestionNotifier(questions, () => seen);
    void ask(questions);
    notifier.announceUnseen();
    expect(fake.shown).toEqual([]);
    seen = false;
    notifier.announceUnseen();
    notifier.announceUnseen();
    expect(fake.shown).toEqual([["The agent asks for permission: Write a.txt", "Once", "Show"]]);
  });
});

describe("settings", () => {
  it("has defaults, and takes the path of goose's extension while its own is empty", () => {
    expect(readSettings()).toEqual({ binaryPath: "", agent: "auto", args: [], env: {}, serverUrl: "" });
    fake.settings = { "goose.binaryPath": "/goose", "gander.args": ["x"] };
    expect(readSettings()).toMatchObject({ binaryPath: "/goose", args: ["x"] });
    fake.settings = { "goose.binaryPath": "/goose", "gander.binaryPath": "/gander" };
    expect(readSettings().binaryPath).toBe("/gander");
  });

  it("keeps the token as a secret, and the address in the person's settings", async () => {
    const secrets = new Map<string, string>();
    const store = new TokenStore({ get: async (key: string) => secrets.get(key), store: async (key: string, value: string) => void secrets.set(key, value), delete: async (key: string) => void secrets.delete(key) } as never);
    fake.inputs.push("http://127.0.0.1:1", " token ");
    expect(await askForServer(store)).toBe("http://127.0.0.1:1");
    expect(await store.read()).toBe("token");
    expect(fake.updated).toEqual([["gander.serverUrl", "http://127.0.0.1:1", 1]]);
    fake.inputs.push(undefined);
    expect(await askForServer(store)).toBeUndefined();
    fake.inputs.push("http://x", undefined);
    expect(await askForServer(store)).toBeUndefined();
    fake.inputs.push("");
    expect(await askForServer(store)).toBe("");
    await store.write("");
    expect(await store.read()).toBeUndefined();
  });
});

describe("status bar and progress", () => {
  it.each([
    [{ status: "running", isRunning: false, waiting: 0 }, "$(hubot) Gander"],
    [{ status: "running", isRunning: true, waiting: 0 }, "$(loading~spin) Gander: working"],
    [{ status: "running", isRunning: true, waiting: 2 }, "$(question) Gander: 2 waiting for you"],
    [{ status: "starting", isRunning: false, waiting: 0 }, "$(loading~spin) Gander: starting"],
    [{ status: "stopped", isRunning: false, waiting: 0 }, "$(circle-slash) Gander: stopped"],
    [{ status: "error", isRunning: false, waiting: 0 }, "$(error) Gander: not running"],
  ] as const)("shows %j", (state, text) => {
    const bar = new StatusBar();
    bar.update({ ...state, detail: "why" });
    expect(fake.statusBarItems[0]).toMatchObject({ text, command: "gander.focus" });
    expect(String(fake.statusBarItems[0]?.["tooltip"])).toContain("why");
    bar.dispose();
  });

  it("shows one line of progress for all turns", async () => {
    const progress = new TurnProgress("gander.chat");
    progress.set(true);
    progress.set(true);
    expect(fake.progress).toBe(1);
    progress.set(false);
    await new Promise(setImmediate);
    expect(fake.progress).toBe(0);
    progress.dispose();
  });
});

describe("terminal screen", () => {
  it("writes what came before it was opened, and ends the command", () => {
    let killed = 0;
    const screen = openTerminalScreen(`echo ${"x".repeat(60)}`, () => (killed += 1));
    const [terminal] = fake.terminals;
    let shown = "";
    terminal?.pty.onDidWrite((text) => (shown += text));
    screen.write("early\n");
    expect(shown).toBe("");
    terminal?.pty.open();
    screen.write("late\nx");
    screen.exited({ exitCode: 3, signal: null });
    expect(shown).toContain("early\r\nlate\r\nx");
    expect(shown).toContain("ended: 3");
    expect(terminal?.name).toHaveLength(40);
    terminal?.pty.handleInput("a");
    terminal?.pty.handleInput("\x03");
    terminal?.pty.close();
    expect(killed).toBe(2);
    screen.show();
    expect(fake.shown).toHaveLength(1);
  });
});

describe("page", () => {
  it("lets nothing run but its own scripts", () => {
    const html = page({ asWebviewUri: (uri: unknown) => uri, cspSource: "vscode-resource:" } as never, Uri.file("/dist") as never, "NONCE", '1"<');
    expect(html).toContain("default-src 'none'");
    expect(html).toContain("script-src 'nonce-NONCE' vscode-resource:");
    expect(html).not.toMatch(/unsafe-(inline|eval)/);
    expect(html).toContain('data-version="1&quot;&lt;"');
    expect(html.match(/<script/g)).toHaveLength(1);
    expect(escapeHtml("<&>\"")).toBe("&lt;&amp;&gt;&quot;");
  });

  it("translates every word of the view", () => {
    expect(viewStrings((text) => text)).toEqual(ENGLISH);
    expect(new Set(Object.values(viewStrings(() => "x").chat))).toEqual(new Set(["x"]));
    expect(viewStrings(() => "x").status).toEqual({ error: "x", running: "x", starting: "x", stopped: "x" });
  });
});
