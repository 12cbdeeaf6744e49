/** Questions of the agent as notifications, while the chat cannot be seen. */
import * as vscode from "vscode";
import type { OpenPermission, Questions } from "./questions";

/**
 * Announces each question once: when it is asked while the chat is hidden, or when the chat is hidden while it waits. Without the
 * second, a person who looks at something else a moment too early would never hear of it.
 */
export class QuestionNotifier {
  readonly #announced = new Set<string>();

  constructor(
    private readonly questions: Questions,
    /** Whether a person sees this session's questions in the chat right now. */
    private readonly isSeen: (sessionId: string | undefined) => boolean,
  ) {}

  /** To be called when a question is asked, the chat is shown or hidden, or shows another session. */
  announceUnseen(): void {
    for (const open of this.questions.permissions) {
      if (this.#isNew(open.requestId, open.request.sessionId)) void notifyPermission(open, this.questions);
    }
    for (const { requestId, request } of this.questions.elicitations) {
      if (this.#isNew(requestId, undefined)) void notifyElicitation(request.message);
    }
  }

  forget(requestId: string): void {
    this.#announced.delete(requestId);
  }

  #isNew(requestId: string, sessionId: string | undefined): boolean {
    if (this.isSeen(sessionId) || this.#announced.has(requestId)) return false;
    this.#announced.add(requestId);
    return true;
  }
}

/** Shows what is asked with the agent's own options. An answer that comes too late says so. */
export async function notifyPermission(open: OpenPermission, questions: Questions): Promise<void> {
  const { toolCall, options } = open.request;
  const show = vscode.l10n.t("Show");
  const title = toolCall.title ?? toolCall.name ?? toolCall.toolCallId;
  const once = options.filter((option) => option.kind.endsWith("_once"));
  const offered = once.length > 0 ? once : options.slice(0, 2);
  const chosen = await vscode.window.showInformationMessage(
    vscode.l10n.t("The agent asks for permission: {0}", title), ...offered.map((option) => option.name), show,
  );
  if (chosen === undefined) return;
  if (chosen === show) {
    await vscode.commands.executeCommand("gander.focus");
    return;
  }
  const option = offered.find((each) => each.name === chosen);
  if (option !== undefined && !questions.answerPermission(open.requestId, option.optionId)) {
    void vscode.window.showInformationMessage(vscode.l10n.t("This question was already answered."));
  }
}

export async function notifyElicitation(text: string): Promise<void> {
  const show = vscode.l10n.t("Show");
  const chosen = await vscode.window.showInformationMessage(vscode.l10n.t("The agent has a question: {0}", text), show);
  if (chosen === show) await vscode.commands.executeCommand("gander.focus");
}
