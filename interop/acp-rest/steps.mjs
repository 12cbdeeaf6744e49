// Twenty steps of the npm client acp-sdk. Usage: node steps.mjs BASE_URL TOKEN
// Its ESM build imports package.json without an attribute and fails on Node 20 and later: this is the CommonJS one.
import { createRequire } from "node:module";

const { Client } = createRequire(import.meta.url)("acp-sdk");
const [baseUrl, token] = process.argv.slice(2);
/** It takes a token with a fetch of the caller's. */
const bearing = (token) => (target, init = {}) =>
  fetch(target, { ...init, headers: { ...Object.fromEntries(new Headers(init.headers)), authorization: `Bearer ${token}` } });
const client = new Client({ baseUrl, fetch: bearing(token) });
const collect = async (events) => {
  const all = [];
  for await (const event of events) all.push(event);
  return all;
};
const step = async (name, action, holds) => {
  try {
    const value = await action();
    console.log(holds(value) ? `ok ${name}` : `FAIL ${name} ${JSON.stringify(value)?.slice(0, 300)}`);
    return value;
  } catch (error) {
    console.log(`FAIL ${name} ${error.name} ${error.message?.replace(/\s+/g, " ").slice(0, 300)}`);
  }
};
const is = (expected) => (value) => value === expected;
const ends = (type) => (events) => events.at(-1).type === type;
const answer = { role: "user", parts: [{ content: "yes" }], created_at: null, completed_at: null };
const yes = { type: "message", message: answer };

await step("ping", () => client.ping(), () => true);
await step("agents", () => client.agents(), (agents) => agents.some((agent) => agent.name === "echo"));
await step("agent", () => client.agent("echo"), (agent) => agent.name === "echo");
await step("runSync", async () => (await client.runSync("echo", "Hello")).status, is("completed"));
await step("runStream", () => collect(client.runStream("parts", "3")), ends("run.completed"));
await step("runStreamRich", () => collect(client.runStream("rich", "go")), ends("run.completed"));
const later = await step("runAsync", () => client.runAsync("parts", "2"), (run) => run.status === "created");
const settled = async (run) => {
  let now = run;
  while (["created", "in-progress"].includes(now.status)) now = await client.runStatus(now.run_id);
  return now.status;
};
await step("runStatus", () => settled(later), is("completed"));
await step("runEvents", () => client.runEvents(later.run_id), (events) => events.length === 7);
const first = await step("await", () => client.runSync("approve", "x"), (run) => run.status === "awaiting");
await step("runResumeSync", async () => (await client.runResumeSync(first.run_id, yes)).status, is("completed"));
const second = await step("await2", () => client.runSync("approve", "x"), (run) => run.status === "awaiting");
await step("runResumeStream", () => collect(client.runResumeStream(second.run_id, yes)), ends("run.completed"));
const slow = await step("slow", () => client.runAsync("slow", "x"), (run) => run.status === "created");
await step("runCancel", async () => (await client.runCancel(slow.run_id)).status, is("cancelling"));
await step(
  "session",
  () =>
    client.withSession(async (session) => {
      await session.runSync("echo", "a");
      const run = await session.runSync("history", "b");
      return `${run.session_id === session.sessionId} ${run.output[0].parts[0].content}`;
    }),
  is("true history=2"),
);
const calls = [[{ tool: "shell", args: { command: "touch npm" } }], [{ text: "All done." }]];
const asked = await step("asks", () => client.runSync("gander", `[[script:${JSON.stringify(calls)}]]`), (run) => run.status === "awaiting");
await step("allows", async () => (await client.runResumeSync(asked.run_id, yes)).status, is("completed"));
const stranger = new Client({ baseUrl, fetch: bearing("wrong") });
await step("stranger", () => stranger.runSync("echo", "x").catch((error) => error.name), is("ACPError"));
await step("error", () => client.agent("nobody").catch((error) => error.code), is("not_found"));
