/** The status bar: how the agent is, and whether it works or waits for somebody. */
import * as vscode from "vscode";
import type { ProcessStatus } from "../shared/types";

export interface AgentState {
  readonly status: ProcessStatus;
  readonly isRunning: boolean;
  readonly waiting: number;
  readonly detail: string;
}

export class StatusBar implements vscode.Disposable {
  readonly #item: vscode.StatusBarItem;

  constructor() {
    this.#item = vscode.window.createStatusBarItem("gander.status", vscode.StatusBarAlignment.Right, 100);
    this.#item.name = "Gander";
    this.#item.command = "gander.focus";
    this.#item.show();
  }

  update(state: AgentState): void {
    const { icon, text } = look(state);
    this.#item.text = `$(${icon}) ${text}`;
    this.#item.tooltip = state.detail === "" ? text : `${text}: ${state.detail}`;
    this.#item.accessibilityInformation = { label: this.#item.tooltip, role: "button" };
    const colour = state.status === "error" ? "statusBarItem.errorBackground" : state.waiting > 0 ? "statusBarItem.warningBackground" : undefined;
    this.#item.backgroundColor = colour === undefined ? undefined : new vscode.ThemeColor(colour);
  }

  dispose(): void {
    this.#item.dispose();
  }
}

function look({ status, isRunning, waiting }: AgentState): { icon: string; text: string } {
  const { t } = vscode.l10n;
  if (status === "error") return { icon: "error", text: t("Gander: not running") };
  if (status === "stopped") return { icon: "circle-slash", text: t("Gander: stopped") };
  if (status === "starting") return { icon: "loading~spin", text: t("Gander: starting") };
  if (waiting > 0) return { icon: "question", text: t("Gander: {0} waiting for you", waiting) };
  return isRunning ? { icon: "loading~spin", text: t("Gander: working") } : { icon: "hubot", text: t("Gander") };
}
