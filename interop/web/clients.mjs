// Several clients at one session: who is attached, what one of them answers, and a browser that calls its person.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { idle, send, sessionId } from './browser.mjs';

export const clients = {
  'who else is attached is shown by name, in the list and in the inspector': async ({ device, server, pictures }) => {
    const page = await device();
    await send(page, 'text');
    await idle(page);
    const id = sessionId(page);
    const row = page.locator('nav li', { has: page.locator(`a[href="#/session/${id}"]`) });
    assert.equal(await row.getByText('Attached:').count(), 0);
    const terminal = new Terminal(server, `gander chat --session ${id}`);
    try {
      await row.getByText('gander-chat').waitFor();
      await page.locator('header').getByText(/also attached: gander-chat/).waitFor();
      await page.screenshot({ path: join(pictures, 'attached.png') });
      await page.getByRole('link', { name: 'Inspect this session' }).click();
      await page.getByText(/attached: gander web page, gander-chat/).waitFor();
    } finally {
      terminal.close();
    }
    await row.getByText('gander-chat').waitFor({ state: 'detached' });
  },

  'a permission request is answered in the page and withdrawn in a terminal': async ({ device, server }) => {
    const page = await device();
    await send(page, 'text');
    await idle(page);
    const terminal = new Terminal(server, `gander chat --session ${sessionId(page)}`);
    try {
      await terminal.shows('scripted');
      await send(page, 'ask');
      await terminal.shows(/1\) Allow/);
      await page.getByRole('group', { name: /Permission request/ }).getByRole('button', { name: /^Allow/ }).first().click();
      await terminal.shows('answered by another client');
      await idle(page);
      // And the other way round.
      await send(page, 'ask');
      const asked = page.getByRole('group', { name: /Permission request/ });
      await asked.waitFor();
      await terminal.shows(/answered by another client[^]*1\) Allow/);
      terminal.press('n');
      await asked.waitFor({ state: 'detached' });
      await idle(page);
    } finally {
      terminal.close();
    }
  },

  'a question calls a person who looks elsewhere': async ({ device }) => {
    const [page, other] = [await device({ permissions: ['notifications'] }), await device()];
    await page.evaluate(() => {
      globalThis.shown = [];
      Object.defineProperty(document, 'hidden', { get: () => true });
      globalThis.Notification = class {
        static permission = 'granted';
        static requestPermission = async () => 'granted';
        constructor(title, options) {
          globalThis.shown.push({ title, ...options, click: () => this.onclick() });
        }
        close() {}
      };
    });
    await send(other, 'ask');
    await page.waitForFunction(() => globalThis.shown.length === 1);
    assert.match(await page.evaluate(() => globalThis.shown[0].body), /\S/);
    await page.evaluate(() => globalThis.shown[0].click());
    await page.waitForURL(`**/#/session/${sessionId(other)}`);
    await page.getByRole('group', { name: /Permission request/ }).getByRole('button', { name: /^Allow/ }).first().click();
    await idle(other);
  },
};

/** A person at a terminal: the command in a window of tmux. */
class Terminal {
  constructor(server, line) {
    this.folder = mkdtempSync(join(tmpdir(), 'gander-tmux-'));
    this.env = { ...server.env, TERM: 'screen-256color' };
    const command = line.replace(/^gander/, server.binary);
    this.#tmux('new-session', '-d', '-s', 'one', '-x', '100', '-y', '30', '-c', server.work, command);
  }

  #tmux(...words) {
    return execFileSync('tmux', ['-S', join(this.folder, 'socket'), '-f', '/dev/null', ...words], { env: this.env, encoding: 'utf8' });
  }

  press(...keys) {
    this.#tmux('send-keys', '-t', 'one', ...keys);
  }

  screen() {
    return this.#tmux('capture-pane', '-p', '-J', '-S', '-500', '-t', 'one');
  }

  async shows(wanted) {
    for (let tries = 0; tries < 400; tries += 1) {
      const screen = this.screen();
      if (typeof wanted === 'string' ? screen.includes(wanted) : wanted.test(screen)) return;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    throw new Error(`the terminal does not show ${wanted}:\n${this.screen()}`);
  }

  close() {
    this.#tmux('kill-server');
    rmSync(this.folder, { recursive: true, force: true });
  }
}
