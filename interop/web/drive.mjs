// Drives the page of a real server with a real browser. Usage: node drive.mjs BINARY CHROMIUM FOLDER-FOR-PICTURES [NAME…]
// With PAGE=web/dist, the files of that build are shown in place of those in the binary: for work on the page alone.

import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { Browser } from './browser.mjs';
import { clients } from './clients.mjs';
import { looks } from './looks.mjs';
import { scenarios } from './scenarios.mjs';
import { Server } from './server.mjs';
import { speed } from './speed.mjs';
import { views } from './views.mjs';

const [binary, chromium, pictures, ...names] = process.argv.slice(2);
const counts = { passed: 0, failed: 0 };

const server = await Server.start(binary);
const browser = await Browser.start(server, chromium);
const make = (name, text) => {
  const path = join(server.work, name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
};

async function check(name, run) {
  if (names.length > 0 && !names.some((wanted) => name.includes(wanted))) return;
  const pages = [];
  const device = async (options) => {
    const page = await browser.device(options);
    pages.push(page);
    return page;
  };
  const [before, started] = [browser.problems.length, Date.now()];
  try {
    await run({ device, server, make, pictures });
    const problems = browser.problems.slice(before);
    if (problems.length > 0) throw new Error(`the page did what it must not:\n  ${problems.join('\n  ')}`);
    counts.passed += 1;
    console.log(`ok      ${name} (${((Date.now() - started) / 1000).toFixed(1)} s)`);
  } catch (error) {
    counts.failed += 1;
    console.log(`FAILED  ${name}\n  ${String(error.stack ?? error).split('\n').slice(0, 12).join('\n  ')}`);
    await pages.at(-1)?.screenshot({ path: join(pictures, `failed-${name.replaceAll(/\W+/g, '-')}.png`) }).catch(() => {});
  } finally {
    for (const page of pages) await page.context().close();
    // A check that failed half-way may have left it down.
    if (server.process.exitCode !== null || server.process.signalCode !== null) await server.run();
  }
}

try {
  mkdirSync(pictures, { recursive: true });
  for (const [name, run] of Object.entries({ ...scenarios, ...clients, ...views, ...looks, ...speed })) await check(name, run);
} finally {
  await browser.stop();
  await server.stop();
}
console.log(`${counts.passed} passed, ${counts.failed} failed, 0 skipped`);
process.exit(counts.failed > 0 ? 1 : 0);
