// Beyond the chat: agents, terminals, artifacts, apps, schedules, extensions. Each is one check; each throws what is wrong.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { idle, send } from './browser.mjs';
import { axe } from './looks.mjs';
import { LoginServer } from './login-server.mjs';
import { ModelServer } from './model-server.mjs';

const script = (calls) => `[[script:${JSON.stringify(calls)}]]`;
const go = (page, hash) => page.goto(`${page.url().split('#')[0]}${hash}`);
/** What an app may not do is tried by it: it says what it could reach. */
const APP = `<!doctype html><html lang="en"><title>Clock</title><h1>Clock</h1><p id="clicks">0 clicks</p><button>Click</button><p id="reach">?</p><script>
  let clicks = 0;
  document.querySelector('button').onclick = () => (document.querySelector('#clicks').textContent = ++clicks + ' clicks');
  const tried = [];
  try { tried.push(parent.document.title); } catch { tried.push('no page'); }
  try { tried.push(document.cookie); } catch { tried.push('no cookie'); }
  try { tried.push(localStorage.length); } catch { tried.push('no storage'); }
  document.querySelector('#reach').textContent = tried.join(', ');
</script></html>`;

export const views = {
  'an agent is chosen, and its modes with it': async ({ device }) => {
    const page = await device();
    const [agent, mode] = ['Agent', 'Mode'].map((name) => page.getByRole('combobox', { name, exact: true }));
    assert.equal(await agent.inputValue(), 'gander');
    await agent.selectOption('coding');
    await page.waitForFunction(() => document.querySelector('select[aria-label="Mode"]')?.value === 'backend');
    const modes = await mode.locator('option').allInnerTexts();
    assert.ok(modes.includes('Architect') && !modes.includes('Assistant'), `modes: ${modes}`);
    await mode.selectOption({ label: 'Architect' });
    await send(page, 'text');
    await idle(page);
    await page.locator('header').getByText(/coding/).waitFor();
    await page.reload();
    await page.waitForFunction(() => document.querySelector('select[aria-label="Agent"]')?.value === 'coding');
    assert.equal(await mode.inputValue(), 'architect');
  },

  'model, effort and policy are chosen, usage and cost are shown': async ({ device, server, pictures }) => {
    const model = await ModelServer.start();
    const file = join(server.home, '.config', 'gander', 'gander.toml');
    try {
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, model.settings, { mode: 0o600 });
      await server.restart();
      const page = await device();
      const choose = (name, value) => page.getByRole('combobox', { name, exact: true }).selectOption(value);
      await choose('Model', 'demo/demo');
      await choose('Model', 'meadow/goose');
      await choose('Thinking', 'high');
      await choose('Permissions', 'read_only');
      await send(page, 'What do geese cost?');
      await page.locator('article.agent').getByText('Geese cost money').waitFor();
      await idle(page);
      await page.getByRole('img', { name: '1,200 of 128,000 tokens used' }).waitFor();
      await page.getByText(/\$1\.40/).waitFor();
      await look(page, pictures, 'usage');
      assert.ok(model.calls.some((call) => call.reasoning_effort === 'high'), 'the model is not told');
      await page.reload();
      await page.getByText(/\$1\.40/).waitFor();
      assert.equal(await page.getByRole('combobox', { name: 'Thinking', exact: true }).inputValue(), 'high');
      page.mayBeCutOff = true;
    } finally {
      rmSync(file);
      await model.stop();
      await server.restart();
    }
  },

  'a command is a terminal: live output, colours, exit code': async ({ device, server, make, pictures }) => {
    const page = await device();
    await page.getByRole('textbox', { name: 'Folder to work in' }).fill(server.work);
    await page.keyboard.press('Enter');
    await page.getByRole('combobox', { name: 'Permissions' }).selectOption('auto');
    const command = 'printf "\\033[32mfirst\\033[0m\\n"; while [ ! -e go-on ]; do sleep 0.05; done; echo second; exit 3';
    await send(page, script([[{ tool: 'shell', args: { command } }], [{ text: 'It failed.' }]]));
    const terminal = page.getByLabel('Terminal', { exact: true });
    // The command still runs: what it has printed so far is there.
    await terminal.locator('.green', { hasText: 'first' }).waitFor();
    await page.locator('.terminal').getByText('running').waitFor();
    assert.ok(!(await terminal.innerText()).includes('second\n'), 'what was not printed yet is shown');
    await look(page, pictures, 'terminal-running');
    make('go-on', '');
    await page.locator('.terminal').getByText('exit code 3').waitFor();
    await idle(page);
    assert.match(await terminal.innerText(), /first\nsecond\s*$/);
    await look(page, pictures, 'terminal');
    // It is the same after a reload, except that nobody watches it run.
    await page.reload();
    await page.locator('.terminal').getByText('exit code 3').waitFor();
  },

  'what a tool saves is an artifact beside the conversation': async ({ device, pictures }) => {
    const page = await device();
    const save = (name, text, media_type) => [{ tool: 'artifact_save', args: { name, text, media_type } }];
    await send(page, script([save('report.md', '# Geese\n\nOne **flock**.', 'text/markdown'), save('report.md', '# Geese\n\nTwo **flocks**.', 'text/markdown'),
      save('clock.html', APP, 'text/html'), [{ text: 'Saved.' }]]));
    await idle(page);
    await page.getByRole('button', { name: 'Artifacts' }).click();
    const panel = page.getByRole('region', { name: 'Artifacts' });
    await panel.getByRole('combobox', { name: 'Artifact' }).selectOption('report.md');
    await panel.locator('strong', { hasText: 'flocks' }).waitFor();
    await panel.getByRole('combobox', { name: 'Version' }).selectOption({ label: 'v1' });
    await panel.getByText('One flock').waitFor();
    await panel.getByRole('combobox', { name: 'Artifact' }).selectOption('clock.html');
    await isContained(page, 'clock.html');
    await look(page, pictures, 'artifacts');
    const saved = page.waitForEvent('download');
    await panel.getByRole('button', { name: 'Download' }).click();
    assert.equal(await (await saved).suggestedFilename(), 'clock.html');
  },

  'an app runs in a frame that reaches nothing': async ({ device, pictures }) => {
    const page = await device();
    await page.getByRole('combobox', { name: 'Mode', exact: true }).selectOption({ label: 'App Maker' });
    await send(page, script([[{ tool: 'app_create', args: { name: 'Clock', description: 'Counts clicks', html: APP } }], [{ text: 'Made.' }]]));
    await idle(page);
    await go(page, '#/apps');
    await look(page, pictures, 'apps');
    await page.getByRole('link', { name: 'Open', exact: true }).click();
    await isContained(page, 'Clock');
    await look(page, pictures, 'app');
    await page.getByRole('link', { name: 'All apps' }).click();
    await page.getByRole('button', { name: 'Delete Clock' }).click();
    await page.getByRole('button', { name: 'Delete for good' }).click();
    await page.getByText('No apps yet').waitFor();
  },

  'a schedule is made, run, paused and removed': async ({ device, pictures }) => {
    const page = await device();
    await go(page, '#/schedules');
    await page.getByRole('button', { name: 'New schedule' }).click();
    const form = page.getByRole('form', { name: 'New schedule' });
    await form.getByRole('button', { name: 'Create' }).click();
    await form.getByRole('alert').waitFor();
    await form.getByRole('textbox', { name: 'Name' }).fill('morning');
    await form.getByRole('textbox', { name: 'Prompt' }).fill('text');
    await form.getByRole('combobox', { name: 'When' }).selectOption({ label: 'Every Monday at 9:00' });
    await look(page, pictures, 'new-schedule');
    await form.getByRole('button', { name: 'Create' }).click();
    await page.getByText('Every Monday at 9:00').waitFor();
    await page.getByText(/next: .*\d/).waitFor();
    await page.getByRole('button', { name: 'Run now' }).click();
    await page.getByText(/Last: .*\d.* · next/).waitFor();
    await page.getByRole('button', { name: 'Pause' }).click();
    await page.getByText('next: paused').waitFor();
    await page.getByRole('button', { name: 'Go on' }).click();
    await page.getByRole('button', { name: 'Pause' }).waitFor();
    await look(page, pictures, 'schedule');
    await page.getByRole('button', { name: 'Remove morning' }).click();
    await page.getByRole('button', { name: /^Remove, its sessions/ }).click();
    await page.getByText('Nothing runs by the clock yet').waitFor();
  },

  'the audit trail says what ran and is exported': async ({ device, pictures }) => {
    const page = await device();
    await send(page, script([[{ tool: 'list', args: { path: '.' } }], [{ text: 'Listed.' }]]));
    await idle(page);
    await go(page, '#/audit');
    await page.getByText(/Asked by owner \(acp\) · allowed unasked/).first().waitFor();
    await look(page, pictures, 'audit');
    const saved = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Export' }).click();
    assert.equal(await (await saved).suggestedFilename(), 'audit.jsonl');
    await page.getByRole('textbox', { name: 'Principal' }).fill('nobody');
    await page.getByRole('button', { name: 'Show' }).click();
    await page.getByText('Nothing was done.').waitFor();
  },

  'the documentation and every route are read in the page': async ({ device, server, pictures }) => {
    const page = await device();
    await page.goto(`${server.base}/docs`);
    await page.getByRole('article', { name: 'Contents' }).getByRole('link').first().waitFor();
    await page.getByRole('navigation', { name: 'Documentation' }).getByRole('link', { name: 'ACP', exact: true }).click();
    await page.getByRole('heading', { name: 'Agent Client Protocol (ACP)' }).waitFor();
    await look(page, pictures, 'docs');
    await page.getByRole('article').getByRole('link', { name: 'editors.md' }).first().click();
    await page.getByRole('heading', { name: 'VS Code' }).first().waitFor();
    await page.goto(`${server.base}/docs/api`);
    await page.getByText('/gander/tickets').click();
    await page.getByText('"expiresInSeconds"').first().waitFor();
    await page.getByText('https://agentclientprotocol.com').waitFor();
    await look(page, pictures, 'api');
    const saved = page.waitForEvent('download');
    await page.getByRole('button', { name: 'OpenAPI' }).click();
    assert.equal(await (await saved).suggestedFilename(), 'openapi.json');
  },

  'the licences of all that the page contains are one click away': async ({ device }) => {
    const page = await device();
    await page.keyboard.press('Tab');
    await page.getByRole('button', { name: 'Keys' }).click();
    await page.getByRole('link', { name: 'Licences' }).click();
    for (const name of ['svelte', 'markdown-it', 'shiki', 'streaming-markdown']) await page.getByRole('heading', { name }).first().waitFor();
  },

  'an extension that needs a login is logged in to': async ({ device, server, pictures }) => {
    const login = await LoginServer.start();
    try {
      // This process serves the login itself, and waits for the command: it cannot answer meanwhile.
      execFileSync(server.binary, ['extensions', 'add', 'meadow', '--no-start', '--url', login.url], { env: server.env });
      const page = await device();
      await send(page, 'text');
      await idle(page);
      await go(page, '#/extensions');
      const meadow = page.getByRole('article', { name: 'meadow' });
      await meadow.getByText('needs a login').waitFor();
      await look(page, pictures, 'extension-login');
      await meadow.getByRole('button', { name: 'Log in' }).click();
      const opened = page.context().waitForEvent('page');
      await meadow.getByRole('link').click();
      await (await opened).getByRole('button', { name: 'Approve' }).click();
      await meadow.getByText('ready · 1 tool').waitFor();
      await look(page, pictures, 'extension-ready');
    } finally {
      execFileSync(server.binary, ['extensions', 'remove', 'meadow'], { env: server.env });
      await login.stop();
    }
  },
};

/** A picture to look at, and what axe says of it. */
async function look(page, pictures, name) {
  await page.screenshot({ path: join(pictures, `${name}.png`) });
  assert.deepEqual(await axe(page), [], name);
}

/** What runs in the frame works, and reaches neither the page nor the server. */
async function isContained(page, title) {
  const frame = page.frameLocator(`iframe[title="${title}"]`);
  await frame.getByRole('button', { name: 'Click' }).click();
  await frame.getByText('1 clicks').waitFor();
  assert.equal(await frame.locator('#reach').innerText(), 'no page, no cookie, no storage');
}
