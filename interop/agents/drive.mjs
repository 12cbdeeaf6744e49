// goose and opencode behind gander: the same prompt with a tool and a question through every protocol, a cancel, a crash
// and a restart of the server.
import { spawn, spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

import { host, model } from "../goose/model.mjs";

const gander = process.argv[2];
const here = dirname(fileURLToPath(import.meta.url));
const root = mkdtempSync(join(tmpdir(), "gander-agents-"));
const [work, data] = ["work", "data"].map((name) => join(root, name));
mkdirSync(work);
const programs = {
  goose: [join(here, "node_modules/@aaif/goose-binary-linux-x64/bin/goose"), "acp", "--with-builtin", "developer"],
  opencode: [join(here, "node_modules/opencode-linux-x64/bin/opencode"), "acp"],
};
Object.values(programs).forEach(([program]) => chmodSync(program, 0o755));
const opencode = {
  provider: { mock: { npm: "@ai-sdk/openai-compatible", options: { baseURL: `${host}/v1`, apiKey: "none" }, models: { mock: { tool_call: true } } } },
  model: "mock/mock", small_model: "mock/mock", permission: { bash: "ask" }, autoupdate: false, share: "disabled",
};
mkdirSync(join(root, ".config/opencode"), { recursive: true });
writeFileSync(join(root, ".config/opencode/opencode.json"), JSON.stringify(opencode));
const env = {
  PATH: process.env.PATH, HOME: root, GANDER_MODEL: "demo/demo", GANDER_DATA: data,
  GOOSE_PATH_ROOT: join(root, "goose"), GOOSE_PROVIDER: "openai", GOOSE_MODEL: "mock", GOOSE_MODE: "approve",
  OPENAI_HOST: host, OPENAI_API_KEY: "none", GOOSE_DISABLE_KEYRING: "1",
};
const command = (...args) => {
  const { status, stdout, stderr } = spawnSync(gander, args, { env, cwd: work, encoding: "utf8", timeout: 120_000 });
  return { status, text: stdout + stderr };
};
let server, url, token;
async function start() {
  server = spawn(gander, ["serve", "--listen", "127.0.0.1:0"], { env, cwd: work });
  url = await new Promise((resolve, reject) => {
    let output = "";
    const read = (chunk) => {
      const found = (output += chunk).match(/http:\/\/[0-9.:]+/);
      if (found) resolve(found[0]);
    };
    server.stdout.on("data", read);
    server.stderr.on("data", read);
    server.on("exit", (code) => reject(new Error(`gander ended with ${code}: ${output}`)));
  });
  token = command("token").text.trim();
}
const ended = (child) => new Promise((resolve) => (child.exitCode !== null ? resolve() : child.on("exit", resolve)));
async function call(path, body, headers = {}) {
  const all = { authorization: `Bearer ${token}`, "content-type": "application/json", ...headers };
  const response = await fetch(url + path, { method: body ? "POST" : "GET", headers: all, body: body && JSON.stringify(body) });
  const text = await response.text();
  if (!response.ok) throw new Error(`${path}: ${response.status} ${text}`);
  return JSON.parse(text);
}
function demand(condition, why) {
  if (!condition) throw new Error((typeof why === "string" ? why : JSON.stringify(why)).replaceAll("\n", " ").slice(-900));
}
const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
const message = (text) => ({ role: "user", parts: [{ content: text }] });

/** One prompt through ACP-REST; its question is answered with yes. */
async function acpRest(agent, session, text = "say marco") {
  const input = [message(text)];
  let run = await call("/runs", { agent_name: agent, mode: "sync", input, ...(session && { session_id: session }) });
  let asked = 0;
  while (run.status === "awaiting") {
    asked += 1;
    const resume = { type: "message", message: message("yes") };
    run = await call(`/runs/${run.run_id}`, { run_id: run.run_id, mode: "sync", await_resume: resume });
  }
  demand(run.status === "completed", run);
  return { asked, run };
}

async function a2a(agent) {
  const version = { "A2A-Version": "1.0" };
  const send = async (extra) => {
    const said = { messageId: `m-${Math.random()}`, role: "ROLE_USER", ...extra };
    return (await call(`/a2a/${agent}/message:send`, { message: said }, version)).task;
  };
  let task = await send({ parts: [{ text: "say marco" }] });
  let asked = 0;
  while (task.status.state === "TASK_STATE_INPUT_REQUIRED") {
    asked += 1;
    task = await send({ taskId: task.id, contextId: task.contextId, parts: [{ text: "yes" }] });
  }
  demand(task.status.state === "TASK_STATE_COMPLETED", task);
  return { asked, text: JSON.stringify(task) };
}

async function adk(agent) {
  const session = await call(`/apps/${agent}/users/user/sessions`, {});
  const say = (parts) =>
    call("/run", { appName: agent, userId: "user", sessionId: session.id, newMessage: { role: "user", parts } });
  let events = await say([{ text: "say marco" }]);
  const calls = () => events.flatMap((event) => event.content?.parts ?? []).map((part) => part.functionCall).filter(Boolean);
  let asked = 0;
  for (;;) {
    const confirm = calls().find((call) => call.name === "adk_request_confirmation");
    if (!confirm) break;
    asked += 1;
    events = await say([{ functionResponse: { id: confirm.id, name: confirm.name, response: { confirmed: true } } }]);
  }
  return { asked, text: JSON.stringify(events) };
}

/** An editor on stdio, whose sessions the default agent serves. */
async function editor(text) {
  const child = spawn(gander, ["acp"], { env, cwd: work });
  let [buffer, updates, asked, next] = ["", [], 0, 1];
  const waiting = new Map();
  const write = (object) => child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...object })}\n`);
  child.stdout.on("data", (chunk) => {
    buffer += chunk;
    const lines = buffer.split("\n");
    buffer = lines.pop();
    for (const line of lines.filter(Boolean)) {
      const said = JSON.parse(line);
      if (said.method === "session/request_permission") {
        asked += 1;
        const option = said.params.options.find(({ kind }) => kind === "allow_once");
        write({ id: said.id, result: { outcome: { outcome: "selected", optionId: option.optionId } } });
      } else if (said.method) updates.push(said.params?.update);
      else waiting.get(said.id)?.(said);
    }
  });
  const ask = (method, params) =>
    new Promise((resolve, reject) => {
      waiting.set(next, ({ result, error }) => (error ? reject(new Error(JSON.stringify(error))) : resolve(result)));
      write({ id: next++, method, params });
    });
  await ask("initialize", { protocolVersion: 1, clientCapabilities: {}, clientInfo: { name: "driver", version: "1" } });
  const { sessionId } = await ask("session/new", { cwd: work, mcpServers: [] });
  const { stopReason } = await ask("session/prompt", { sessionId, prompt: [{ type: "text", text }] });
  child.stdin.end();
  await ended(child);
  const said = updates.filter((update) => update?.sessionUpdate === "agent_message_chunk").map((update) => update.content.text);
  return { asked, stopReason, text: said.join("") };
}

/** The processes of this agent that gander started. */
const processes = (program) =>
  readdirSync("/proc").filter((pid) => {
    try {
      const words = /^\d+$/.test(pid) ? readFileSync(`/proc/${pid}/cmdline`, "utf8") : "";
      return words.includes(program) && readFileSync(`/proc/${pid}/environ`, "utf8").includes(`HOME=${root}\0`);
    } catch {
      return false;
    }
  });

const cases = {};
for (const agent of Object.keys(programs)) {
  Object.assign(cases, {
    async [`${agent}_is_added_and_tried`]() {
      const added = command("agents", "add", agent, "--", ...programs[agent]);
      demand(added.status === 0 && added.text.includes(`${agent} works`), added.text);
      demand(command("agents").text.includes(agent), "not listed");
    },
    async [`${agent}_through_acp_rest`]() {
      const { asked, run } = await acpRest(agent);
      demand(asked >= 1 && JSON.stringify(run.output).includes("marco"), { asked, run });
    },
    async [`${agent}_through_a2a`]() {
      const { asked, text } = await a2a(agent);
      demand(asked >= 1 && text.includes("marco"), { asked, text });
    },
    async [`${agent}_through_adk`]() {
      const { asked, text } = await adk(agent);
      demand(asked >= 1 && text.includes("marco"), { asked, text });
    },
    async [`${agent}_in_an_editor`]() {
      demand(command("agents", "default", agent).status === 0, "no default");
      const { asked, stopReason, text } = await editor("say marco");
      demand(asked >= 1 && stopReason === "end_turn" && text.includes("marco"), { asked, stopReason, text });
      demand(command("agents", "default", "gander").status === 0, "no default");
    },
    async [`${agent}_is_cancelled_while_it_asks`]() {
      const run = await call("/runs", { agent_name: agent, mode: "sync", input: [message("say marco")] });
      demand(run.status === "awaiting", run);
      await call(`/runs/${run.run_id}/cancel`, {});
      let now;
      do now = await call(`/runs/${run.run_id}`);
      while (["cancelling", "awaiting", "in-progress"].includes(now.status));
      demand(now.status === "cancelled", now);
      await acpRest(agent, run.session_id, "again");
    },
    async [`${agent}_is_killed_and_started_again`]() {
      const run = await call("/runs", { agent_name: agent, mode: "sync", input: [message("say marco")] });
      demand(run.status === "awaiting", run);
      for (const pid of processes(programs[agent][0])) process.kill(Number(pid), "SIGKILL");
      let now;
      do now = await call(`/runs/${run.run_id}`);
      while (["awaiting", "in-progress"].includes(now.status));
      demand(now.status === "failed" && JSON.stringify(now.error).includes(`${agent} ended`), now);
      await acpRest(agent, run.session_id, "again");
    },
    async [`${agent}_goes_on_after_a_restart_of_the_server`]() {
      const { run } = await acpRest(agent);
      server.kill("SIGKILL");
      await ended(server);
      await start();
      const again = await acpRest(agent, run.session_id, "and again");
      demand(!JSON.stringify(again.run).includes("Context lost"), again.run);
    },
  });
}
cases.no_process_is_left_behind = async () => {
  server.kill("SIGTERM");
  await ended(server);
  for (let wait = 0; wait < 100; wait += 1) {
    if (Object.values(programs).every(([program]) => processes(program).length === 0)) return;
    await pause(100);
  }
  demand(false, Object.values(programs).flatMap(([program]) => processes(program)));
};

await start();
const only = process.argv[3];
for (const [name, check] of Object.entries(cases).filter(([name]) => !only || name.includes(only))) {
  try {
    await check();
    console.log(`pass ${name}`);
  } catch (error) {
    console.log(`fail ${name} ${String(error.message).replaceAll("\n", " ").slice(-900)}`);
  }
}
server.kill("SIGTERM");
model.close();
if (existsSync(root)) rmSync(root, { recursive: true, force: true });
process.exit(0);
