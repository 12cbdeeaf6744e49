// Whether long answers and long sessions stay smooth: frame times beside a bare page that only appends the same text.

import assert from 'node:assert/strict';

import { idle, send, sessionId } from './browser.mjs';

const script = (calls) => `[[script:${JSON.stringify(calls)}]]`;
/** Five thousand deltas of a text as models write it. */
const PIECE = 'Geese **graze** on the meadow; see `flock.rs` for more. ';
const DELTAS = 5000;

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

function figures(times) {
  const sorted = times.toSorted((a, b) => a - b);
  const at = (share) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]?.toFixed(1);
  return `frames ${times.length}, median ${at(0.5)} ms, p95 ${at(0.95)} ms, longest ${at(1)} ms`;
}

export const speed = {
  'five thousand deltas in one answer': async ({ device }) => {
    const page = await device({ bypassCSP: true });
    await send(page, script([[{ text: PIECE, repeat: DELTAS, delay_ms: 1 }]]));
    await page.locator('article.agent').waitFor();
    const ours = await frames(page, () => document.querySelector('button[aria-label="Stop"]') === null);
    const text = await page.locator('article.agent').innerText();
    assert.equal(text.split('graze').length - 1, DELTAS);
    const bare = await device({ bypassCSP: true });
    await bare.setContent('<p id="text"></p>');
    await bare.evaluate(([piece, count]) => {
      globalThis.done = false;
      let told = 0;
      const timer = setInterval(() => {
        document.getElementById('text').append(piece);
        told += 1;
        scrollTo(0, document.body.scrollHeight);
        if (told === count) clearInterval(timer), (globalThis.done = true);
      }, 1);
    }, [PIECE, DELTAS]);
    const theirs = await frames(bare, () => globalThis.done);
    console.log(`        the page:  ${figures(ours)}\n        bare page: ${figures(theirs)}`);
  },

  'a session of two thousand messages': async ({ device }) => {
    const page = await device({ bypassCSP: true });
    // One turn of many model calls: each a message and a tool call.
    await send(page, 'text');
    await idle(page);
    const id = sessionId(page);
    await fill(page, id, 1000);
    await page.goto('about:blank');
    const began = Date.now();
    await page.goBack();
    await page.locator('article.agent').last().waitFor();
    const opened = Date.now() - began;
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
    console.log(`        opened with the page itself in ${opened} ms, ${rows} rows in the document, heap ${(heap / 1e6).toFixed(0)} MB`);
    console.log(`        while scrolling: ${figures(times)}`);
  },
};

/** Makes the session long: prompts one after the other, over the page's own connection to the server. */
async function fill(page, session, turns) {
  await page.evaluate(async ([sessionId, count]) => {
    const address = new URL('acp', location.href.split('#')[0].replace(/^http/, 'ws'));
    const socket = new WebSocket(address);
    const waiting = new Map();
    socket.onmessage = ({ data }) => {
      const message = JSON.parse(data);
      waiting.get(message.id)?.(message);
    };
    await new Promise((resolve) => (socket.onopen = resolve));
    let next = 0;
    const ask = (method, params) => new Promise((resolve) => {
      next += 1;
      waiting.set(next, resolve);
      socket.send(JSON.stringify({ jsonrpc: '2.0', id: next, method, params }));
    });
    await ask('initialize', { protocolVersion: 1, clientCapabilities: {} });
    await ask('session/resume', { sessionId, mcpServers: [] });
    for (let turn = 0; turn < count; turn += 1) {
      await ask('session/prompt', { sessionId, prompt: [{ type: 'text', text: `[[script:[[{"text":"Answer ${turn} with **bold** and \`code\`.\\n\\n- one\\n- two\\n"}]]]]` }] });
    }
    socket.close();
  }, [session, turns]);
}
