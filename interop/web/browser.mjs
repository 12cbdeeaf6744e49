// A browser whose every page is watched: errors, violations of the content security policy, foreign requests.

import { existsSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { chromium } from 'playwright-core';

const ARGUMENTS = [
  '--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-component-update', '--disable-sync', '--no-first-run',
];
/** A file that does not come from the server comes from no network, which may not call a local one. */
const OF_ANOTHER_BUILD = '--disable-features=LocalNetworkAccessChecks';

export class Browser {
  /** What no page may do: each a line. */
  problems = [];

  static async start(server, executablePath) {
    const browser = new Browser();
    browser.server = server;
    browser.browser = await chromium.launch({ executablePath, args: process.env.PAGE ? [...ARGUMENTS, OF_ANOTHER_BUILD] : ARGUMENTS });
    return browser;
  }

  /** Another person's browser, or another device: logged in by a link of its own. */
  async device(options = {}) {
    const context = await this.browser.newContext({ viewport: { width: 1440, height: 900 }, ...options });
    await context.addInitScript(() => {
      document.addEventListener('securitypolicyviolation', (event) => console.error(`CSP: ${event.violatedDirective} ${event.blockedURI}`));
    });
    context.setDefaultTimeout(20_000);
    if (process.env.PAGE) await context.route(`${this.server.base}/**`, (route) => serveBuilt(route, process.env.PAGE));
    const page = await context.newPage();
    this.#watch(page);
    await page.goto(await this.server.link());
    await page.getByText('Connected', { exact: true }).first().waitFor({ state: 'attached' });
    return page;
  }

  #watch(page) {
    page.on('pageerror', (error) => this.problems.push(`error: ${error.message}`));
    page.on('console', (message) => {
      if (message.type() !== 'error') return;
      // A server that is down cannot be reached: the browser says so itself, whatever the page does.
      if (page.mayBeCutOff && /ERR_CONNECTION|WebSocket connection|Failed to load resource/.test(message.text())) return;
      this.problems.push(`console: ${message.text()}`);
    });
    page.on('request', (request) => {
      const { protocol, host } = new URL(request.url());
      if (protocol.startsWith('http') && host !== `127.0.0.1:${this.server.port}`) this.problems.push(`request: ${request.url()}`);
    });
  }

  async stop() {
    await this.browser.close();
  }
}

/** The server's answer with the file of another build in it, so that its headers count. */
async function serveBuilt(route, folder) {
  const { pathname } = new URL(route.request().url());
  const path = join(folder, pathname === '/' ? 'index.html' : pathname);
  if (!existsSync(path)) return route.continue();
  const types = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml' };
  const { status, headers } = await route.fetch().then((answer) => ({ status: answer.status(), headers: answer.headers() }));
  const policy = status === 200 ? headers['content-security-policy'] : (await fetch(new URL('/', route.request().url()))).headers.get('content-security-policy');
  return route.fulfill({ body: readFileSync(path), headers: { 'content-type': types[extname(path)] ?? 'application/octet-stream', 'content-security-policy': policy } });
}

/** The person types a message and sends it. */
export async function send(page, text) {
  await page.getByRole('combobox', { name: 'Message' }).fill(text);
  await page.keyboard.press('Enter');
}

/** Waits until no turn runs in the session in view. */
export async function idle(page, timeout = 60_000) {
  await page.getByRole('button', { name: 'Send', exact: true }).waitFor({ timeout });
}

/** All that the agent said, as text. Only what is near the view is in the document, so the whole is scrolled through. */
export function answers(page) {
  return page.evaluate(async () => {
    const scroller = document.querySelector('[role="log"]');
    const found = new Map();
    const frame = () => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
    scroller.scrollTop = 0;
    for (;;) {
      await frame();
      for (const row of document.querySelectorAll('[data-id]')) {
        const answer = row.querySelector('article.agent');
        if (answer) found.set(Number(row.dataset.id.slice(1)), answer.textContent);
      }
      const before = scroller.scrollTop;
      scroller.scrollTop += scroller.clientHeight;
      if (scroller.scrollTop === before) break;
    }
    return [...found].toSorted(([a], [b]) => a - b).map(([, text]) => text);
  });
}

export function sessionId(page) {
  return /#\/session\/([^/]+)/.exec(page.url())?.[1];
}
