/** The settings, and the token that is kept as a secret. */
import * as vscode from "vscode";
import type { AgentSettings } from "./agentConnection";

const TOKEN_KEY = "gander.serverToken";

/** `goose.binaryPath` is what users of the extension for goose have set; it counts while `gander.binaryPath` is empty. */
export function readSettings(): AgentSettings {
  const settings = vscode.workspace.getConfiguration("gander");
  return {
    binaryPath: settings.get<string>("binaryPath", "") || vscode.workspace.getConfiguration("goose").get<string>("binaryPath", ""),
    agent: settings.get<AgentSettings["agent"]>("agent", "auto"),
    args: settings.get<string[]>("args", []),
    env: settings.get<Record<string, string>>("env", {}),
    serverUrl: settings.get<string>("serverUrl", ""),
  };
}

export class TokenStore {
  constructor(private readonly secrets: vscode.SecretStorage) {}

  read(): Promise<string | undefined> {
    return Promise.resolve(this.secrets.get(TOKEN_KEY));
  }

  async write(token: string): Promise<void> {
    if (token === "") await this.secrets.delete(TOKEN_KEY);
    else await this.secrets.store(TOKEN_KEY, token);
  }
}

/** Asks for address and token; an empty address goes back to starting a process. Undefined: nothing was changed. */
export async function askForServer(tokens: TokenStore): Promise<string | undefined> {
  const { t } = vscode.l10n;
  const url = await vscode.window.showInputBox({
    title: t("Attach to a running server"),
    prompt: t("Address of the server. Empty: start the agent as a process again."),
    value: readSettings().serverUrl || "http://127.0.0.1:4747",
    validateInput: (value) => (value === "" || /^(https?|wss?):\/\/\S+$/.test(value) ? undefined : t("An address begins with http:// or https://.")),
  });
  if (url === undefined) return undefined;
  if (url !== "") {
    const token = await vscode.window.showInputBox({
      title: t("Token of the server"), prompt: t("What `gander token` prints. It is kept in VS Code's secret storage."), password: true,
    });
    if (token === undefined) return undefined;
    await tokens.write(token.trim());
  }
  // Not in the workspace's file: a folder must not decide whom the editor talks to.
  await vscode.workspace.getConfiguration("gander").update("serverUrl", url, vscode.ConfigurationTarget.Global);
  return url;
}
