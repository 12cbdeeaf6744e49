/** Ranks workspace files for an @-mention. */

export const MAX_RESULTS = 30;

/**
 * Files whose name or path holds the letters of the query in their order, the best first: a name that begins with the query, then a
 * name that holds it, then a path that does, then scattered letters; shorter paths before longer ones.
 */
export function rankFiles(paths: readonly string[], query: string): string[] {
  const wanted = query.trim().toLowerCase();
  const ranked: { path: string; rank: number }[] = [];
  for (const path of paths) {
    const rank = rankOf(path.toLowerCase(), wanted);
    if (rank !== undefined) ranked.push({ path, rank });
  }
  ranked.sort((a, b) => a.rank - b.rank || a.path.length - b.path.length || (a.path < b.path ? -1 : 1));
  return ranked.slice(0, MAX_RESULTS).map(({ path }) => path);
}

function rankOf(path: string, wanted: string): number | undefined {
  const name = path.slice(path.lastIndexOf("/") + 1);
  if (name.startsWith(wanted)) return 0;
  if (name.includes(wanted)) return 1;
  if (path.includes(wanted)) return 2;
  if (isSubsequence(wanted, name)) return 3;
  return isSubsequence(wanted, path) ? 4 : undefined;
}

function isSubsequence(wanted: string, text: string): boolean {
  let at = 0;
  for (const letter of text) {
    if (letter === wanted[at]) at += 1;
    if (at === wanted.length) return true;
  }
  return at === wanted.length;
}
