// A terminal's output as text with colours: SGR sequences become styles, all other control sequences are left out.

export interface Span { text: string; style: string }

/** Names of the eight colours, as classes have them. */
const COLORS = ['black', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', 'white'] as const;

interface Style { color: string; bold: boolean; dim: boolean; italic: boolean; underline: boolean }
const PLAIN: Style = { color: '', bold: false, dim: false, italic: false, underline: false };

/** SGR with its numbers; other CSI, OSC and single escapes; control characters that print nothing. */
// eslint-disable-next-line no-control-regex
const SEQUENCE = /\u001b\[([\d;]*)m|\u001b\[[\d;?<=>!]*[ -/]*[@-~]|\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|\u001b[ -/]*[0-~]|[\u0000-\u0008\u000b\u000c\u000e-\u001a\u001c-\u001f\u007f]/g;

/** Whole output at once: a command tells all that it has said with every update. */
export function terminalSpans(output: string): Span[] {
  const spans: Span[] = [];
  let [style, from] = [PLAIN, 0];
  const push = (text: string) => {
    if (text === '') return;
    const last = spans.at(-1);
    const name = classOf(style);
    if (last?.style === name) last.text += text;
    else spans.push({ text, style: name });
  };
  const text = overwriteLines(output);
  for (const found of text.matchAll(SEQUENCE)) {
    push(text.slice(from, found.index));
    from = found.index + found[0].length;
    if (found[1] !== undefined) style = applySgr(style, found[1]);
  }
  push(text.slice(from));
  return spans;
}

/** A carriage return begins its line again: of a progress bar the last state stays. */
function overwriteLines(text: string): string {
  if (!text.includes('\r')) return text;
  return text.replaceAll('\r\n', '\n').split('\n').map((line) => line.replace(/\r+$/, '').split('\r').at(-1) ?? '').join('\n');
}

function applySgr(style: Style, numbers: string): Style {
  const codes = numbers === '' ? [0] : numbers.split(';').map(Number);
  let next = style;
  for (let at = 0; at < codes.length; at += 1) {
    const code = codes[at] ?? 0;
    // Of 256 colours and true colours nothing is shown, but their numbers are no codes of their own.
    if (code === 38 || code === 48) at += codes[at + 1] === 5 ? 2 : codes[at + 1] === 2 ? 4 : 0;
    else next = applyCode(next, code);
  }
  return next;
}

function applyCode(style: Style, code: number): Style {
  if (code === 0) return PLAIN;
  if (code === 1) return { ...style, bold: true };
  if (code === 2) return { ...style, dim: true };
  if (code === 3) return { ...style, italic: true };
  if (code === 4) return { ...style, underline: true };
  if (code === 22) return { ...style, bold: false, dim: false };
  if (code === 23) return { ...style, italic: false };
  if (code === 24) return { ...style, underline: false };
  if (code === 39) return { ...style, color: '' };
  const color = COLORS[code >= 90 ? code - 90 : code - 30];
  return color === undefined || (code > 37 && code < 90) ? style : { ...style, color };
}

function classOf({ color, bold, dim, italic, underline }: Style): string {
  return [color, bold && 'bold', dim && 'dim', italic && 'italic', underline && 'underline'].filter(Boolean).join(' ');
}
