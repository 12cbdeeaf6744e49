// Lists what is bundled into the page with its licences, as a page of its own.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

import type { Plugin } from 'vite';

interface Bundled { name: string; version: string; licence: string; text: string }

/** Writes `licences.html` from the packages whose modules really are in the bundle. */
export function licences(own: string): Plugin {
  return {
    name: 'licences',
    apply: 'build',
    generateBundle(_options, bundle) {
      const packages = new Map<string, Bundled>();
      for (const chunk of Object.values(bundle)) {
        if (chunk.type !== 'chunk') continue;
        for (const module of chunk.moduleIds) {
          const found = packageOf(module);
          if (found) packages.set(`${found.name}@${found.version}`, found);
        }
      }
      const listed = [...packages.values()].toSorted((a, b) => a.name.localeCompare(b.name));
      const silent = listed.filter((one) => one.text === '');
      if (silent.length > 0) this.warn(`no licence text in: ${silent.map((one) => one.name).join(', ')}`);
      this.emitFile({ type: 'asset', fileName: 'licences.html', source: page(listed, readFileSync(own, 'utf8')) });
    },
  };
}

/** The package that a module belongs to; null for sources of this page. */
function packageOf(module: string): Bundled | null {
  const file = module.replace(/^\0/, '').replace(/\?.*$/, '');
  if (!file.includes('/node_modules/')) return null;
  for (let folder = dirname(file); folder.includes('/node_modules/'); folder = dirname(folder)) {
    const manifest = join(folder, 'package.json');
    if (!existsSync(manifest)) continue;
    const { name, version, license } = JSON.parse(readFileSync(manifest, 'utf8')) as Record<string, string | undefined>;
    // Some packages have further manifests inside that only say which kind of modules they hold.
    if (name && version) return { name, version, licence: license ?? 'not stated', text: licenceText(folder) };
  }
  return null;
}

function licenceText(folder: string): string {
  const file = readdirSync(folder).find((name) => /^(licen[cs]e|copying)/i.test(name));
  return file ? readFileSync(join(folder, file), 'utf8').trim() : '';
}

function page(packages: Bundled[], own: string): string {
  const parts = packages.map(
    (one) => `<h2>${escape(one.name)} ${escape(one.version)}</h2><p>${escape(one.licence)}</p><pre>${escape(one.text)}</pre>`,
  );
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">`
    + `<meta name="color-scheme" content="light dark"><link rel="icon" href="./favicon.svg"><title>Licences</title></head><body><h1>Licences</h1>`
    + `<p>The page is part of gander, under the Apache License 2.0; its icons were drawn for it and it loads no fonts. `
    + `It contains these packages:</p>${parts.join('')}<h2>gander</h2><pre>${escape(own)}</pre></body></html>\n`;
}

function escape(text: string): string {
  return text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;');
}
