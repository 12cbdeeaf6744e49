// Drives gander with the acpx command line client: a prompt, permissions, a cancel, sessions.
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const gander = process.argv[2];
const root = mkdtempSync(join(tmpdir(), "gander-acpx-"));
const [data, work] = ["data", "work"].map((name) => join(root, name));
[data, work].forEach((path) => mkdirSync(path));
const env = { PATH: process.env.PATH, HOME: root, GANDER_MODEL: "demo/demo" };
const script = (calls) => `[[script:${JSON.stringify(calls)}]]`;
const touch = (file) =>
  script([[{ tool: "shell", args: { command: `touch ${file}` } }], [{ text: "All done." }]]);

/** Runs acpx; `seen` is called with all of its output whenever some comes. */
function acpx(args, seen = () => {}) {
  const fixed = ["--agent", `${gander} acp --data ${data}`, "--cwd", work, "--ttl", "2"];
  const child = spawn(join(here, "node_modules/.bin/acpx"), [...fixed, ...args], { env, cwd: work });
  let output = "";
  const collect = (chunk) => seen((output += chunk));
  child.stdout.on("data", collect);
  child.stderr.on("data", collect);
  const timer = setTimeout(() => child.kill("SIGKILL"), 60_000);
  return new Promise((resolve) =>
    child.on("close", (code) => {
      clearTimeout(timer);
      resolve({ code, output });
    }),
  );
}

function demand(condition, why) {
  if (!condition) throw new Error(why.replaceAll("\n", " ").slice(-600));
}

const cases = {
  async exec() {
    const { code, output } = await acpx(["exec", "text"]);
    demand(code === 0 && output.includes("no language model wrote it"), `${code}: ${output}`);
    demand(output.includes("end_turn"), output);
  },
  async permission_approved() {
    const { code, output } = await acpx(["--approve-all", "exec", touch("approved")]);
    demand(code === 0 && output.includes("All done."), `${code}: ${output}`);
    demand(existsSync(join(work, "approved")), "the approved command did not run");
  },
  async permission_denied() {
    const { output } = await acpx(["--deny-all", "exec", touch("denied")]);
    demand(output.includes("All done."), output);
    demand(!existsSync(join(work, "denied")), "the denied command ran");
  },
  async own_terminals() {
    const { code, output } = await acpx(["--no-terminal", "--no-fs", "--approve-all", "exec", touch("alone")]);
    demand(code === 0 && !output.includes("terminal/create"), `${code}: ${output}`);
    demand(existsSync(join(work, "alone")), "the approved command did not run");
  },
  async plan_and_edit() {
    const plan = await acpx(["--format", "json", "exec", "plan"]);
    demand(plan.output.includes('"sessionUpdate":"plan"'), plan.output);
    const edit = await acpx(["--approve-all", "--format", "json", "exec", "edit"]);
    demand(edit.output.includes('"type":"diff"'), edit.output);
  },
  async session_and_cancel() {
    const made = await acpx(["sessions", "new"]);
    demand(made.code === 0, made.output);
    let cancelled;
    const long = await acpx(["--format", "json", "prompt", "long"], (output) => {
      if (output.includes("Honk") && !cancelled) cancelled = acpx(["cancel"]);
    });
    const { code, output } = await cancelled;
    demand(code === 0 && output.includes("cancel requested"), `${code}: ${output}`);
    demand(long.output.includes('"stopReason":"cancelled"'), long.output);
  },
  async prompt_after_cancel() {
    const { code, output } = await acpx(["prompt", "thought"]);
    demand(code === 0 && output.includes("end_turn"), `${code}: ${output}`);
  },
  async list_and_close() {
    const list = await acpx(["sessions", "list"]);
    demand(list.code === 0 && list.output.includes(work), list.output);
    const close = await acpx(["sessions", "close"]);
    demand(close.code === 0, close.output);
  },
};

for (const [name, run] of Object.entries(cases)) {
  try {
    await run();
    console.log(`pass ${name}`);
  } catch (error) {
    console.log(`fail ${name} ${error.message}`);
  }
}
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
