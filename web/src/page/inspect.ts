// Entries of a log as `_gander/session/inspect` gives them.

export const PROTOCOLS = ['acp', 'acp_rest', 'a2a', 'adk', 'goose'] as const;
export type Protocol = (typeof PROTOCOLS)[number];

/** `at` is in microseconds since 1970. */
export interface LogEntry { seq: number; at: number; run?: string; event: { kind: string } & Record<string, unknown> }
export interface Entry { entry: LogEntry; projections: Record<Protocol, unknown[]> }
/** Entries that were committed together. */
export interface Commit { first: number; last: number; synced: boolean; micros: number }
export interface Inspected { entries: Entry[]; head: number; commits: Commit[]; clientNames: string[] }

/** What became of the entries up to this one, if they were committed with it: how, and how long that took. */
export function commitText(commit: Commit): string {
  return `${commit.synced ? 'synced' : 'committed'} in ${(commit.micros / 1000).toFixed(1)} ms`;
}

/** How long model, tools and people took in the runs of these entries, in the order in which that ended. */
export function latencies(entries: readonly Entry[]): { what: string; seconds: number }[] {
  const began = new Map<string, number>();
  const found: { what: string; seconds: number }[] = [];
  const end = (key: string, what: string, at: number) => {
    const from = began.get(key);
    if (from !== undefined) found.push({ what, seconds: (at - from) / 1_000_000 });
    began.delete(key);
  };
  for (const { entry: { at, event } } of entries) {
    const id = (name: string) => `${name} ${String(event[name])}`;
    switch (event.kind) {
      case 'run_started': began.set('run', at).set('response', at); break;
      case 'message_started':
        end('response', 'first response of the model', at);
        began.set('message', at);
        break;
      case 'message_done': end('message', 'message', at); break;
      case 'tool_started': began.set(id('call'), at); break;
      case 'tool_done': end(id('call'), 'tool', at); break;
      case 'question_asked': began.set(`question ${(event['question'] as { id?: string } | undefined)?.id ?? ''}`, at); break;
      case 'question_answered': end(id('question'), 'answer of a person', at); break;
      case 'run_ended': end('run', 'run', at); break;
    }
  }
  return found;
}

/** What an entry is about, in one line. */
export function entryText({ event }: LogEntry): string {
  const text = first(event, ['text', 'title', 'name']);
  if (text !== null) return text;
  const inner = ['call', 'message', 'question', 'outcome', 'notice', 'plan', 'usage', 'patch', 'result'].map((name) => event[name]);
  const found = inner.find((value) => typeof value === 'object' && value !== null);
  return found === undefined ? '' : (first(found as Record<string, unknown>, ['title', 'text', 'name']) ?? JSON.stringify(found).slice(0, 160));
}

function first(record: Record<string, unknown>, names: string[]): string | null {
  const name = names.find((one) => typeof record[one] === 'string');
  return name === undefined ? null : (record[name] as string).replace(/\s+/g, ' ').slice(0, 160);
}

/** Seconds after the first entry. */
export function sinceStart(entry: LogEntry, start: LogEntry | undefined): string {
  const seconds = (entry.at - (start?.at ?? entry.at)) / 1_000_000;
  return seconds < 100 ? `${seconds.toFixed(2)}s` : `${Math.round(seconds)}s`;
}
