// Plays a short visit to the page with the demo model, and writes what was seen as a moving PNG.
// Usage: node page.mjs BINARY CHROMIUM FILE

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { Browser, idle, send } from '../../interop/web/browser.mjs';
import { Server } from '../../interop/web/server.mjs';
import { movingPng } from './moving-png.mjs';

const SIZE = { width: 1000, height: 640 };
const [binary, chromium, file] = process.argv.slice(2);
const frames = [];
const folder = mkdtempSync(join(tmpdir(), 'meadow-'));
const server = await Server.start(binary);
const browser = await Browser.start(server, chromium);
try {
  await play(await browser.device({ viewport: SIZE, reducedMotion: 'reduce' }));
} finally {
  await browser.stop();
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
}
const moving = movingPng(frames);
writeFileSync(file, moving);
console.log(`${file}: ${frames.length} pictures, ${moving.length} bytes`);

async function play(page) {
  const shoot = async (seconds) => frames.push({ png: await page.screenshot(), seconds });
  const box = page.getByRole('combobox', { name: 'Message' });
  const type = async (text) => {
    await box.fill(text);
    await shoot(0.7);
    await page.keyboard.press('Enter');
  };
  // A sessions list that is not empty.
  await send(page, '/title Feed the geese');
  await send(page, 'plan');
  await idle(page);
  await page.keyboard.press('Alt+n');
  await page.getByText('What shall we do?').waitFor();
  await page.getByRole('textbox', { name: 'Folder to work in' }).fill(folder);
  await page.keyboard.press('Enter');
  await shoot(1.2);
  await type('text');
  await page.locator('article.agent').waitFor();
  await shoot(0.4);
  await idle(page);
  await page.locator('article.agent .tok-keyword').first().waitFor();
  await shoot(1.4);
  await type('edit');
  const asked = page.getByRole('group', { name: /Permission request/ });
  for (let question = 0; question < 2; question += 1) {
    await asked.waitFor();
    await shoot(1.6);
    await asked.getByRole('button', { name: /^Allow/ }).first().click();
    await asked.waitFor({ state: 'detached' });
  }
  await idle(page);
  await page.getByRole('button', { name: 'Side by side' }).last().click();
  await shoot(2);
  await page.getByRole('link', { name: 'Inspect this session' }).click();
  const entries = page.getByRole('list', { name: 'Entries of the log' });
  await entries.getByText('tool_done').last().click();
  await shoot(2.6);
}
