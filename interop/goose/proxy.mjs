// An ADK client at `gander proxy adk`, behind which is the real goose, or another gander.
import { spawn } from "node:child_process";
import { createServer } from "node:net";
import { existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { host, model } from "./model.mjs";

const [gander, goose] = process.argv.slice(2);
const root = mkdtempSync(join(tmpdir(), "gander-proxy-"));
const secret = "goose-and-gander";
const children = [];

function demand(condition, why) {
  if (!condition) throw new Error(String(typeof why === "string" ? why : JSON.stringify(why)).replaceAll("\n", " ").slice(-800));
}

const freePort = () =>
  new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });

/** Starts a program and waits until it has said where it listens, or answers there. */
async function start(name, program, args, more = {}) {
  const home = join(root, name);
  mkdirSync(join(home, "work"), { recursive: true });
  const env = {
    PATH: process.env.PATH, HOME: home, GOOSE_PATH_ROOT: join(home, "goose"), GOOSE_DISABLE_KEYRING: "1",
    OPENAI_HOST: host, OPENAI_API_KEY: "none", GANDER_DATA: join(home, "data"), ...more,
  };
  const child = spawn(program, args, { env, cwd: join(home, "work") });
  children.push(child);
  let output = "";
  child.stdout.on("data", (chunk) => (output += chunk));
  child.stderr.on("data", (chunk) => (output += chunk));
  return { child, output: () => output, work: join(home, "work") };
}

async function eventually(what, ask) {
  for (let tries = 0; tries < 300; tries++) {
    const found = await ask().catch(() => null);
    if (found) return found;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`never: ${what()}`);
}

async function proxyFor(name, url, more = {}) {
  const proxy = await start(`proxy-${name}`, gander, ["proxy", "adk", "--goose", url, "--listen", ":0"], {
    GOOSE_SECRET_KEY: secret, WORKING_DIR: more.work,
  });
  const pattern = /ADK on (http:\/\/[0-9.:]+) -> goose at (\S+)/;
  const [, here, there] = await eventually(proxy.output, async () => proxy.output().match(pattern));
  demand(there === url, proxy.output());
  return { ...proxy, url: here };
}

const json = { "content-type": "application/json" };
const sessions = (proxy) => `${proxy.url}/apps/anything/users/anna/sessions`;

async function create(proxy) {
  const response = await fetch(sessions(proxy), { method: "POST", headers: json, body: "{}" });
  const session = await response.json();
  demand(response.ok, session);
  return session.id;
}

async function run(proxy, session, parts) {
  const body = { appName: "anything", userId: "anna", sessionId: session, newMessage: { role: "user", parts }, streaming: true };
  const response = await fetch(`${proxy.url}/run_sse`, { method: "POST", headers: json, body: JSON.stringify(body) });
  const text = await response.text();
  demand(response.ok, text);
  return text.split("\n").filter((line) => line.startsWith("data: ")).map((line) => JSON.parse(line.slice(6)));
}

const whole = (events) => events.filter((event) => !event.partial).flatMap((event) => event.content?.parts ?? []);
const words = (events) => whole(events).map((part) => part.text ?? "").join("");
const calls = (events) => whole(events).flatMap((part) => (part.functionCall ? [part.functionCall] : []));
const responses = (events) => whole(events).flatMap((part) => (part.functionResponse ? [part.functionResponse] : []));

/** Tells a program to end and waits for that; the seconds it took. */
async function end(started) {
  const began = Date.now();
  const closed = new Promise((resolve) => started.child.on("close", resolve));
  started.child.kill("SIGTERM");
  await closed;
  return (Date.now() - began) / 1000;
}

// `auto` is the mode that goose has by default; it is not gander's.
/** What a client of adk2goose does: the path form, `new_message`, a session that its first run makes, a turn that says its end. */
async function likeAdk2goose(proxy, parts, answer) {
  const base = `${proxy.url}/apps/myapp/users/user1/sessions`;
  const made = await (await fetch(base, { method: "POST", headers: json, body: "{}" })).json();
  demand(made.id && made.appName === "myapp" && made.userId === "user1", made);
  for (const session of [made.id, `myapp_user1_${Date.now()}000000`]) {
    const body = JSON.stringify({ new_message: { parts, role: "user" } });
    const response = await fetch(`${base}/${session}/run_sse`, { method: "POST", headers: json, body });
    demand(response.ok && response.headers.get("content-type").startsWith("text/event-stream"), await response.clone().text());
    const lines = (await response.text()).split("\n").filter((line) => line.startsWith("data: "));
    const events = lines.map((line) => JSON.parse(line.slice(6)));
    demand(words(events).includes(answer) && calls(events).length === 1 && responses(events).length === 1, events);
    demand(events.length >= 2 && events.at(-1).turnComplete === true, events.at(-1));
  }
  const listed = await (await fetch(base)).json();
  demand(listed.length === 2, listed);
  demand((await fetch(`${base}/${made.id}`, { method: "DELETE" })).status === 200, "not deleted");
  demand((await (await fetch(base)).json()).length === 1, "still listed");
}

const cases = {
  async goose_serve() {
    const port = await freePort();
    const url = `http://127.0.0.1:${port}`;
    const serving = await start("goose", goose, ["serve", "--port", String(port), "--with-builtin", "developer"], {
      GOOSE_SERVER__SECRET_KEY: secret, GOOSE_PROVIDER: "openai", GOOSE_MODEL: "mock", GOOSE_MODE: "auto",
    });
    await eventually(serving.output, async () => (await fetch(`${url}/status`)).ok);
    const proxy = await proxyFor("goose", url, serving);
    const session = await create(proxy);
    const events = await run(proxy, session, [{ text: "say marco" }]);
    demand(words(events).includes("It says marco."), events);
    demand(calls(events).length === 1 && responses(events).length === 1, events);
    demand(JSON.stringify(responses(events)).includes("marco"), events);
    const again = await run(proxy, session, [{ text: "and again" }]);
    demand(words(again).includes("marco"), again);
    const artifacts = await (await fetch(`${sessions(proxy)}/${session}/artifacts`)).json();
    demand(artifacts.includes("goose-session.json"), artifacts);
    const file = await (await fetch(`${sessions(proxy)}/${session}/artifacts/goose-session.json`)).json();
    demand(JSON.parse(file.text).conversation.length >= 4, file);
    const listed = await (await fetch(sessions(proxy))).json();
    demand(listed.length === 1 && listed[0].id === session, listed);
    demand((await fetch(`${sessions(proxy)}/${session}`, { method: "DELETE" })).ok, "not deleted");
    const seconds = await end(proxy);
    demand(seconds < 10, `it took ${seconds} s to end`);
  },
  async goose_serve_asks() {
    const port = await freePort();
    const url = `http://127.0.0.1:${port}`;
    const serving = await start("asking", goose, ["serve", "--port", String(port), "--with-builtin", "developer"], {
      GOOSE_SERVER__SECRET_KEY: secret, GOOSE_PROVIDER: "openai", GOOSE_MODEL: "mock", GOOSE_MODE: "approve",
    });
    await eventually(serving.output, async () => (await fetch(`${url}/status`)).ok);
    const proxy = await proxyFor("asking", url, serving);
    const session = await create(proxy);
    const asked = await run(proxy, session, [{ text: "say marco" }]);
    const question = calls(asked).find((call) => call.name === "adk_request_confirmation");
    demand(question, asked);
    const answer = { id: question.id, name: question.name, response: { confirmed: true } };
    const events = await run(proxy, session, [{ functionResponse: answer }]);
    demand(words(events).includes("It says marco."), events);
    await end(proxy);
  },
  async another_gander() {
    const other = await start("gander", gander, ["serve", "--listen", "127.0.0.1:0"], {
      GOOSE_SERVER__SECRET_KEY: secret, GANDER_MODEL: "demo/demo",
    });
    const [url] = await eventually(other.output, async () => other.output().match(/http:\/\/[0-9.:]+/));
    const proxy = await proxyFor("gander", url, other);
    const session = await create(proxy);
    const script = (calls) => [{ text: `[[script:${JSON.stringify(calls)}]]` }];
    const said = await run(proxy, session, script([[{ text: "hello" }]]));
    demand(words(said) === "hello", said);
    const shell = [[{ tool: "shell", args: { command: "touch made && echo marco" } }], [{ text: "done" }]];
    const asked = await run(proxy, session, script(shell));
    const question = calls(asked).find((call) => call.name === "adk_request_confirmation");
    demand(question, asked);
    const answer = { id: question.id, name: question.name, response: { confirmed: true } };
    const events = await run(proxy, session, [{ functionResponse: answer }]);
    demand(words(events).includes("done"), events);
    demand(responses(events).some(({ response }) => response.exit_code === 0), responses(events));
    demand(existsSync(join(other.work, "made")), "it did not run");
    await end(proxy);
  },
  async shapes_of_adk2goose_at_goose_serve() {
    const port = await freePort();
    const url = `http://127.0.0.1:${port}`;
    const serving = await start("shapes", goose, ["serve", "--port", String(port), "--with-builtin", "developer"], {
      GOOSE_SERVER__SECRET_KEY: secret, GOOSE_PROVIDER: "openai", GOOSE_MODEL: "mock", GOOSE_MODE: "auto",
    });
    await eventually(serving.output, async () => (await fetch(`${url}/status`)).ok);
    const proxy = await proxyFor("shapes", url, serving);
    await likeAdk2goose(proxy, [{ text: "say marco" }], "It says marco.");
    await end(proxy);
  },
  async shapes_of_adk2goose_at_gander() {
    const other = await start("shapes-gander", gander, ["serve", "--listen", "127.0.0.1:0"], {
      GOOSE_SERVER__SECRET_KEY: secret, GANDER_MODEL: "demo/demo",
    });
    const [url] = await eventually(other.output, async () => other.output().match(/http:\/\/[0-9.:]+/));
    const proxy = await proxyFor("shapes-gander", url, other);
    // A client of adk2goose answers no questions: what it asks for only looks, so that nobody is asked.
    const calls = [[{ tool: "shell", args: { command: "echo marco" } }], [{ text: "It says marco." }]];
    await likeAdk2goose(proxy, [{ text: `[[script:${JSON.stringify(calls)}]]` }], "It says marco.");
    await end(proxy);
  },
  async a_dead_goose_makes_no_session() {
    const proxy = await proxyFor("dead", "http://127.0.0.1:9", { work: root });
    const refused = await create(proxy).then(() => "made", (error) => String(error.message));
    demand(refused.includes("Goose is unavailable"), refused);
    await end(proxy);
  },
};

for (const [name, step] of Object.entries(cases)) {
  try {
    await step();
    console.log(`pass ${name}`);
  } catch (error) {
    console.log(`fail ${name} ${String(error.message).replaceAll("\n", " ").slice(-900)}`);
  }
}
children.forEach((child) => child.kill("SIGKILL"));
model.close();
rmSync(root, { recursive: true, force: true, maxRetries: 3 });
process.exit(0);
