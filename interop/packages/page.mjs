// Opens the page with a link of `gander open`, and waits until it lists the session that was made before.
//
//   node page.mjs LINK TITLE PICTURE

import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';

const { chromium } = createRequire(new URL('../web/package.json', import.meta.url))('playwright-core');
const [link, title, picture] = process.argv.slice(2);
const programs = ['chromium', 'chromium-browser', 'google-chrome'].flatMap((name) => process.env.PATH.split(':').map((folder) => `${folder}/${name}`));
const executablePath = programs.find((program) => existsSync(program));
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--no-first-run'] });
try {
  const page = await browser.newPage({ viewport: { width: 1200, height: 800 } });
  const problems = [];
  page.on('pageerror', (error) => problems.push(error.message));
  await page.goto(link);
  const isListed = (wanted) => document.body.innerText.split('\n').some((line) => line.trim() === wanted);
  await page.waitForFunction(isListed, title, { timeout: 60_000 });
  await page.screenshot({ path: picture });
  if (problems.length > 0) throw new Error(problems.join('\n'));
} finally {
  await browser.close();
}
