/** The commands of the palette, and the buttons of the chat that lead to them. */
import * as vscode from "vscode";
import type { Action } from "../shared/messages";
import type { ListedSession } from "../shared/types";
import type { Extension } from "./extension";
import { askForServer, readSettings } from "./settings";
import { VIEW_ID } from "./webviewProvider";

export function registerCommands(extension: Extension): vscode.Disposable[] {
  const commands: Record<string, (...args: never[]) => unknown> = {
    "gander.focus": () => vscode.commands.executeCommand(`${VIEW_ID}.focus`),
    "gander.newSession": async () => {
      await vscode.commands.executeCommand(`${VIEW_ID}.focus`);
      await extension.chat.handle({ type: "CREATE_SESSION", payload: {} });
    },
    "gander.selectSession": () => selectSession(extension),
    "gander.stop": () => extension.chat.stop(),
    "gander.restart": () => extension.connection.connect(),
    "gander.attach": async () => {
      // The change of the setting connects; a new token for the same address does not change it.
      const before = readSettings().serverUrl;
      const url = await askForServer(extension.tokens);
      if (url !== undefined && url === before) await extension.connection.connect();
    },
    "gander.showLog": () => extension.log.show(),
    "gander.addSelection": () => addSelection(extension),
    "gander.addFile": (uri: vscode.Uri | undefined, all: vscode.Uri[] | undefined) => addFiles(extension, all ?? (uri ? [uri] : [])),
    "gander.acceptDiff": () => extension.diffs.answer("allow"),
    "gander.rejectDiff": () => extension.diffs.answer("reject"),
  };
  return Object.entries(commands).map(([name, run]) => vscode.commands.registerCommand(name, run));
}

export async function runAction(extension: Extension, action: Action): Promise<void> {
  switch (action) {
    case "restart": return extension.connection.connect();
    case "install": return void (await vscode.commands.executeCommand("workbench.action.openWalkthrough", "gander.gander#gander.start", false));
    case "showLog": return extension.log.show();
    case "openSettings": return void (await vscode.commands.executeCommand("workbench.action.openSettings", "@ext:gander.gander"));
    case "attach": return void (await vscode.commands.executeCommand("gander.attach"));
  }
}

async function selectSession(extension: Extension): Promise<void> {
  const { t } = vscode.l10n;
  const sessions = await extension.chat.sessions();
  const items = sessions.map((session) => ({
    label: session.title, description: describe(session), detail: session.cwd, sessionId: session.sessionId,
    iconPath: new vscode.ThemeIcon(session.origin === "here" ? "comment-discussion" : "remote"),
  }));
  const chosen = await vscode.window.showQuickPick(items, { title: t("Sessions"), matchOnDetail: true, placeHolder: t("Sessions begun in other clients are listed too") });
  if (chosen === undefined) return;
  await vscode.commands.executeCommand(`${VIEW_ID}.focus`);
  await extension.chat.handle({ type: "SELECT_SESSION", payload: { sessionId: chosen.sessionId } });
}

function describe({ origin, updatedAt, createdAt }: ListedSession): string {
  const when = new Date(updatedAt ?? createdAt).toLocaleString(vscode.env.language);
  return origin === "here" ? when : `${when} · ${vscode.l10n.t("begun elsewhere")}`;
}

async function addSelection(extension: Extension): Promise<void> {
  const editor = vscode.window.activeTextEditor;
  const chip = editor && extension.files.chipOfEditor(editor);
  if (chip === undefined) {
    void vscode.window.showInformationMessage(vscode.l10n.t("Only a file on this machine can be added to the chat."));
    return;
  }
  await vscode.commands.executeCommand(`${VIEW_ID}.focus`);
  extension.chat.addChip(chip);
}

async function addFiles(extension: Extension, uris: readonly vscode.Uri[]): Promise<void> {
  const chosen = uris.length > 0 ? uris : [vscode.window.activeTextEditor?.document.uri].filter((uri) => uri !== undefined);
  await vscode.commands.executeCommand(`${VIEW_ID}.focus`);
  for (const uri of chosen) {
    const chip = await extension.files.chipOf(uri.toString());
    if (chip !== undefined) extension.chat.addChip(chip);
  }
}
