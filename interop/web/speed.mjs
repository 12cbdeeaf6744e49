// Whether long answers and long sessions stay smooth: frame times beside a bare page that only appends the same text.

import assert from 'node:assert/strict';

import { send } from './browser.mjs';
import { call } from './scenarios.mjs';

const script = (calls) => `[[script:${JSON.stringify(calls)}]]`;
/** Five thousand deltas of a text as models write it. */
const PIECE = 'Geese **graze** on the meadow; see `flock.rs` for more. ';
const [DELTAS, IN_PARAGRAPH] = [5000, 40];
const MESSAGES = 2000;

/** Frame times until `done` holds, in milliseconds. */
function frames(page, done) {
  return page.evaluate(async (condition) => {
    const over = new Function(`return (${condition})()`);
    const times = [];
    let last = performance.now();
    await new Promise((resolve) => {
      const tick = (now) => {
        times.push(now - last);
        last = now;
        if (over()) resolve();
        else requestAnimationFrame(tick);
      };
      requestAnimationFrame(tick);
    });
    return times.slice(1);
  }, done.toString());
}

/** Counts the main thread's own time from now on: other programs on the machine do not count. */
async function meter(page) {
  const debug = await page.context().newCDPSession(page);
  await debug.send('Performance.enable', { timeDomain: 'threadTicks' });
  const busy = async () => {
    const { metrics } = await debug.send('Performance.getMetrics');
    return metrics.find(({ name }) => name === 'TaskDuration').value * 1000;
  };
  const before = await busy();
  return async () => `${((await busy()) - before).toFixed(0)} ms of the main thread`;
}

function figures(times) {
  const sorted = times.toSorted((a, b) => a - b);
  const at = (share) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]?.toFixed(1);
  return `frames ${times.length}, median ${at(0.5)} ms, p95 ${at(0.95)} ms, longest ${at(1)} ms`;
}

export const speed = {
  'five thousand deltas in one answer': async ({ device }) => {
    const page = await device({ bypassCSP: true });
    const ourTime = await meter(page);
    await send(page, script([[{ text: `${PIECE.repeat(IN_PARAGRAPH)}\n\n`, chunks: IN_PARAGRAPH, repeat: DELTAS / IN_PARAGRAPH, delay_ms: 1 }]]));
    await page.locator('article.agent').waitFor();
    const ours = await frames(page, () => document.querySelector('button[aria-label="Stop"]') === null);
    const spent = await ourTime();
    // All of it: what is far from the view is not laid out, and has no inner text.
    const text = await page.locator('article.agent').textContent();
    assert.equal(text.split('graze').length - 1, DELTAS);
    const bare = await device({ bypassCSP: true });
    await bare.setContent('<body></body>');
    const theirTime = await meter(bare);
    await bare.evaluate(([piece, count, size]) => {
      globalThis.done = false;
      let told = 0;
      // As much in a frame as comes in one: what the page does too.
      const tick = () => {
        const paragraph = document.createElement('p');
        document.body.append(paragraph);
        for (let at = 0; at < size; at += 1) paragraph.append(piece);
        told += size;
        scrollTo(0, document.body.scrollHeight);
        globalThis.done = told >= count;
        if (!globalThis.done) requestAnimationFrame(tick);
      };
      requestAnimationFrame(tick);
    }, [PIECE, DELTAS, IN_PARAGRAPH]);
    const theirs = await frames(bare, () => globalThis.done);
    console.log(`        the page:  ${figures(ours)}, ${spent}\n        bare page: ${figures(theirs)}, ${await theirTime()}`);
  },

  'a session of two thousand messages': async ({ device, server }) => {
    const id = await longSession(server, MESSAGES);
    const page = await device({ bypassCSP: true });
    const time = await meter(page);
    const before = server.processorTime;
    const opened = await open(page, id, `Answer ${MESSAGES - 1} `);
    // Other programs on the machine do not count here.
    const spent = `${await time()} and ${server.processorTime - before} ms of the server`;
    const rows = await page.locator('[data-id]').count();
    assert.ok(rows < 120, `rows in the document: ${rows}`);
    const scrolled = page.evaluate(async () => {
      const scroller = document.querySelector('[role="log"]');
      for (let step = 0; step < 120; step += 1) {
        scroller.scrollTop -= 400;
        await new Promise(requestAnimationFrame);
      }
      globalThis.done = true;
    });
    const times = await frames(page, () => globalThis.done === true);
    await scrolled;
    const heap = await page.evaluate(() => performance.memory?.usedJSHeapSize ?? 0);
    const again = await open(await device({ bypassCSP: true }), id, `Answer ${MESSAGES - 1} `);
    const bare = await device({ bypassCSP: true });
    await bare.setContent('<body></body>');
    const theirs = await bare.evaluate((texts) => {
      const began = performance.now();
      for (const text of texts) document.body.appendChild(document.createElement('p')).append(text);
      scrollTo(0, document.body.scrollHeight);
      return new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => resolve(performance.now() - began))));
    }, Array.from({ length: MESSAGES }, (_, at) => said(at)));
    console.log(`        opened in ${opened.toFixed(0)} ms, of these ${spent}, ${rows} rows in the document, heap ${(heap / 1e6).toFixed(0)} MB`);
    console.log(`        opened again in ${again.toFixed(0)} ms; a bare page that only appends the same texts: ${theirs.toFixed(0)} ms`);
    console.log(`        while scrolling: ${figures(times)}`);
    assert.deepEqual(await everything(page), Array.from({ length: MESSAGES }, (_, at) => `${at % 2 === 0 ? 'Question' : 'Answer'} ${at}`));
  },

  'memory stays flat after a hundred turns': async ({ device }) => {
    const page = await device({ bypassCSP: true });
    const debug = await page.context().newCDPSession(page);
    await debug.send('Performance.enable');
    const measured = async () => {
      // Twice: what the first one frees may have held more.
      for (let times = 0; times < 2; times += 1) await debug.send('HeapProfiler.collectGarbage');
      const { metrics } = await debug.send('Performance.getMetrics');
      const of = (wanted) => metrics.find(({ name }) => name === wanted).value;
      return { heap: of('JSHeapUsedSize'), nodes: of('Nodes'), listeners: of('JSEventListeners') };
    };
    const seen = {};
    for (let turn = 1; turn <= 100; turn += 1) {
      await send(page, script([[{ text: `Turn ${turn}: ${PIECE.repeat(10)}` }]]));
      await page.getByText(`Turn ${turn}:`).last().waitFor();
      await page.getByRole('button', { name: 'Send', exact: true }).waitFor();
      if (turn === 20 || turn === 100) seen[turn] = await measured();
    }
    const megabytes = (bytes) => `${(bytes / 1e6).toFixed(1)} MB`;
    for (const [turn, { heap, nodes, listeners }] of Object.entries(seen)) {
      console.log(`        after turn ${turn}: heap ${megabytes(heap)}, ${nodes} nodes, ${listeners} listeners`);
    }
    // The texts themselves stay, and are about 100 kB: everything else is let go.
    assert.ok(seen[100].heap - seen[20].heap < 2e6, 'the heap grows with the turns');
    assert.ok(seen[100].nodes < seen[20].nodes * 1.5, 'the document grows with the turns');
  },
};

/** Opens a session in a page that is ready; gives the milliseconds until the end of it is painted. */
function open(page, session, last) {
  return page.evaluate(([id, text]) => new Promise((resolve) => {
    const began = performance.now();
    const look = () => {
      const found = [...document.querySelectorAll('article.agent')].some((article) => article.textContent.includes(text));
      if (found) requestAnimationFrame(() => resolve(performance.now() - began));
      else requestAnimationFrame(look);
    };
    location.hash = `#/session/${id}`;
    look();
  }), [session, last]);
}

/** The beginnings of all messages, read by scrolling up until there is nothing before them, then down. */
function everything(page) {
  return page.evaluate(async () => {
    const scroller = document.querySelector('[role="log"]');
    const frame = () => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
    const found = new Map();
    const note = () => {
      for (const row of document.querySelectorAll('[data-id]')) found.set(Number(row.dataset.id.slice(1)), /(Question|Answer) \d+/.exec(row.textContent)?.[0]);
    };
    for (let still = 0; still < 60; still += 1) {
      const before = found.size;
      scroller.scrollTop = 0;
      await frame();
      note();
      if (document.querySelector('.earlier') || found.size > before) still = 0;
    }
    for (let last = -1; scroller.scrollTop !== last; ) {
      last = scroller.scrollTop;
      scroller.scrollTop += scroller.clientHeight / 2;
      await frame();
      note();
    }
    return [...found].toSorted(([a], [b]) => a - b).map(([, text]) => text);
  });
}

const said = (at) => (at % 2 === 0 ? `Question ${at}` : `Answer ${at} with **bold** and \`code\`.\n\n- one\n- two\n`);

/** A session with so many messages, brought in as goose exports one. */
async function longSession(server, count) {
  const conversation = Array.from({ length: count }, (_, at) => ({
    id: `m${at}`, role: at % 2 === 0 ? 'user' : 'assistant', created: 1_760_000_000 + at, content: [{ type: 'text', text: said(at) }],
    metadata: { userVisible: true, agentVisible: true },
  }));
  const session = { id: 'long', name: 'Two thousand messages', description: 'Two thousand messages', working_dir: server.work, conversation };
  return (await call(server, '_goose/unstable/session/import', { data: JSON.stringify(session) })).sessionId;
}
