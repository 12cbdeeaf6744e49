/** The progress line above the chat view, as long as a turn is under way. */
import * as vscode from "vscode";

export class TurnProgress implements vscode.Disposable {
  #end: (() => void) | undefined;

  constructor(private readonly viewId: string) {}

  set(isRunning: boolean): void {
    if (!isRunning) {
      this.#end?.();
      this.#end = undefined;
    } else if (this.#end === undefined) {
      void vscode.window.withProgress({ location: { viewId: this.viewId } }, () => new Promise<void>((resolve) => (this.#end = resolve)));
    }
  }

  dispose(): void {
    this.set(false);
  }
}
