// Drives gander, called as goose, with goose's own SDK: chat, sessions, tools, providers, settings.
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import { ndJsonStream } from "@agentclientprotocol/sdk";
import { GooseClient } from "@aaif/goose-sdk";

const root = mkdtempSync(join(tmpdir(), "gander-goose-"));
const [data, work] = ["data", "work"].map((name) => join(root, name));
[data, work].forEach((path) => mkdirSync(path));
const goose = join(root, "goose");
symlinkSync(process.argv[2], goose);
const secret = "goose-and-gander";
// The secret is what goose's desktop gives the server that it starts: it makes the desktop the owner's own client.
const env = {
  PATH: process.env.PATH, HOME: root, GANDER_MODEL: "demo/demo", GOOSE_SERVER__SECRET_KEY: secret,
  GANDER_SERVER_ROOTS: JSON.stringify([work]),
};
const script = (...calls) => [{ type: "text", text: `[[script:${JSON.stringify(calls)}]]` }];
const children = [];

function demand(condition, why) {
  if (!condition) throw new Error(String(why).replaceAll("\n", " ").slice(-600));
}

/** A client of the SDK that collects what it is told and answers questions. */
function listener(allow = "allow_once") {
  const told = { text: "", tools: [], asked: 0 };
  const client = {
    async sessionUpdate({ update }) {
      if (update.sessionUpdate === "agent_message_chunk") told.text += update.content.text ?? "";
      if (update.sessionUpdate === "tool_call") told.tools.push(update.title);
    },
    async requestPermission({ options }) {
      told.asked += 1;
      const { optionId } = options.find((option) => option.kind === allow);
      return { outcome: { outcome: "selected", optionId } };
    },
  };
  return { told, client };
}

async function introduce(client) {
  const clientInfo = { name: "goose-sdk", version: "0.20.2" };
  return client.initialize({ protocolVersion: 1, clientInfo, clientCapabilities: {} });
}

async function stdio(allow) {
  const child = spawn(goose, ["acp", "--with-builtin", "developer", "--data", data], { env, cwd: work });
  children.push(child);
  const { told, client } = listener(allow);
  const stream = ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
  const sdk = new GooseClient(() => client, stream);
  await introduce(sdk);
  return { sdk, told };
}

/** One server for all who come over HTTP. */
let served;
const serving = () => (served ??= serve());
const elsewhere = join(root, "served");

function serve() {
  const child = spawn(goose, ["serve", "--port", "0", "--data", elsewhere], { env, cwd: work });
  children.push(child);
  return new Promise((resolve, reject) => {
    let output = "";
    child.stdout.on("data", (chunk) => {
      output += chunk;
      const found = output.match(/http:\/\/[0-9.:]+/);
      if (found) resolve(found[0]);
    });
    child.on("exit", (code) => reject(new Error(`goose serve ended with ${code}`)));
  });
}

/** The SDK sends no key over HTTP, so the key is added to its requests, as goose's desktop does. */
const plain = globalThis.fetch;
async function http(key = secret, allow) {
  const url = await serving();
  globalThis.fetch = (target, init = {}) => plain(target, { ...init, headers: { ...init.headers, "X-Secret-Key": key } });
  const { told, client } = listener(allow);
  const sdk = new GooseClient(() => client, url);
  await introduce(sdk);
  return { sdk, told };
}

async function chats({ sdk, told }) {
  const { sessionId } = await sdk.newSession({ cwd: work, mcpServers: [] });
  const { stopReason } = await sdk.prompt({ sessionId, prompt: script([{ text: "hello from gander" }]) });
  demand(stopReason === "end_turn" && told.text === "hello from gander", JSON.stringify({ stopReason, told }));
  return sessionId;
}

const cases = {
  async chat_stdio() {
    await chats(await stdio());
  },
  async chat_http() {
    await chats(await http());
  },
  async tool_with_permission() {
    const { sdk, told } = await stdio();
    const { sessionId } = await sdk.newSession({ cwd: work, mcpServers: [] });
    const calls = [[{ tool: "shell", args: { command: "touch allowed" } }], [{ text: "Done." }]];
    await sdk.prompt({ sessionId, prompt: script(...calls) });
    demand(told.asked === 1 && told.tools.length === 1 && told.text === "Done.", JSON.stringify(told));
  },
  /** Somebody else's client: with a token to prompt and to answer with it is asked, and what it says counts. */
  async tool_with_permission_http() {
    await serving();
    const quiet = { env, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] };
    const add = ["token", "add", "desktop", "--scopes", "prompt,approve", "--data", elsewhere];
    const token = execFileSync(process.argv[2], add, quiet).trim();
    for (const [allow, made] of [["allow_once", true], ["reject_once", false]]) {
      const { sdk, told } = await http(token, allow);
      const { sessionId } = await sdk.newSession({ cwd: work, mcpServers: [] });
      const calls = [[{ tool: "shell", args: { command: `touch ${allow}` } }], [{ text: "Done." }]];
      const { stopReason } = await sdk.prompt({ sessionId, prompt: script(...calls) });
      demand(stopReason === "end_turn" && told.asked === 1 && told.text === "Done.", JSON.stringify({ stopReason, told }));
      demand(existsSync(join(work, allow)) === made, allow);
    }
  },
  /** A wrong key is an error that names the reason, and nothing hangs. */
  async stranger_http() {
    const refused = await http("wrong").then(() => "none", (error) => String(error?.message ?? JSON.stringify(error)));
    demand(/401|[Uu]nauth|token/.test(refused), refused);
  },
  async sessions() {
    const { sdk, told } = await stdio();
    const sessionId = await chats({ sdk, told });
    await sdk.goose.sessionRename_unstable({ sessionId, title: "renamed" });
    await sdk.goose.sessionArchive_unstable({ sessionId });
    await sdk.goose.sessionUnarchive_unstable({ sessionId });
    const { sessions } = await sdk.listSessions({ cwd: work });
    demand(sessions.some((session) => session.title === "renamed"), JSON.stringify(sessions));
    const { data: exported } = await sdk.goose.sessionExport_unstable({ sessionId });
    demand(JSON.parse(exported).conversation.length === 2, exported);
    const copy = await sdk.goose.sessionImport_unstable({ data: exported });
    demand(copy.sessionId !== sessionId && copy.messageCount === 2, JSON.stringify(copy));
    told.text = "";
    await sdk.loadSession({ sessionId: copy.sessionId, cwd: work, mcpServers: [] });
    demand(told.text === "hello from gander", told.text);
    await sdk.goose.sessionDelete({ sessionId });
  },
  async real_export() {
    const { sdk } = await stdio();
    const file = readFileSync(new URL("../data/goose-1.52-export.json", import.meta.url), "utf8");
    const { sessionId } = await sdk.goose.sessionImport_unstable({ data: file });
    const { data: exported } = await sdk.goose.sessionExport_unstable({ sessionId });
    const [ours, theirs] = [exported, file].map((text) => JSON.stringify(JSON.parse(text).conversation));
    demand(ours === theirs, ours);
  },
  async tools_and_extensions() {
    const { sdk, told } = await stdio();
    const sessionId = await chats({ sdk, told });
    const { tools } = await sdk.goose.toolsList_unstable({ sessionId });
    demand(tools.some((tool) => tool.name === "shell" && tool.parameters.includes("command")), JSON.stringify(tools));
    const { extensions } = await sdk.goose.sessionExtensionsList_unstable({ sessionId });
    demand(extensions.length > 0, JSON.stringify(extensions));
    const configured = await sdk.goose.configExtensionsList_unstable({});
    const enabled = (name) => configured.extensions.find((entry) => entry.extension.name === name)?.enabled;
    demand(enabled("developer") === true && enabled("memory") === false, JSON.stringify(configured));
    await sdk.goose.extensionsAvailable_unstable({});
  },
  async providers() {
    const { sdk } = await stdio();
    const { entries } = await sdk.goose.providersList_unstable({});
    demand(entries.find((entry) => entry.providerId === "demo")?.configured === true, JSON.stringify(entries));
    const { statuses } = await sdk.goose.providersConfigStatus_unstable({ providerIds: ["openai"] });
    demand(statuses[0].isConfigured === false, JSON.stringify(statuses));
    const { models } = await sdk.goose.providersSupportedModelsList_unstable({ providerId: "openai" });
    demand(models.length > 0, JSON.stringify(models));
    await sdk.goose.providersConfigRead_unstable({ providerId: "openai" });
  },
  async settings() {
    const { sdk } = await stdio();
    const saved = await sdk.goose.defaultsSave_unstable({ providerId: "demo", modelId: "demo" });
    demand(saved.providerId === "demo", JSON.stringify(saved));
    await sdk.goose.preferencesSave_unstable({ values: [{ key: "autoCompactThreshold", value: 0.7 }] });
    const { values } = await sdk.goose.preferencesRead_unstable({ keys: ["autoCompactThreshold"] });
    demand(values[0].value === 0.7, JSON.stringify(values));
    await sdk.goose.preferencesRemove_unstable({ keys: ["autoCompactThreshold"] });
  },
  async what_is_not_here_is_said() {
    const { sdk } = await stdio();
    const refused = await sdk.goose.dictationModelsList_unstable({}).catch((error) => error);
    demand(refused.code === -32601, JSON.stringify(refused));
  },
};

for (const [name, run] of Object.entries(cases)) {
  const late = new Promise((_, reject) => setTimeout(() => reject(new Error("took too long")), 30_000).unref());
  try {
    await Promise.race([run(), late]);
    console.log(`pass ${name}`);
  } catch (error) {
    console.log(`fail ${name} ${String(error?.message ?? JSON.stringify(error)).replaceAll("\n", " ")}`);
  }
}
children.forEach((child) => child.kill("SIGKILL"));
// The background server goes on after its clients: find it by its data directory and end it.
for (const pid of readdirSync("/proc").filter((name) => /^[0-9]+$/.test(name))) {
  try {
    const words = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
    if (words.includes(data)) process.kill(Number(pid));
  } catch {
    // It has just ended by itself.
  }
}
rmSync(root, { recursive: true, force: true, maxRetries: 3 });
process.exit(0);
