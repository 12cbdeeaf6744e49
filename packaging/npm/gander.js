#!/usr/bin/env node
// Starts the binary of this platform's package with the same arguments, streams and signals.
'use strict';

const { spawn } = require('node:child_process');

const name = `gander-server-${process.platform}-${process.arch}`;
let binary;
try {
  binary = require.resolve(`${name}/bin/gander`);
} catch {
  const known = process.platform === 'linux' && ['x64', 'arm64'].includes(process.arch);
  console.error(known
    ? `gander: the package ${name} is not installed. Install again without --omit=optional.`
    : `gander: there is no binary for ${process.platform} on ${process.arch}. It runs on Linux (x64, arm64); on Windows use WSL.`);
  process.exit(1);
}

const child = spawn(binary, process.argv.slice(2), { stdio: 'inherit' });
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  // The terminal sends Ctrl-C to both: this process waits for how the child ends.
  process.on(signal, () => { if (signal !== 'SIGINT') child.kill(signal); });
}
child.on('error', (error) => {
  console.error(`gander: cannot start ${binary}: ${error.message}`);
  process.exit(1);
});
child.on('exit', (code, signal) => {
  process.exit(signal ? 128 + require('node:os').constants.signals[signal] : code);
});
