// Line differences of two texts, in bounded time and memory.

export interface Row {
  kind: 'same' | 'removed' | 'added';
  text: string;
  /** Numbers of the line in the old and new text, from 1. */
  before: number | null;
  after: number | null;
}
export interface Gap { kind: 'gap'; hidden: number }
export interface Pair { left: Row | null; right: Row | null }

/** Cells of the table of common subsequences; what is larger is shown as one block out, one block in. */
const MAX_CELLS = 2_000_000;

export function diffLines(before: string, after: string): Row[] {
  const [old, now] = [lines(before), lines(after)];
  let head = 0;
  while (head < old.length && head < now.length && old[head] === now[head]) head += 1;
  let tail = 0;
  const most = Math.min(old.length, now.length) - head;
  while (tail < most && old[old.length - 1 - tail] === now[now.length - 1 - tail]) tail += 1;
  const rows: Row[] = [];
  for (let at = 0; at < head; at += 1) rows.push(same(old[at] ?? '', at, at));
  rows.push(...middle(old.slice(head, old.length - tail), now.slice(head, now.length - tail), head));
  for (let at = tail; at > 0; at -= 1) {
    rows.push(same(old[old.length - at] ?? '', old.length - at, now.length - at));
  }
  return rows;
}

export function countChanges(rows: readonly Row[]): { added: number; removed: number } {
  let [added, removed] = [0, 0];
  for (const row of rows) {
    if (row.kind === 'added') added += 1;
    if (row.kind === 'removed') removed += 1;
  }
  return { added, removed };
}

/** Leaves out what is further than `context` lines from any change. */
export function foldUnchanged(rows: readonly Row[], context = 3): (Row | Gap)[] {
  const near = new Uint8Array(rows.length);
  rows.forEach((row, at) => {
    if (row.kind === 'same') return;
    near.fill(1, Math.max(0, at - context), Math.min(rows.length, at + context + 1));
  });
  const shown: (Row | Gap)[] = [];
  let hidden = 0;
  rows.forEach((row, at) => {
    if (!near[at]) {
      hidden += 1;
      return;
    }
    if (hidden > 0) shown.push({ kind: 'gap', hidden });
    hidden = 0;
    shown.push(row);
  });
  if (hidden > 0) shown.push({ kind: 'gap', hidden });
  return shown;
}

/** Rows beside each other: what was removed on the left, what replaces it on the right. */
export function sideBySide(rows: readonly (Row | Gap)[]): (Pair | Gap)[] {
  const pairs: (Pair | Gap)[] = [];
  let [removed, added]: [Row[], Row[]] = [[], []];
  const flush = () => {
    for (let at = 0; at < Math.max(removed.length, added.length); at += 1) {
      pairs.push({ left: removed[at] ?? null, right: added[at] ?? null });
    }
    [removed, added] = [[], []];
  };
  for (const row of rows) {
    if (row.kind === 'removed') removed.push(row);
    else if (row.kind === 'added') added.push(row);
    else {
      flush();
      pairs.push(row.kind === 'gap' ? row : { left: row, right: row });
    }
  }
  flush();
  return pairs;
}

function lines(text: string): string[] {
  if (text === '') return [];
  const split = text.split('\n');
  if (split.at(-1) === '') split.pop();
  return split;
}

function same(text: string, before: number, after: number): Row {
  return { kind: 'same', text, before: before + 1, after: after + 1 };
}

function middle(old: string[], now: string[], offset: number): Row[] {
  const removed = (at: number): Row => ({ kind: 'removed', text: old[at] ?? '', before: offset + at + 1, after: null });
  const added = (at: number): Row => ({ kind: 'added', text: now[at] ?? '', before: null, after: offset + at + 1 });
  if (old.length * now.length > MAX_CELLS || old.length === 0 || now.length === 0) {
    return [...old.map((_, at) => removed(at)), ...now.map((_, at) => added(at))];
  }
  const common = commonLengths(old, now);
  const width = now.length + 1;
  const rows: Row[] = [];
  let [at, to] = [0, 0];
  while (at < old.length || to < now.length) {
    if (at < old.length && to < now.length && old[at] === now[to]) {
      rows.push(same(old[at] ?? '', offset + at, offset + to));
      at += 1;
      to += 1;
    } else if (to >= now.length || (at < old.length && below(common, at, to, width) >= right(common, at, to, width))) {
      rows.push(removed(at));
      at += 1;
    } else {
      rows.push(added(to));
      to += 1;
    }
  }
  return rows;
}

function commonLengths(old: string[], now: string[]): Uint32Array {
  const width = now.length + 1;
  const table = new Uint32Array((old.length + 1) * width);
  for (let at = old.length - 1; at >= 0; at -= 1) {
    for (let to = now.length - 1; to >= 0; to -= 1) {
      table[at * width + to] = old[at] === now[to]
        ? (table[(at + 1) * width + to + 1] ?? 0) + 1
        : Math.max(below(table, at, to, width), right(table, at, to, width));
    }
  }
  return table;
}

function below(table: Uint32Array, at: number, to: number, width: number): number {
  return table[(at + 1) * width + to] ?? 0;
}

function right(table: Uint32Array, at: number, to: number, width: number): number {
  return table[at * width + to + 1] ?? 0;
}
