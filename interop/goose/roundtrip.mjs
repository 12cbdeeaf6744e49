// The real goose and gander exchange sessions over files and REST.
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { host, model } from "./model.mjs";

const [gander, goose] = process.argv.slice(2);
const root = mkdtempSync(join(tmpdir(), "gander-roundtrip-"));
const work = join(root, "work");
mkdirSync(work);

const secret = "goose-and-gander";
const env = {
  PATH: process.env.PATH, HOME: root, GOOSE_PATH_ROOT: join(root, "goose"), GOOSE_PROVIDER: "openai", GOOSE_MODEL: "mock",
  OPENAI_HOST: host, OPENAI_API_KEY: "none", GOOSE_DISABLE_KEYRING: "1", GOOSE_MODE: "auto",
  GOOSE_SERVER__SECRET_KEY: secret, GANDER_MODEL: "demo/demo",
};
const run = (...args) =>
  new Promise((resolve, reject) => {
    const child = spawn(goose, args, { env, cwd: work });
    let output = "";
    child.stdout.on("data", (chunk) => (output += chunk));
    child.stderr.on("data", (chunk) => (output += chunk));
    child.on("close", (code) => (code === 0 ? resolve(output) : reject(new Error(`${args.join(" ")}: ${output}`))));
  });

const server = spawn(gander, ["serve", "--listen", "127.0.0.1:0", "--data", join(root, "data")], { env, cwd: work });
const url = await new Promise((resolve) => {
  let output = "";
  server.stdout.on("data", (chunk) => {
    const found = (output += chunk).match(/http:\/\/[0-9.:]+/);
    if (found) resolve(found[0]);
  });
});
async function call(path, body) {
  const headers = { "X-Secret-Key": secret, "content-type": "application/json" };
  const response = await fetch(url + path, { method: body ? "POST" : "GET", headers, body: body && JSON.stringify(body) });
  const text = await response.text();
  if (!response.ok) throw new Error(`${path}: ${response.status} ${text}`);
  return text ? JSON.parse(text) : null;
}
function demand(condition, why) {
  if (!condition) throw new Error(String(why).replaceAll("\n", " ").slice(-600));
}
const plain = (messages) => messages.map(({ role, content }) => JSON.stringify({ role, content }));
const sessions = async () => JSON.parse(await run("session", "list", "--format", "json"));
let exported;

const cases = {
  async goose_makes_and_exports() {
    await run("run", "--name", "demo", "-t", "say marco");
    const [{ id }] = await sessions();
    await run("session", "export", "--session-id", id, "--format", "json", "-o", join(root, "theirs.json"));
    exported = readFileSync(join(root, "theirs.json"), "utf8");
    demand(JSON.parse(exported).conversation.length >= 4, exported);
  },
  async gander_imports_what_goose_exported() {
    const session = await call("/sessions/import", { json: exported });
    demand(JSON.stringify(session.conversation) === JSON.stringify(JSON.parse(exported).conversation), "differs");
    writeFileSync(join(root, "ours.json"), await call(`/sessions/${session.id}/export`));
  },
  async goose_imports_what_gander_exported() {
    const before = new Set((await sessions()).map((session) => session.id));
    await run("session", "import", join(root, "ours.json"));
    const made = (await sessions()).find((session) => !before.has(session.id));
    await run("session", "export", "--session-id", made.id, "--format", "json", "-o", join(root, "back.json"));
    const [back, theirs] = [readFileSync(join(root, "back.json"), "utf8"), exported].map(JSON.parse);
    demand(JSON.stringify(plain(back.conversation)) === JSON.stringify(plain(theirs.conversation)), plain(back.conversation));
  },
  async goose_imports_a_session_that_gander_made() {
    const { id } = await call("/agent/start", { working_dir: work });
    const script = [[{ tool: "read", args: { path: "none" } }], [{ text: "There is none." }]];
    const content = [{ type: "text", text: `[[script:${JSON.stringify(script)}]]` }];
    const headers = { "X-Secret-Key": secret, "content-type": "application/json" };
    const body = JSON.stringify({ session_id: id, user_message: { role: "user", content } });
    await (await fetch(`${url}/reply`, { method: "POST", headers, body })).text();
    writeFileSync(join(root, "made.json"), await call(`/sessions/${id}/export`));
    const before = new Set((await sessions()).map((session) => session.id));
    await run("session", "import", join(root, "made.json"));
    const made = (await sessions()).find((session) => !before.has(session.id));
    await run("session", "export", "--session-id", made.id, "--format", "json", "-o", join(root, "again.json"));
    const [ours, again] = ["made.json", "again.json"].map((name) => JSON.parse(readFileSync(join(root, name), "utf8")));
    demand(JSON.stringify(plain(again.conversation)) === JSON.stringify(plain(ours.conversation)), plain(again.conversation));
  },
};

for (const [name, step] of Object.entries(cases)) {
  try {
    await step();
    console.log(`pass ${name}`);
  } catch (error) {
    console.log(`fail ${name} ${String(error.message).replaceAll("\n", " ").slice(-600)}`);
  }
}
server.kill("SIGKILL");
model.close();
rmSync(root, { recursive: true, force: true, maxRetries: 3 });
process.exit(0);
