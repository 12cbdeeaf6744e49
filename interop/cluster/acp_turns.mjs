// What an editor does behind a load balancer: prompts, reads to the end, and when its connection is lost opens another one and loads
// the session again. The SDK that carries it is the caller's.
import { existsSync } from "node:fs";
import { join } from "node:path";

const PATIENCE = 120_000;
/**
 * How long a prompt whose answer was lost may take to show in the session before it counts as never arrived. ACP has no id for prompts: one
 * that waits for a dead node's session to be taken over may come late, and sending it again would make it two.
 */
const DOUBT = 20_000;

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** The prompt of a turn: some words, a command that writes down that it ran, more words. Every third turn is longer than a drain waits. */
function prompt(word, turn) {
  const count = turn % 3 === 1 ? 130 : 25;
  const words = (from) => Array.from({ length: count }, (_, index) => `~${word}:${from + index} `).join("");
  const say = (from) => ({ text: words(from), chunks: count, delay_ms: 50 });
  const shell = { tool: "shell", args: { command: `mktemp ran-${word}-XXXXXX` } };
  return `[[script:${JSON.stringify([[say(0), shell], [say(count), { text: `end-${word} ` }]])}]]`;
}

/**
 * Takes turns in one session until the driver says stop. `connect(hear)` gives a connection with `newSession`, `load`, `prompt` and a
 * promise `lost`; `hear` takes every update of the session.
 */
export async function takeTurns(name, folder, connect) {
  const told = { agent: "", prompts: "" };
  // The session, the connection, whom to tell of news, and the last turn whose prompt was sent.
  let [session, link, changed, sent] = [null, null, () => {}, null];
  const report = { client: name, turns: 0, reconnects: 0, troubles: {} };

  function hear(update) {
    const text = update.content?.text ?? "";
    if (update.sessionUpdate === "agent_message_chunk") told.agent += text;
    if (update.sessionUpdate === "user_message_chunk") told.prompts += text;
    changed();
  }

  async function until(done, limit = PATIENCE) {
    const began = Date.now();
    while (!done()) {
      if (Date.now() - began > limit) return false;
      const next = new Promise((resolve) => (changed = resolve));
      await Promise.race([next, link.lost.then(() => Promise.reject(new Error("the connection was lost"))), sleep(500)]);
    }
    return true;
  }

  async function open() {
    const before = told.agent;
    [told.agent, told.prompts] = ["", ""];
    link = await connect(hear);
    if (!session) {
      session = await link.newSession();
      return;
    }
    try {
      await link.load(session);
    } catch (error) {
      told.agent = before;
      throw error;
    }
    // Nothing that was shown is gone or has changed. Over plain HTTP the history may come a moment after the answer.
    if (!(await until(() => told.agent.startsWith(before), DOUBT))) {
      console.log(JSON.stringify({ ...report, session, wrong: "shown before and not now", before, now: told.agent }));
      process.exit(1);
    }
  }

  async function attempt(word, turn) {
    if (!link) await open();
    const asked = () => told.prompts.includes(`end-${word} `);
    const over = () => told.agent.includes(`end-${word} `);
    if (asked() || (sent === word && (await until(asked, DOUBT)))) {
      if (!(await until(over))) throw new Error("the turn does not end");
      return;
    }
    sent = word;
    told.prompts += `end-${word} `;
    const { stopReason } = await Promise.race([
      link.prompt(session, prompt(word, turn)),
      link.lost.then(() => Promise.reject(new Error("the connection was lost"))),
    ]);
    if (stopReason !== "end_turn" || !(await until(over))) throw new Error(`the turn ended with ${stopReason}`);
  }

  for (let turn = 0, last = false; !last; turn += 1) {
    last = existsSync(join(folder, "stop"));
    const [word, began] = [`${name}-${turn}`, Date.now()];
    for (;;) {
      try {
        await attempt(word, turn);
        break;
      } catch (error) {
        const why = String(error?.message ?? JSON.stringify(error)).slice(0, 160);
        report.troubles[why] = (report.troubles[why] ?? 0) + 1;
        report.reconnects += 1;
        if (Date.now() - began > PATIENCE) {
          console.log(JSON.stringify({ ...report, session, wrong: `turn ${turn} was not over in time: ${why}` }));
          process.exit(1);
        }
        link?.close?.();
        link = null;
        await sleep(300);
      }
    }
    report.turns += 1;
  }
  console.log(JSON.stringify({ ...report, session, text: told.agent }));
  process.exit(0);
}
