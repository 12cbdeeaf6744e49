// A page of another origin attaches with use-acp: by a ticket that works once, if its origin is allowed.
// Usage: node drive.mjs GANDER CHROMIUM
import { build } from "esbuild";
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

const [gander, executablePath] = process.argv.slice(2);
const root = mkdtempSync(join(tmpdir(), "gander-use-acp-"));
const work = join(root, "work");
mkdirSync(work);

const bundle = await build({
  entryPoints: ["page.jsx"], bundle: true, write: false, format: "iife", jsx: "automatic",
  define: { "process.env.NODE_ENV": '"production"' },
});
const script = bundle.outputFiles[0].text;
const pages = createServer((request, response) => {
  const isScript = request.url === "/page.js";
  response.setHeader("content-type", isScript ? "text/javascript" : "text/html");
  response.end(isScript ? script : '<!doctype html><title>use-acp</title><body><script src="/page.js" defer></script>');
});
const listen = (server) => new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(server.address().port)));
const pagePort = await listen(pages);
const probe = createServer();
const port = await listen(probe);
await new Promise((resolve) => probe.close(resolve));
const base = `http://127.0.0.1:${port}`;

const env = {
  PATH: process.env.PATH, HOME: root, GANDER_DATA: join(root, "data"), GANDER_MODEL: "demo/demo",
  GANDER_SERVER_ALLOWED_ORIGINS: `['http://127.0.0.1:${pagePort}']`,
};
const server = spawn(gander, ["serve", "--listen", `127.0.0.1:${port}`], { env, cwd: work, stdio: "ignore" });
const ended = new Promise((resolve) => server.once("exit", resolve));
for (let tries = 0; !(await fetch(`${base}/health`).then((answer) => answer.ok, () => false)); tries += 1) {
  if (tries > 300) throw new Error("the server did not start");
  await new Promise((resolve) => setTimeout(resolve, 50));
}
const token = execFileSync(gander, ["token"], { env, encoding: "utf8" }).trim();

async function ticket() {
  const answer = await fetch(`${base}/gander/tickets`, { method: "POST", headers: { authorization: `Bearer ${token}` } });
  return (await answer.json()).ticket;
}

const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });

/** A page at an origin of its own that attaches with a ticket. */
async function open(host, ticket, prompt) {
  const page = await browser.newPage();
  page.setDefaultTimeout(20_000);
  if (process.env.DEBUG) page.on('console', (m) => console.error(m.text()));
  const query = new URLSearchParams({ ws: `ws://127.0.0.1:${port}/acp?ticket=${ticket}`, cwd: work, prompt });
  await page.goto(`http://${host}:${pagePort}/?${query}`);
  return page;
}

const text = (page, id) => page.locator(`#${id}`).textContent();
const until = (page, id, wanted) =>
  page.waitForFunction(([id, wanted]) => document.getElementById(id)?.textContent.includes(wanted), [id, wanted]);

function demand(condition, why) {
  if (!condition) throw new Error(String(why).replaceAll("\n", " ").slice(-600));
}

let used;
const cases = {
  async attaches_prompts_and_answers() {
    const write = '[[script:[[{"tool":"write","args":{"path":"made.txt","content":"hi"}}],[{"text":"All done."}]]]]';
    used = await ticket();
    const page = await open("127.0.0.1", used, write);
    await page.locator("#allow").click();
    await until(page, "ended", "end_turn");
    demand((await text(page, "text")) === "All done.", await text(page, "text"));
    demand((await text(page, "commands")).includes("clear title"), await text(page, "commands"));
    demand(existsSync(join(work, "made.txt")), "the file was not written");
    await page.close();
  },
  async a_ticket_works_once() {
    const page = await open("127.0.0.1", used, "hello");
    await until(page, "state", "error").catch(() => until(page, "state", "disconnected"));
    demand((await text(page, "ended")) === "", await text(page, "ended"));
    await page.close();
  },
  // The same page under another name is another origin, which no setting allows.
  async another_origin_is_refused() {
    const page = await open("localhost", await ticket(), "hello");
    await until(page, "state", "error").catch(() => until(page, "state", "disconnected"));
    demand((await text(page, "ended")) === "", await text(page, "ended"));
    await page.close();
  },
};

for (const [name, run] of Object.entries(cases)) {
  try {
    await run();
    console.log(`pass ${name}`);
  } catch (error) {
    console.log(`fail ${name} ${error.message.replaceAll("\n", " ")}`);
  }
}
await browser.close();
server.kill();
await ended;
pages.close();
rmSync(root, { recursive: true, force: true, maxRetries: 3 });
