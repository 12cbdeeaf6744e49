// The real server with the demo model and default settings, in a home of its own.

import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export class Server {
  static async start(binary) {
    const server = new Server();
    server.binary = binary;
    server.home = mkdtempSync(join(tmpdir(), 'gander-web-'));
    server.work = mkdtempSync(join(tmpdir(), 'gander-work-'));
    server.port = await freePort();
    server.base = `http://127.0.0.1:${server.port}`;
    // Nothing of the machine's own settings, keys or data.
    server.env = { PATH: process.env.PATH, HOME: server.home, TMPDIR: tmpdir(), LANG: 'C.UTF-8' };
    await server.run();
    server.token = execFileSync(binary, ['token'], { env: server.env, encoding: 'utf8' }).trim();
    return server;
  }

  async run() {
    this.process = spawn(this.binary, ['serve', '--listen', `127.0.0.1:${this.port}`], {
      env: this.env, cwd: this.work, stdio: 'ignore',
    });
    for (let tries = 0; tries < 300; tries += 1) {
      const up = await fetch(`${this.base}/health`).then((answer) => answer.ok, () => false);
      if (up) return;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    throw new Error('the server did not start');
  }

  /** Milliseconds of processor time that it took so far. */
  get processorTime() {
    const [user, system] = readFileSync(`/proc/${this.process.pid}/stat`, 'utf8').split(' ').slice(13, 15);
    return (Number(user) + Number(system)) * 10;
  }

  /** As a crash or the kernel would end it. */
  async kill() {
    const gone = new Promise((resolve) => this.process.once('exit', resolve));
    this.process.kill('SIGKILL');
    await gone;
  }

  /** With the settings as they are now. */
  async restart() {
    await this.kill();
    await this.run();
  }

  /** A link that logs a browser in once. */
  async link() {
    const answer = await fetch(`${this.base}/gander/tickets`, {
      method: 'POST', headers: { authorization: `Bearer ${this.token}` },
    });
    if (!answer.ok) throw new Error(`no ticket: ${answer.status}`);
    return (await answer.json()).url;
  }

  async stop() {
    if (this.process.exitCode === null) await this.kill();
    for (const folder of [this.home, this.work]) rmSync(folder, { recursive: true, force: true });
  }
}

function freePort() {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once('error', reject);
    probe.listen(0, '127.0.0.1', () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });
}
