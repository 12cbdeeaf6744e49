/** A terminal of the agent in VS Code's terminal panel. */
import * as vscode from "vscode";
import type { OpenScreen } from "./terminals";

/** What was written before somebody opened the panel; the rest of a long output is with the agent. */
const MAX_BACKLOG = 256 * 1024;

export const openTerminalScreen: OpenScreen = (title, kill) => {
  const written = new vscode.EventEmitter<string>();
  const closed = new vscode.EventEmitter<number | void>();
  let backlog = "";
  let isOpen = false;
  const write = (text: string) => {
    // A pseudoterminal has no driver that would turn a line feed into a new line.
    const shown = text.replace(/\r?\n/g, "\r\n");
    if (isOpen) written.fire(shown);
    else backlog = (backlog + shown).slice(-MAX_BACKLOG);
  };
  const terminal = vscode.window.createTerminal({
    name: title.length > 40 ? `${title.slice(0, 39)}…` : title,
    iconPath: new vscode.ThemeIcon("hubot"),
    isTransient: true,
    pty: {
      onDidWrite: written.event,
      onDidClose: closed.event,
      open: () => {
        isOpen = true;
        written.fire(`\x1b[2m$ ${title.replace(/\r?\n/g, "\r\n")}\x1b[0m\r\n${backlog}`);
        backlog = "";
      },
      close: kill,
      // Ctrl+C ends the command, as in any terminal; nothing else is taken: the agent gave it no input.
      handleInput: (data: string) => {
        if (data === "\x03") kill();
      },
    },
  });
  return {
    write,
    exited: ({ exitCode, signal }) => write(`\r\n\x1b[2m${vscode.l10n.t("ended: {0}", signal ?? exitCode ?? "")}\x1b[0m\r\n`),
    show: () => terminal.show(true),
  };
};
