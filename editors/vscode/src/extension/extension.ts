/** Activation: makes the parts and wires them together. */
import { randomUUID } from "node:crypto";
import { homedir } from "node:os";
import * as vscode from "vscode";
import { describeError } from "../shared/errors";
import type { ProcessStatus } from "../shared/types";
import { AgentConnection } from "./agentConnection";
import { realEnvironment } from "./binaryDiscovery";
import { Chat } from "./chat";
import { clientHandlers } from "./clientHandlers";
import { registerCommands, runAction } from "./commands";
import { DIFF_SCHEME, DiffView } from "./diffView";
import { EditorFiles } from "./editorFiles";
import { QuestionNotifier } from "./notifications";
import { Questions } from "./questions";
import { SessionStore } from "./sessionStore";
import { TokenStore, readSettings } from "./settings";
import { StatusBar } from "./statusBar";
import { openTerminalScreen } from "./terminalScreen";
import { Terminals } from "./terminals";
import { ToolCalls } from "./toolCalls";
import { TurnProgress } from "./turnProgress";
import { WebviewLink } from "./webviewLink";
import { ChatViewProvider, VIEW_ID } from "./webviewProvider";

let running: Extension | undefined;

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  running = new Extension(context);
  await running.start();
}

/** VS Code waits for this: the process gets its time to end. */
export async function deactivate(): Promise<void> {
  await running?.stop();
  running = undefined;
}

export class Extension {
  readonly log = vscode.window.createOutputChannel("Gander");
  readonly connection: AgentConnection;
  readonly chat: Chat;
  readonly tokens: TokenStore;
  readonly files: EditorFiles;
  readonly diffs: DiffView;
  readonly questions: Questions;
  readonly #notifier: QuestionNotifier;
  readonly view: ChatViewProvider;
  readonly #terminals: Terminals;
  readonly #statusBar = new StatusBar();
  readonly #progress = new TurnProgress(VIEW_ID);
  #state: { status: ProcessStatus; detail: string } = { status: "stopped", detail: "" };

  constructor(private readonly context: vscode.ExtensionContext) {
    const toolCalls = new ToolCalls();
    const link = this.#makeLink();
    this.view = new ChatViewProvider(context.extensionUri, link, this.#version(), () => this.#showState());
    this.questions = this.#makeQuestions(link, toolCalls);
    this.#notifier = new QuestionNotifier(
      this.questions, (sessionId) => this.view.isVisible && (sessionId === undefined || sessionId === this.chat.sessionId),
    );
    this.files = new EditorFiles(() => this.#roots(), randomUUID);
    this.#terminals = new Terminals(openTerminalScreen);
    this.tokens = new TokenStore(context.secrets);
    this.chat = this.#makeChat(link, toolCalls);
    this.diffs = new DiffView(toolCalls, this.questions, (path) => this.files.read(path), workingDirectory);
    this.connection = this.#makeConnection();
    context.subscriptions.push(
      this.log, this.#statusBar, this.diffs, this.#progress, { dispose: () => this.#terminals.dispose() },
      vscode.window.registerWebviewViewProvider(VIEW_ID, this.view, { webviewOptions: { retainContextWhenHidden: true } }),
      vscode.workspace.onDidChangeConfiguration((event) => {
        if (event.affectsConfiguration("gander") || event.affectsConfiguration("goose.binaryPath")) void this.connection.connect();
      }),
      ...registerCommands(this),
    );
  }

  async start(): Promise<void> {
    this.#showState();
    await this.connection.connect();
  }

  async stop(): Promise<void> {
    this.#terminals.dispose();
    await this.connection.stop();
  }

  #makeLink(): WebviewLink {
    const link: WebviewLink = new WebviewLink({
      message: (received) => void this.chat.handle(received),
      ready: (recreated) => void this.chat.handleWebviewReady(recreated || link.takeOverflow()),
      log: (text) => this.#write(text),
    });
    return link;
  }

  #makeQuestions(link: WebviewLink, toolCalls: ToolCalls): Questions {
    const questions: Questions = new Questions({
      permissionAsked: (open) => {
        toolCalls.merge(open.request.toolCall);
        const shown = open.request.sessionId === this.chat.sessionId;
        if (shown) link.post({ type: "PERMISSION_REQUEST", payload: { requestId: open.requestId, ...open.request } });
        if (open.request.toolCall.kind === "edit") void this.diffs.open(open.request.toolCall.toolCallId, true);
        this.#showState();
      },
      permissionSettled: ({ requestId, request }, optionId) => {
        link.post({ type: "PERMISSION_RESOLVED", payload: { requestId, optionId } });
        this.#notifier.forget(requestId);
        void this.diffs.close(request.toolCall.toolCallId);
        this.#showState();
      },
      elicitationAsked: ({ requestId, request }) => {
        link.post({ type: "ELICITATION_REQUEST", payload: { requestId, request } });
        this.#showState();
      },
      elicitationSettled: ({ requestId }) => {
        link.post({ type: "ELICITATION_RESOLVED", payload: { requestId } });
        this.#notifier.forget(requestId);
        this.#showState();
      },
    });
    return questions;
  }

  #makeChat(link: WebviewLink, toolCalls: ToolCalls): Chat {
    return new Chat({
      post: (sent) => link.post(sent),
      t: (text, ...values) => vscode.l10n.t(text, ...values),
      workingDirectory,
      readLines: (path, range) => this.files.readLines(path, range),
      searchFiles: (query, cwd) => this.files.search(query, cwd),
      openExternal: (url) => void vscode.env.openExternal(vscode.Uri.parse(url, true)),
      openFile: (path, line) => void openFile(path, line),
      openDiff: (toolCallId) => void this.diffs.open(toolCallId, false),
      openTerminal: (terminalId) => this.#terminals.show(terminalId),
      chipOf: (uri) => this.files.chipOf(uri),
      runAction: (action) => void runAction(this, action),
      log: (text) => this.#write(text),
      turnsChanged: (isRunning) => {
        this.#progress.set(isRunning);
        this.#showState();
      },
      sessionUpdated: ({ update }) => toolCalls.handleUpdate(update),
    }, new SessionStore(this.context.globalState), this.questions);
  }

  #makeConnection(): AgentConnection {
    return new AgentConnection({
      settings: readSettings,
      token: () => this.tokens.read(),
      cwd: workingDirectory,
      environment: realEnvironment(),
      clientInfo: { name: "vscode-gander", title: `Gander for ${vscode.env.appName}`, version: this.#version() },
      handlers: clientHandlers(this.questions, this.files, this.#terminals, () => this.#roots()),
      events: {
        status: (status, error) => {
          this.#state = { status, detail: error === undefined ? "" : describeError(error) };
          if (error !== undefined) this.#write(describeError(error));
          this.chat.handleStatus(status, error);
          this.#showState();
        },
        version: (status) => this.chat.handleVersion(status),
        ready: (agent) => void this.chat.handleReady(agent),
        lost: (error) => {
          this.chat.handleLost(error);
          void this.#offerRestart(describeError(error));
        },
        sessionUpdate: (notification) => this.chat.handleUpdate(notification),
        log: (text) => this.#write(text),
      },
    });
  }

  async #offerRestart(reason: string): Promise<void> {
    const restart = vscode.l10n.t("Restart");
    const chosen = await vscode.window.showWarningMessage(vscode.l10n.t("The agent is gone ({0}). Use \"Gander: Restart\".", reason), restart);
    if (chosen === restart) await this.connection.connect();
  }

  #showState(): void {
    const waiting = this.questions.permissions.length + this.questions.elicitations.length;
    this.#statusBar.update({ ...this.#state, isRunning: this.chat.isRunning, waiting });
    this.view.setBadge(waiting);
    this.#notifier.announceUnseen();
    void vscode.commands.executeCommand("setContext", "gander.isRunning", this.chat.isRunning);
  }

  #version(): string {
    return String((this.context.extension.packageJSON as { version?: unknown }).version ?? "0");
  }

  #roots(): string[] {
    return (vscode.workspace.workspaceFolders ?? []).map(({ uri }) => uri.fsPath);
  }

  #write(text: string): void {
    this.log.append(text.endsWith("\n") ? text : `${text}\n`);
  }
}

/** The first open folder; an editor without one works in the home directory, where every change is asked for. */
function workingDirectory(): string {
  return vscode.workspace.workspaceFolders?.[0]?.uri.fsPath ?? homedir();
}

async function openFile(path: string, line: number | undefined): Promise<void> {
  if (path.startsWith(`${DIFF_SCHEME}:`)) return;
  const position = line === undefined ? undefined : new vscode.Position(line - 1, 0);
  const options = position === undefined ? {} : { selection: new vscode.Range(position, position) };
  await vscode.window.showTextDocument(vscode.Uri.file(path), options);
}
