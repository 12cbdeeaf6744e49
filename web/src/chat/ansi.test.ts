// A terminal's output: colours, lines that are written again, and sequences that print nothing.

import { describe, expect, it } from 'vitest';

import { terminalSpans } from './ansi';

describe('terminalSpans', () => {
  it.each([
    ['plain', [{ text: 'plain', style: '' }]],
    ['\u001b[31mred\u001b[0m and \u001b[1;92mbold green\u001b[m.', [
      { text: 'red', style: 'red' }, { text: ' and ', style: '' }, { text: 'bold green', style: 'green bold' }, { text: '.', style: '' },
    ]],
    // The numbers of a colour among 256, or of a true colour, are not taken for codes.
    ['\u001b[38;5;1mone\u001b[48;2;1;31;4mtwo', [{ text: 'onetwo', style: '' }]],
    ['\u001b[4mu\u001b[24;2md\u001b[22;3mi\u001b[23mp', [
      { text: 'u', style: 'underline' }, { text: 'd', style: 'dim' }, { text: 'i', style: 'italic' }, { text: 'p', style: '' },
    ]],
    ['\u001b]0;title\u0007a\u001b[2K\u001b[1Ab\u001b(Bc\u0008\u0000', [{ text: 'abc', style: '' }]],
    [' 10%\r 50%\r100%\r\nnext\r\n', [{ text: '100%\nnext\n', style: '' }]],
    ['', []],
  ])('%j', (output, spans) => {
    expect(terminalSpans(output)).toEqual(spans);
  });
});
