// Entries of a log as `_gander/session/inspect` gives them.

export const PROTOCOLS = ['acp', 'acp_rest', 'a2a', 'adk', 'goose'] as const;
export type Protocol = (typeof PROTOCOLS)[number];

/** `at` is in microseconds since 1970. */
export interface LogEntry { seq: number; at: number; run?: string; event: { kind: string } & Record<string, unknown> }
export interface Entry { entry: LogEntry; projections: Record<Protocol, unknown[]> }
export interface Inspected { entries: Entry[]; head: number; clients: number }

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
