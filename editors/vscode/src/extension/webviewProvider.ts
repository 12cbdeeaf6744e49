/** The chat view: its page, its content security policy, and its place in the bridge. */
import { randomBytes } from "node:crypto";
import * as vscode from "vscode";
import { viewStrings } from "./viewStrings";
import type { WebviewLink } from "./webviewLink";

export const VIEW_ID = "gander.chat";

export class ChatViewProvider implements vscode.WebviewViewProvider {
  #view: vscode.WebviewView | undefined;

  constructor(
    private readonly extensionUri: vscode.Uri,
    private readonly link: WebviewLink,
    private readonly version: string,
    private readonly visibilityChanged: () => void,
  ) {}

  get isVisible(): boolean {
    return this.#view?.visible === true;
  }

  resolveWebviewView(view: vscode.WebviewView): void {
    this.#view = view;
    const { webview } = view;
    const dist = vscode.Uri.joinPath(this.extensionUri, "dist");
    webview.options = { enableScripts: true, localResourceRoots: [dist] };
    this.link.attach(webview);
    webview.onDidReceiveMessage((value: unknown) => this.link.receive(webview, value));
    view.onDidChangeVisibility(() => this.visibilityChanged());
    view.onDidDispose(() => {
      if (this.#view === view) this.#view = undefined;
      this.link.detach(webview);
      this.visibilityChanged();
    });
    webview.html = page(webview, dist, randomBytes(16).toString("base64"), this.version);
    this.visibilityChanged();
  }

  setBadge(waiting: number): void {
    if (this.#view === undefined) return;
    this.#view.badge = waiting === 0 ? undefined : { value: waiting, tooltip: vscode.l10n.t("{0} waiting for you", waiting) };
  }
}

/** Scripts run by nonce alone, nothing is fetched from elsewhere, pictures come as data. */
export function page(webview: Pick<vscode.Webview, "asWebviewUri" | "cspSource">, dist: vscode.Uri, nonce: string, version: string): string {
  const script = webview.asWebviewUri(vscode.Uri.joinPath(dist, "webview.js"));
  const style = webview.asWebviewUri(vscode.Uri.joinPath(dist, "webview.css"));
  const policy = [
    "default-src 'none'",
    `script-src 'nonce-${nonce}' ${webview.cspSource}`,
    `style-src ${webview.cspSource}`,
    `font-src ${webview.cspSource}`,
    `img-src ${webview.cspSource} data:`,
    "media-src data:",
    "base-uri 'none'",
    "form-action 'none'",
  ].join("; ");
  return `<!DOCTYPE html>
<html lang="${vscode.env.language}" data-version="${escapeHtml(version)}" data-strings="${escapeHtml(JSON.stringify(viewStrings(vscode.l10n.t)))}">
<head>
  <meta charset="utf-8">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <meta http-equiv="Content-Security-Policy" content="${policy}">
  <link rel="stylesheet" href="${style}">
  <title>Gander</title>
</head>
<body>
  <main id="app"></main>
  <script type="module" nonce="${nonce}" src="${script}"></script>
</body>
</html>`;
}

export function escapeHtml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll('"', "&quot;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
