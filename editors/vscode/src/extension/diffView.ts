/** Changes of files in VS Code's diff editor, with accept and reject while the agent asks for one. */
import { basename } from "node:path";
import type { PermissionOption } from "@agentclientprotocol/sdk";
import * as vscode from "vscode";
import type { OpenPermission, Questions } from "./questions";
import { type FileChange, type ReadFile, type ToolCalls, fileChange } from "./toolCalls";

export const DIFF_SCHEME = "gander-diff";
/** When this context key is true, the diff editor shows its two buttons. */
const PENDING_KEY = "gander.diffPending";

export class DiffView implements vscode.TextDocumentContentProvider, vscode.Disposable {
  readonly #texts = new Map<string, string>();
  readonly #subscriptions: vscode.Disposable[];

  constructor(
    private readonly toolCalls: ToolCalls,
    private readonly questions: Questions,
    private readonly readFile: ReadFile,
    private readonly cwd: () => string,
  ) {
    this.#subscriptions = [
      vscode.workspace.registerTextDocumentContentProvider(DIFF_SCHEME, this),
      vscode.workspace.onDidCloseTextDocument(({ uri }) => {
        if (uri.scheme === DIFF_SCHEME) this.#texts.delete(uri.toString());
      }),
      vscode.window.tabGroups.onDidChangeTabs(() => this.updateContext()),
      vscode.window.tabGroups.onDidChangeTabGroups(() => this.updateContext()),
    ];
  }

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.#texts.get(uri.toString()) ?? "";
  }

  /** Opens the change of a tool call. False when the call has none that is known. */
  async open(toolCallId: string, preserveFocus: boolean): Promise<boolean> {
    const call = this.toolCalls.find(toolCallId);
    const change = call && (await fileChange(call, this.cwd(), this.readFile));
    if (change === undefined) return false;
    const left = this.#document("before", toolCallId, change, change.oldText);
    const right = this.#document("after", toolCallId, change, change.newText);
    const title = vscode.l10n.t("{0} (proposed by the agent)", basename(change.path));
    await vscode.commands.executeCommand("vscode.diff", left, right, title, { preserveFocus, preview: true });
    this.updateContext();
    return true;
  }

  /** Answers the question that the diff in front is about. */
  answer(kind: "allow" | "reject"): void {
    const open = this.#pending();
    const option = open && optionOf(open.request.options, kind);
    if (open !== undefined && option !== undefined) this.questions.answerPermission(open.requestId, option.optionId);
  }

  /** Closes the diff of a question that is settled. */
  async close(toolCallId: string): Promise<void> {
    this.updateContext();
    const tabs = vscode.window.tabGroups.all.flatMap((group) => group.tabs).filter((tab) => toolCallOf(tab) === toolCallId);
    await vscode.window.tabGroups.close(tabs, true);
  }

  updateContext(): void {
    void vscode.commands.executeCommand("setContext", PENDING_KEY, this.#pending() !== undefined);
  }

  dispose(): void {
    this.#subscriptions.forEach((each) => each.dispose());
  }

  #pending(): OpenPermission | undefined {
    const toolCallId = toolCallOf(vscode.window.tabGroups.activeTabGroup.activeTab);
    if (toolCallId === undefined) return undefined;
    return this.questions.permissions.find(({ request }) => request.toolCall.toolCallId === toolCallId);
  }

  #document(side: string, toolCallId: string, { path }: FileChange, text: string): vscode.Uri {
    const uri = vscode.Uri.from({ scheme: DIFF_SCHEME, authority: side, path, query: toolCallId });
    this.#texts.set(uri.toString(), text);
    return uri;
  }
}

function toolCallOf(tab: vscode.Tab | undefined): string | undefined {
  if (!(tab?.input instanceof vscode.TabInputTextDiff) || tab.input.modified.scheme !== DIFF_SCHEME) return undefined;
  return tab.input.modified.query;
}

/** The mildest option of a kind: once before always. */
export function optionOf(options: readonly PermissionOption[], kind: "allow" | "reject"): PermissionOption | undefined {
  return options.find((option) => option.kind === `${kind}_once`) ?? options.find((option) => option.kind === `${kind}_always`);
}
