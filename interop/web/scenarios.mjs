// What a person does with the page. Each is one check; each throws what is wrong.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { join } from 'node:path';

import { answers, idle, send, sessionId } from './browser.mjs';

const LINE = 'Honk honk, said the gander, and went on for another line.';
/** One pixel. */
const PICTURE = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const script = (calls) => `[[script:${JSON.stringify(calls)}]]`;
const lines = (texts) => texts.join('\n').split(LINE).length - 1;

export const scenarios = {
  'first answer': async ({ device }) => {
    const page = await device();
    await send(page, 'text');
    await page.locator('article.agent').getByText('scripted').waitFor();
    await idle(page);
    await page.locator('article.agent .tok-keyword').first().waitFor();
    assert.equal(await page.locator('article.user').innerText(), 'text');
    await page.locator('nav [aria-current="page"]').waitFor();
  },

  'code is copied': async ({ device }) => {
    const page = await device({ permissions: ['clipboard-read', 'clipboard-write'] });
    await send(page, 'text');
    await idle(page);
    await page.getByRole('button', { name: 'Copy code' }).click();
    await page.getByText('Copied').first().waitFor();
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), 'fn main() { println!("honk"); }\n');
  },

  'tool calls': async ({ device }) => {
    const page = await device();
    await send(page, 'tools');
    await idle(page);
    assert.equal(await page.locator('section.card.completed').count(), 2);
    await page.getByRole('button', { name: /List/ }).first().click();
    await page.locator('section.card pre').first().waitFor();
  },

  'a thought is folded': async ({ device }) => {
    const page = await device();
    await send(page, 'thought');
    await idle(page);
    await page.locator('summary', { hasText: 'Thought' }).click();
    await page.getByText('a plain sentence will do').last().waitFor();
  },

  'a permission request is answered in one page and withdrawn in another': async ({ device }) => {
    const [laptop, phone] = [await device(), await device({ viewport: { width: 380, height: 800 } })];
    await phone.goto(`${phone.url().split('#')[0]}#/inbox`);
    await send(laptop, 'ask');
    const asked = phone.getByRole('group', { name: /Permission request/ });
    await asked.waitFor();
    await laptop.getByRole('group', { name: /Permission request/ }).getByRole('button', { name: /^Allow/ }).first().click();
    await asked.waitFor({ state: 'detached' });
    await idle(laptop);
    await laptop.getByText('exit code 0').or(laptop.locator('section.card.completed')).first().waitFor();
  },

  'a permission request is answered in the inbox': async ({ device }) => {
    const [laptop, phone] = [await device(), await device({ viewport: { width: 380, height: 800 } })];
    await send(laptop, 'ask');
    await laptop.getByRole('group', { name: /Permission request/ }).waitFor();
    await phone.goto(`${phone.url().split('#')[0]}#/inbox`);
    await phone.getByRole('group', { name: /Permission request/ }).getByRole('button', { name: /Reject|Deny|No/ }).first().click();
    await idle(laptop);
    await laptop.locator('section.card.failed').waitFor();
  },

  'a reload in mid-stream loses and doubles nothing': async ({ device }) => {
    const page = await device();
    await send(page, 'long');
    await page.waitForFunction((line) => (document.querySelector('article.agent')?.textContent ?? '').split(line).length > 50, LINE);
    const before = lines(await answers(page));
    await page.reload();
    await page.locator('article.agent').waitFor();
    await idle(page);
    assert.ok(before < 600, 'the turn was over before the reload');
    assert.equal(lines(await answers(page)), 600);
  },

  'a server that is killed in mid-stream': async ({ device, server }) => {
    const page = await device();
    page.mayBeCutOff = true;
    await send(page, 'long');
    await page.waitForFunction((line) => (document.querySelector('article.agent')?.textContent ?? '').split(line).length > 50, LINE);
    await server.kill();
    await page.getByText('Connection lost').waitFor();
    await server.run();
    await page.getByText('Connection lost').waitFor({ state: 'detached', timeout: 30_000 });
    await idle(page);
    // The broken message stays, and the turn was picked up: its answer is whole.
    const told = await answers(page);
    assert.equal(lines([told.at(-1) ?? '']), 600);
    await page.reload();
    await page.locator('article.agent').last().waitFor();
    await idle(page);
    assert.deepEqual(await answers(page), told);
  },

  'a picture is pasted': async ({ device }) => {
    const page = await device();
    await page.getByRole('combobox', { name: 'Message' }).focus();
    await page.evaluate((data) => {
      const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
      const clipboardData = new DataTransfer();
      clipboardData.items.add(new File([bytes], 'dot.png', { type: 'image/png' }));
      document.activeElement.dispatchEvent(new ClipboardEvent('paste', { clipboardData, bubbles: true, cancelable: true }));
    }, PICTURE);
    await page.getByRole('img', { name: 'Attachment 1' }).waitFor();
    await send(page, 'image');
    await idle(page);
    await page.locator('article.user img').waitFor();
    await page.locator('article.agent img').waitFor();
    await page.reload();
    await page.locator('article.user img').waitFor();
  },

  'a picture is dropped': async ({ device }) => {
    const page = await device();
    await page.getByRole('combobox', { name: 'Message' }).evaluate((box, data) => {
      const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
      const dataTransfer = new DataTransfer();
      dataTransfer.items.add(new File([bytes], 'dot.png', { type: 'image/png' }));
      for (const type of ['dragover', 'drop']) box.dispatchEvent(new DragEvent(type, { dataTransfer, bubbles: true, cancelable: true }));
    }, PICTURE);
    await page.getByRole('img', { name: 'Attachment 1' }).waitFor();
    await page.getByRole('button', { name: 'Remove attachment 1' }).waitFor();
    await send(page, 'text');
    await idle(page);
    await page.locator('article.user img').waitFor();
  },

  'a plan is ticked off': async ({ device }) => {
    const page = await device();
    await send(page, 'plan');
    await idle(page);
    await page.getByText('2 of 2', { exact: true }).waitFor();
  },

  'a plan is edited and approved': async ({ device }) => {
    const page = await device();
    const items = [{ text: 'look around' }, { text: 'write it down' }];
    await page.getByRole('combobox', { name: 'Mode', exact: true }).selectOption({ label: 'Planner' });
    await send(page, script([[{ tool: 'propose_plan', args: { items } }], [{ results: true }]]));
    await page.getByRole('textbox', { name: 'Step 2' }).fill('write it down twice');
    await page.getByRole('button', { name: /Approve/ }).click();
    await idle(page);
    await page.getByText('write it down twice').first().waitFor();
  },

  'a form is filled in by keyboard alone': async ({ device }) => {
    const page = await device();
    await page.keyboard.press('Control+k');
    assert.equal(await page.evaluate(() => document.activeElement.type), 'search');
    await page.keyboard.press('Alt+n');
    await page.getByRole('combobox', { name: 'Message' }).focus();
    await page.keyboard.type('/ti');
    await page.getByRole('option', { name: /title/ }).waitFor();
    await page.keyboard.press('Tab');
    await page.keyboard.type('By keyboard');
    await page.keyboard.press('Enter');
    await page.locator('h1', { hasText: 'By keyboard' }).waitFor();
  },

  'files are completed': async ({ device, server, make }) => {
    make('notes/meadow.md', 'grass');
    const page = await device();
    await page.getByRole('textbox', { name: 'Folder to work in' }).fill(server.work);
    await page.keyboard.press('Enter');
    const box = page.getByRole('combobox', { name: 'Message' });
    await box.click();
    await box.pressSequentially('read @mead');
    await page.getByRole('option', { name: /meadow/ }).waitFor();
    await page.keyboard.press('Enter');
    assert.equal(await box.inputValue(), 'read @notes/meadow.md ');
    await page.keyboard.press('Enter');
    await page.locator('article.user').getByText('meadow.md').first().waitFor();
    await idle(page);
  },

  'a turn is stopped': async ({ device }) => {
    const page = await device();
    await send(page, 'long');
    await page.locator('article.agent').waitFor();
    await page.keyboard.press('Escape');
    await idle(page);
    const told = lines(await answers(page));
    assert.ok(told < 600, `lines: ${told}`);
  },

  'a message is queued and another said into the turn': async ({ device }) => {
    const page = await device();
    await send(page, 'long');
    await page.locator('article.agent').waitFor();
    const box = page.getByRole('combobox', { name: 'Message' });
    await box.fill('thought');
    await page.keyboard.press('Control+Enter');
    await page.getByRole('list', { name: 'Queued messages' }).waitFor();
    await box.fill('');
    await page.keyboard.press('Escape');
    await page.locator('summary', { hasText: 'Thought' }).waitFor();
    await idle(page);
  },

  'sessions are named, found, forked, archived, exported and deleted': async ({ device }) => {
    const page = await device();
    await send(page, 'text');
    await idle(page);
    const id = sessionId(page);
    const row = page.locator('nav li', { has: page.locator(`a[href="#/session/${id}"]`) });
    const act = async (name) => {
      await row.hover();
      if (!(await row.getByRole('button', { name, exact: true }).isVisible())) await row.getByRole('button', { name: /^Actions/ }).click();
      await row.getByRole('button', { name, exact: true }).click();
    };
    await act('Rename');
    await page.getByRole('textbox', { name: 'Title' }).fill('The meadow of geese');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'The meadow of geese' }).waitFor();
    await page.getByRole('searchbox', { name: 'Search sessions' }).fill('meadow geese');
    await page.waitForFunction(() => document.querySelectorAll('nav .sessions > li').length === 1);
    await page.getByRole('searchbox', { name: 'Search sessions' }).fill('no such words');
    await page.getByText('No title has these words').waitFor();
    await page.getByRole('searchbox', { name: 'Search sessions' }).fill('');
    await row.waitFor();
    const saved = page.waitForEvent('download');
    await act('Export');
    assert.match(await (await saved).suggestedFilename(), /meadow/);
    await act('Fork');
    await page.waitForFunction((old) => !location.hash.includes(old), id);
    await page.locator('article.agent').waitFor();
    await act('Archive');
    await row.waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Archive', exact: true }).click();
    await row.waitFor();
    await act('Delete');
    await row.getByRole('button', { name: 'Delete', exact: true }).click();
    await row.waitFor({ state: 'detached' });
  },

  'a recipe with parameters': async ({ device, server }) => {
    const recipe = {
      version: '1.0.0', title: 'Greet', description: 'Greets somebody', prompt: 'text for {{ name }}',
      parameters: [{ key: 'name', input_type: 'string', requirement: 'required', description: 'Whom' }],
    };
    await call(server, '_goose/unstable/recipes/save', { recipe });
    const page = await device();
    await page.goto(`${page.url().split('#')[0]}#/recipes`);
    await page.getByRole('button', { name: /Greet/ }).click();
    await page.getByRole('button', { name: 'Start' }).click();
    await page.getByText('name is needed').waitFor();
    await page.getByRole('textbox', { name: /name/ }).fill('Martin');
    await page.getByRole('button', { name: 'Start' }).click();
    await page.locator('article.user', { hasText: 'text for Martin' }).waitFor();
    await idle(page);
  },

  'a session begun in an editor goes on in the page': async ({ device, server }) => {
    const page = await device();
    const id = await editor(server, 'text');
    await page.goto(`${page.url().split('#')[0]}#/session/${id}`);
    await page.locator('article.agent').waitFor();
    await send(page, 'thought');
    await page.locator('summary', { hasText: 'Thought' }).waitFor();
    await idle(page);
    assert.equal(await page.locator('article.user').count(), 2);
  },

  'the inspector shows an entry as every protocol tells it': async ({ device, pictures }) => {
    const page = await device();
    await send(page, 'tools');
    await idle(page);
    await page.getByRole('link', { name: 'Inspect this session' }).click();
    const entries = page.getByRole('list', { name: 'Entries of the log' });
    await entries.getByText('tool_done').last().click();
    for (const name of ['acp', 'acp_rest', 'adk', 'goose', 'a2a']) {
      // A2A tells of the task, not of its tools.
      if (name === 'a2a') await entries.getByText('run_ended').click();
      await page.getByRole('button', { name: new RegExp(`^${name} [1-9]`) }).click();
      await page.getByLabel(`Told by ${name}`, { exact: true }).first().waitFor();
    }
    assert.match(await entries.locator('.time').last().innerText(), /^\d+\.\d\ds$/);
    await page.screenshot({ path: join(pictures, 'inspector-entry.png') });
    const saved = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Save as a test vector' }).click();
    assert.equal(await (await saved).suggestedFilename(), 'log.jsonl');
    await page.getByRole('combobox', { name: 'Speed' }).selectOption('100');
    await page.getByRole('button', { name: 'Play' }).click();
    await page.getByRole('button', { name: 'Play' }).waitFor();
    assert.equal(await entries.getByText('run_ended').count(), 1);
  },

  'the inspector goes on as the log does, with commits and latencies': async ({ device, pictures }) => {
    const [page, other] = [await device(), await device()];
    await send(other, 'text');
    await idle(other);
    await page.goto(`${page.url().split('#')[0]}#/inspector/${sessionId(other)}`);
    const ended = page.getByRole('list', { name: 'Entries of the log' }).getByText('run_ended');
    await ended.waitFor();
    await send(other, 'tools');
    await page.waitForFunction(() => [...document.querySelectorAll('ol .kind')].filter(({ textContent }) => textContent === 'run_ended').length === 2);
    for (const what of ['run', 'first response of the model', 'tool']) await page.getByRole('cell', { name: what, exact: true }).first().waitFor();
    await page.getByText(/\d+ commits seen, \d+ of them synced/).waitFor();
    await page.screenshot({ path: join(pictures, 'inspector-latencies.png') });
    await ended.last().click();
    await page.getByText(/^synced in \d+\.\d ms/).waitFor();
  },

  'an edit is shown as a difference': async ({ device }) => {
    const page = await device();
    await send(page, 'edit');
    for (let turn = 0; turn < 2; turn += 1) {
      const asked = page.getByRole('group', { name: /Permission request/ });
      await asked.getByRole('button', { name: /^Allow/ }).first().click();
    }
    await idle(page);
    await page.getByRole('region', { name: /Changes of .*gander-demo.txt/ }).last().waitFor();
    await page.getByRole('button', { name: 'Side by side' }).last().click();
    await page.locator('table.split td.added', { hasText: 'hello from gander' }).waitFor();
  },
};

/** One call over a WebSocket of its own, as the owner. */
export async function call(server, method, params) {
  const answer = await fetch(`${server.base}/acp`, {
    method: 'POST', headers: { 'content-type': 'application/json', authorization: `Bearer ${server.token}` },
    body: JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'initialize', params: { protocolVersion: 1, clientCapabilities: {} } }),
  });
  const connection = answer.headers.get('acp-connection-id');
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${server.token}`, 'acp-connection-id': connection };
  const stream = await fetch(`${server.base}/acp`, { headers: { ...headers, accept: 'text/event-stream' } });
  await fetch(`${server.base}/acp`, { method: 'POST', headers, body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }) });
  let text = '';
  for await (const piece of stream.body.pipeThrough(new TextDecoderStream())) {
    text += piece;
    const found = text.split('\n').filter((line) => line.startsWith('data:')).map((line) => JSON.parse(line.slice(5))).find((message) => message.id === 1);
    if (!found) continue;
    await fetch(`${server.base}/acp`, { method: 'DELETE', headers });
    if (found.error) throw new Error(`${method}: ${found.error.message}`);
    return found.result;
  }
  throw new Error(`${method}: no answer`);
}

/** What an editor does: starts `gander acp`, makes a session, prompts, and goes. */
async function editor(server, prompt) {
  const child = spawn(server.binary, ['acp'], { env: server.env, cwd: server.work, stdio: ['pipe', 'pipe', 'ignore'] });
  const waiting = new Map();
  createInterface({ input: child.stdout }).on('line', (line) => {
    const message = JSON.parse(line);
    waiting.get(message.id)?.(message.result ?? message.error);
  });
  let next = 0;
  const ask = (method, params) => new Promise((resolve) => {
    next += 1;
    waiting.set(next, resolve);
    child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id: next, method, params })}\n`);
  });
  await ask('initialize', { protocolVersion: 1, clientCapabilities: {} });
  const { sessionId: id } = await ask('session/new', { cwd: server.work, mcpServers: [] });
  await ask('session/prompt', { sessionId: id, prompt: [{ type: 'text', text: prompt }] });
  child.stdin.end();
  return id;
}
