// How the page looks and whether everybody can use it: pictures to look at, and axe's rules.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

import { idle, send } from './browser.mjs';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const SIZES = { phone: { width: 380, height: 800 }, desktop: { width: 1440, height: 900 } };

/** Serious and critical findings, each a line. */
export async function axe(page) {
  // Through the debugger, as the page's own policy rightly lets no such script in.
  const debug = await page.context().newCDPSession(page);
  await debug.send('Runtime.evaluate', { expression: AXE });
  await debug.detach();
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ['violations'] }));
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, nodes }) => nodes.map(({ target, failureSummary }) => `${id}: ${target} ${failureSummary}`));
}

/** A conversation with something of everything. */
async function conversation(page) {
  for (const word of ['thought', 'text', 'tools', 'plan', 'image']) {
    await send(page, word);
    await idle(page);
  }
  await send(page, 'ask');
  await page.getByRole('group', { name: /Permission request/ }).waitFor();
}

async function look({ device, pictures }, name, colorScheme) {
  const page = await device({ viewport: SIZES[name], colorScheme, bypassCSP: false });
  const base = page.url().split('#')[0];
  const found = [];
  const shoot = async (what) => {
    await page.screenshot({ path: join(pictures, `${what}-${name}-${colorScheme}.png`) });
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    if (wide > 0) found.push(`${what} is wider than the window by ${wide}`);
    found.push(...(await axe(page)).map((line) => `${what}: ${line}`));
  };
  await page.getByText('What shall we do?').waitFor();
  await shoot('home');
  await conversation(page);
  await shoot('chat');
  for (const view of ['inbox', 'recipes', 'schedules', 'extensions', 'apps', 'audit']) {
    await page.goto(`${base}#/${view}`);
    await page.locator('h1').waitFor();
    await shoot(view);
  }
  await page.goto(`${base}#/inspector`);
  await page.locator('h1').waitFor();
  await shoot('inspector');
  if (name === 'phone') {
    await page.getByRole('button', { name: 'Sessions' }).click();
    await page.getByRole('searchbox').waitFor();
    await shoot('drawer');
  }
  assert.deepEqual([...new Set(found)], []);
}

export const looks = {};
for (const name of Object.keys(SIZES)) {
  for (const scheme of ['light', 'dark']) {
    looks[`${name}, ${scheme}: nothing is cut off, axe finds nothing serious`] = (tools) => look(tools, name, scheme);
  }
}
