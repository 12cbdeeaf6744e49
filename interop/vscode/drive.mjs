// Drives the extension in code-server as a person would: chat, tools, permissions, diffs, restarts, sessions from elsewhere.
import { execFileSync, spawn } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, readlinkSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { Editor, poll } from "./editor.mjs";

const [binary, codeServer, vsix, pictures] = process.argv.slice(2);
const root = mkdtempSync(join(tmpdir(), "gander-vscode-"));
const [bin, work] = ["bin", "work"].map((name) => join(root, name));
[bin, work].forEach((path) => mkdirSync(path));
if (pictures) mkdirSync(pictures, { recursive: true });
// A copy of its own: what this run started can be told from everything else on the machine by its path.
const gander = join(bin, "gander");
copyFileSync(binary, gander);
const home = join(root, "home");
const env = { PATH: process.env.PATH, HOME: home, GANDER_MODEL: "demo/demo", GANDER_DAEMON_IDLE: "20s" };
writeFileSync(join(work, "greeting.ts"), Array.from({ length: 40 }, (_, line) => `export const line${line + 1} = ${line + 1};`).join("\n"));
const children = [];

function demand(condition, why) {
  if (!condition) throw new Error(why);
}

/** Processes that were started from our copy of the binary. */
function processes(argument) {
  return readdirSync("/proc").filter((name) => /^\d+$/.test(name)).filter((pid) => {
    try {
      const words = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
      return readlinkSync(`/proc/${pid}/exe`).startsWith(gander) && (argument === undefined || words.includes(argument));
    } catch {
      return false;
    }
  }).map(Number);
}

function terminal(...args) {
  return execFileSync(gander, args, { env, cwd: work, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
}

const picture = (name) => (pictures ? editor.screenshot(join(pictures, `${name}.png`)) : undefined);
const option = (chat, name) => chat.locator(".ask button").filter({ hasText: name }).first();
const action = (name) => editor.page.locator(".editor-actions a.action-label").and(editor.page.getByRole("button", { name })).first();
const conversation = async () => (await (await editor.chat()).locator("[role=log]").innerText());

async function ask(word, choice) {
  const chat = await editor.send(word);
  await chat.locator(".ask").waitFor({ timeout: 30_000 });
  await option(chat, choice).click();
  await editor.answered();
}

let editor;
const cases = {
  async opens_and_answers() {
    await editor.command("Gander: Open Chat");
    await editor.send("text");
    await editor.sees("This is a scripted answer");
    await editor.answered();
    await picture("chat");
  },
  async shows_tool_calls() {
    await editor.send("tools");
    const chat = await editor.sees("The tools are done");
    demand((await chat.locator("[data-type=tool]").count()) >= 2, "no two tool cards");
  },
  async approves() {
    const chat = await editor.send("ask");
    await chat.locator(".ask").waitFor({ timeout: 30_000 });
    await picture("permission");
    demand(!existsSync(join(work, "gander-hello.txt")), "the command ran before anybody allowed it");
    await option(chat, "Allow").click();
    await editor.answered();
    demand(existsSync(join(work, "gander-hello.txt")), "the command did not run although it was allowed");
  },
  async rejects() {
    rmSync(join(work, "gander-hello.txt"), { force: true });
    await ask("ask", /^Reject/);
    demand(!existsSync(join(work, "gander-hello.txt")), "the command ran although it was rejected");
  },
  /** The change is shown in the editor's own diff, and accepted there. */
  async accepts_a_diff_in_the_editor() {
    const chat = await editor.send("edit");
    const diff = editor.page.locator(".tab").filter({ hasText: "gander-demo.txt (proposed" });
    await diff.waitFor({ timeout: 30_000 });
    await picture("diff");
    await action("Accept Change").click();
    await poll(() => existsSync(join(work, "gander-demo.txt")), () => "the file was not written");
    await chat.locator(".ask").waitFor({ timeout: 30_000 });
    await editor.page.locator(".tab").filter({ hasText: "gander-demo.txt (proposed" }).waitFor({ timeout: 30_000 });
    await action("Reject Change").click();
    await editor.answered();
    demand(readFileSync(join(work, "gander-demo.txt"), "utf8") === "hello\n", "the rejected change was made");
    await poll(async () => (await diff.count()) === 0, () => "the diff of a settled question stays open");
  },
  async sends_a_selection() {
    await editor.page.keyboard.press("Control+P");
    const input = editor.page.locator(".quick-input-widget input.input").first();
    await input.fill("greeting.ts");
    await editor.page.locator(".quick-input-list .monaco-list-row").filter({ hasText: "greeting.ts" }).first().click();
    await editor.page.locator(".tab.active").filter({ hasText: "greeting.ts" }).waitFor();
    await editor.page.locator(".view-line").first().click();
    await editor.page.keyboard.press("Control+Home");
    for (let line = 0; line < 4; line += 1) await editor.page.keyboard.press("Shift+ArrowDown");
    await editor.command("Gander: Add Selection to Chat");
    const chat = await editor.chat();
    await chat.locator(".chips li").filter({ hasText: "greeting.ts:1-4" }).waitFor({ timeout: 30_000 });
    await picture("context");
    await editor.send("help");
    await editor.answered();
    // What the agent was given, read at another door.
    const told = terminal("sessions", "show", await sessionId());
    demand(told.includes("greeting.ts:1-4") && told.includes("line4 = 4"), `the agent was not given the selection: ${told.slice(-600)}`);
    demand((await chat.locator(".chips li").count()) === 0, "the chip stays after it was sent");
  },
  async completes_mentions() {
    const chat = await editor.chat();
    const area = chat.locator("textarea[aria-label=Message]");
    await area.click();
    await area.pressSequentially("help @greet", { delay: 20 });
    await chat.locator("[role=option]").filter({ hasText: "greeting.ts" }).first().click();
    await area.press("Enter");
    await editor.answered();
    await poll(async () => (await conversation()).includes("@greeting.ts"), () => "the mention is not in the conversation");
  },
  async cancels() {
    const chat = await editor.send("long");
    await chat.locator("button[aria-label=Stop]").waitFor({ timeout: 30_000 });
    await poll(async () => (await chat.locator("[data-type=message]").last().innerText()).length > 40, () => "no stream to cancel");
    await chat.locator("button[aria-label=Stop]").click();
    await editor.answered();
  },
  /** A question while the chat cannot be seen is a notification, and its button answers. */
  async asks_by_notification() {
    rmSync(join(work, "gander-hello.txt"), { force: true });
    await editor.send("ask");
    await editor.command("View: Show Explorer");
    const toast = editor.page.locator(".notification-toast").filter({ hasText: "asks for permission" });
    await toast.first().waitFor({ timeout: 20_000 });
    await picture("notification");
    await toast.first().locator("a.monaco-button, .monaco-button").filter({ hasText: /^Allow$/ }).click();
    await poll(() => existsSync(join(work, "gander-hello.txt")), () => "the answer of the notification did not count");
    await editor.command("Gander: Open Chat");
    await editor.answered();
  },
  async restarts_after_a_crash() {
    await editor.command("Gander: Open Chat");
    const before = processes("acp");
    demand(before.length === 1, `one process expected: ${before}`);
    process.kill(before[0], "SIGKILL");
    const chat = await editor.sees("The agent does not run");
    await picture("crashed");
    await chat.locator(".state button").filter({ hasText: "Restart" }).click();
    await editor.seesAtTop("This is a scripted answer");
    await editor.send("thought");
    await editor.answered();
    const after = processes("acp");
    demand(after.length === 1 && after[0] !== before[0], `another process expected: ${after}`);
  },
  async finds_the_session_after_a_reload() {
    const before = await sessionId();
    await editor.open();
    await editor.command("Gander: Open Chat");
    await editor.seesAtTop("This is a scripted answer");
    demand((await sessionId()) === before, "another session is open after the reload");
    demand((await (await editor.chat()).locator("[data-type=tool]").count()) > 0, "the tool calls of the history are missing");
    await editor.send("help");
    await editor.answered();
    await picture("reloaded");
  },
  /** Begun in a terminal, listed and joined here, and live in both. */
  async joins_a_session_of_a_terminal() {
    terminal("run", "hello from a terminal");
    const listed = terminal("sessions", "list", "--json").trim().split("\n").map((line) => JSON.parse(line));
    const { sessionId: id } = listed.find(({ title }) => title.startsWith("hello from a terminal"));
    const chat = await editor.chat();
    await chat.locator("#session").focus();
    await poll(async () => (await chat.locator(`#session option[value="${id}"]`).count()) === 1, () => "the terminal's session is not listed");
    await chat.locator("#session").selectOption(id);
    await editor.sees("hello from a terminal");
    // A turn that the terminal begins is shown as running, and can be stopped here; its end is shown, too.
    const running = spawn(gander, ["run", "--session", id, "long"], { env, cwd: work, stdio: "ignore" });
    children.push(running);
    await chat.locator("button[aria-label=Stop]").click({ timeout: 30_000 });
    await editor.answered();
    children.push(spawn(gander, ["run", "--session", id, "text"], { env, cwd: work, stdio: "ignore" }));
    await editor.sees("This is a scripted answer");
    await editor.answered();
    await editor.send("thought");
    await editor.answered();
    const told = terminal("sessions", "show", id);
    demand(told.includes("thought"), "what was said in the editor is not in the terminal's session");
    await picture("joined");
  },
  async attaches_by_address_and_token() {
    const data = join(root, "served");
    const server = spawn(gander, ["serve", "--listen", "127.0.0.1:0", "--data", data], { env, cwd: work });
    children.push(server);
    const url = await new Promise((resolve, reject) => {
      let output = "";
      server.stdout.on("data", (chunk) => {
        output += chunk;
        const found = output.match(/http:\/\/127\.0\.0\.1:\d+/);
        if (found) resolve(found[0]);
      });
      server.on("exit", (code) => reject(new Error(`the server ended with ${code}`)));
    });
    const token = execFileSync(gander, ["token", "--data", data], { env, encoding: "utf8" }).trim();
    await editor.command("Gander: Attach to a Running Server");
    for (const value of [url, token]) {
      const input = editor.page.locator(".quick-input-widget input.input").first();
      await poll(async () => (await input.isVisible()) && (await input.inputValue()) !== value, () => "no input box");
      await input.fill(value);
      await editor.page.keyboard.press("Enter");
      await new Promise((resolve) => setTimeout(resolve, 400));
    }
    await poll(() => processes("acp").length === 0, () => "the process still runs");
    await poll(async () => (await (await editor.chat()).locator(".state").count()) === 0, () => "not attached");
    await editor.send("text");
    await editor.sees("This is a scripted answer");
    const there = execFileSync(gander, ["sessions", "list", "--data", data], { env, encoding: "utf8" });
    demand(there.includes("text"), `the server has no such session: ${there}`);
    const saved = readFileSync(join(editor.data, "User", "settings.json"), "utf8") + readFileSync(join(editor.data, "Machine", "settings.json"), "utf8");
    demand(!saved.includes(token), "the token is in the settings");
  },
  async is_accessible() {
    const chat = await editor.chat();
    await chat.evaluate(readFileSync(join(dirname(createRequire(import.meta.url).resolve("axe-core")), "axe.min.js"), "utf8"));
    const { violations } = await chat.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
    const serious = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
    demand(serious.length === 0, serious.map(({ id, nodes }) => `${id}: ${nodes.map(({ target }) => target).join(", ")}`).join("; "));
  },
  async says_when_no_binary_is_there() {
    setting("gander.serverUrl", "");
    setting("gander.binaryPath", join(root, "nowhere"));
    await editor.sees("No agent was found");
    await picture("blocked");
    demand(processes("acp").length === 0, "a process was started although none may be");
    setting("gander.binaryPath", gander);
    await poll(() => processes("acp").length === 1, () => "it was not started again");
  },
  async has_no_errors_in_the_console() {
    demand(editor.problems.length === 0, editor.problems.join(" | ").slice(0, 500));
  },
};

/** The session that is open, as the store of the editor has it. */
async function sessionId() {
  return (await editor.chat()).locator("#session").inputValue();
}

function setting(name, value) {
  for (const place of ["User", "Machine"]) {
    const path = join(editor.data, place, "settings.json");
    writeFileSync(path, JSON.stringify({ ...JSON.parse(readFileSync(path, "utf8")), [name]: value }));
  }
}

const settings = { "gander.binaryPath": gander, "gander.env": { GANDER_MODEL: "demo/demo", GANDER_DAEMON_IDLE: "20s" } };
try {
  editor = await Editor.start({ codeServer, vsix, root, folder: work, settings });
  const wanted = process.env.ONLY?.split(",");
  for (const [name, run] of Object.entries(cases)) {
    if (wanted && !wanted.includes(name)) continue;
    const started = Date.now();
    try {
      await run();
      console.log(`pass ${name}`);
    } catch (error) {
      console.log(`fail ${name} ${String(error).replaceAll("\n", " ").slice(0, 900)}`);
      if (pictures) await editor.screenshot(join(pictures, `failed-${name}.png`)).catch(() => {});
    }
    console.error(`${name}: ${((Date.now() - started) / 1000).toFixed(1)} s`);
  }
} finally {
  await editor?.stop();
  children.forEach((child) => child.kill());
  for (const pid of processes()) process.kill(pid, "SIGTERM");
  if (!process.env.KEEP) rmSync(root, { recursive: true, force: true, maxRetries: 5 });
}
process.exit(0);
