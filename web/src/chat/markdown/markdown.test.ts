// Untrusted Markdown: both renderers show it, neither lets it become anything else.

import { describe, expect, it } from 'vitest';

import { highlight, knownLanguage, tokenClass } from './highlight';
import { renderMarkdown } from './render';
import { MarkdownStream } from './stream';

function streamed(text: string, step = 3): HTMLElement {
  const root = document.createElement('div');
  const stream = new MarkdownStream(root);
  for (let end = step; end < text.length + step; end += step) stream.write(text.slice(0, end));
  return root;
}
function rendered(text: string): HTMLElement {
  const root = document.createElement('div');
  root.innerHTML = renderMarkdown(text);
  return root;
}

const HOSTILE = [
  '<script>alert(1)</script>', '<img src=x onerror=alert(1)>', '[a](javascript:alert(1))', '[a](JaVaScRiPt:alert(1))',
  '![a](https://example.org/track.png)', '[a](data:text/html,<script>alert(1)</script>)', '[a](//example.org)', '<a href="x" onclick="y">',
  '[a](vbscript:x)', '![a](javascript:alert(1))', '`<b>`', '```html\n<script>alert(1)</script>\n```',
];

describe.each([['while it grows', streamed], ['when it is complete', rendered]] as const)('Markdown %s', (_, show) => {
  it.each(HOSTILE)('lets nothing through: %s', (text) => {
    const root = show(`before\n\n${text}\n\nafter`);
    expect(root.querySelector('script, iframe, object, style, form')).toBeNull();
    for (const element of root.querySelectorAll('*')) {
      expect([...element.attributes].filter((attribute) => /^on|^style$/.test(attribute.name))).toEqual([]);
    }
    for (const image of root.querySelectorAll('img')) expect(image.getAttribute('src') ?? 'data:').toMatch(/^data:/);
    for (const link of root.querySelectorAll('a[href]')) expect(link.getAttribute('href')).toMatch(/^(https?|mailto):/);
    expect(root.textContent).toContain('afte'); // the parser holds back the last character until the next one
  });

  it('has headings, lists, code and links', () => {
    const root = show('# Head\n\n- one\n- two\n\n```rust\nfn main() {}\n```\n\n[x](https://example.org) **b**\n');
    expect(root.querySelector('h1')?.textContent).toBe('Head');
    expect(root.querySelectorAll('li')).toHaveLength(2);
    expect(root.querySelector('pre code')?.textContent?.trim()).toBe('fn main() {}');
    expect(root.querySelector('a')?.getAttribute('rel')).toBe('noopener noreferrer');
    expect(root.querySelector('strong')?.textContent).toBe('b');
  });
});

describe('MarkdownStream', () => {
  it('gives the same text whatever the pieces are', () => {
    const text = 'A **bold** word, `code` and\n\n1. one\n2. two\n';
    const whole = streamed(text, text.length).innerHTML;
    for (const step of [1, 2, 5, 7]) expect(streamed(text, step).innerHTML).toBe(whole);
  });
  it('survives nesting that the parser does not', () => {
    expect(streamed(`${'> '.repeat(60)}deep`).textContent).toContain('dee');
  });
});

describe('highlight', () => {
  it('knows usual names', () => {
    expect([knownLanguage('rs'), knownLanguage('Shell'), knownLanguage('constructor')]).toEqual(['rust', 'bash', null]);
  });
  it('gives classes, never styles', async () => {
    const lines = await highlight('fn main() { let x = "s"; }', 'rust');
    const classes = new Set(lines?.flat().map(tokenClass));
    expect([...classes].toSorted()).toContain('tok-keyword');
    for (const name of classes) expect(name).toMatch(/^(tok-[a-z-]+)?$/);
  });
});
