// Which word before the cursor is completed, and by what.

import type { Command } from './acp';

export interface Trigger { kind: 'command' | 'file'; query: string; from: number; to: number }
export interface Suggestion { label: string; detail: string; insert: string; kind: 'command' | 'file' }

/** A slash begins a command at the start of the message only; an @ begins a file after a space or at the start. */
export function findTrigger(text: string, cursor: number): Trigger | null {
  const before = text.slice(0, cursor);
  const command = /^\/([\w:.-]*)$/.exec(before);
  if (command) return { kind: 'command', query: command[1] ?? '', from: 0, to: cursor };
  const file = /(?:^|\s)@([^\s@]*)$/.exec(before);
  if (!file) return null;
  const query = file[1] ?? '';
  return { kind: 'file', query, from: cursor - query.length - 1, to: cursor };
}

export function suggestCommands(commands: readonly Command[], query: string): Suggestion[] {
  const wanted = query.toLowerCase();
  const rank = (name: string) => (name.startsWith(wanted) ? 0 : 1);
  return commands
    .filter((command) => command.name.toLowerCase().includes(wanted))
    .toSorted((a, b) => rank(a.name.toLowerCase()) - rank(b.name.toLowerCase()))
    .slice(0, 12)
    .map((command) => ({
      kind: 'command', label: `/${command.name}`, detail: command.description, insert: `/${command.name} `,
    }));
}

export function suggestFiles(paths: readonly string[]): Suggestion[] {
  return paths.slice(0, 12).map((path) => {
    const cut = path.replace(/\/$/, '').lastIndexOf('/') + 1;
    // A folder is completed further, a file is done.
    const end = path.endsWith('/') ? '' : ' ';
    return { kind: 'file', label: path.slice(cut), detail: path.slice(0, cut), insert: `@${path}${end}` };
  });
}

export function applySuggestion(text: string, trigger: Trigger, suggestion: Suggestion): { text: string; cursor: number } {
  const head = text.slice(0, trigger.from) + suggestion.insert;
  return { text: head + text.slice(trigger.to), cursor: head.length };
}

/** The files that a message mentions, for links beside its text. */
export function mentionedFiles(text: string): string[] {
  const found = [...text.matchAll(/(?:^|\s)@([^\s@]*[^\s@/.,;:!?)])/g)].map((match) => match[1] ?? '');
  return [...new Set(found)];
}
