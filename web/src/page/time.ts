// Times for people.

const STEPS: [number, Intl.RelativeTimeFormatUnit][] = [
  [60, 'second'], [3600, 'minute'], [86_400, 'hour'], [86_400 * 7, 'day'],
];
const relative = new Intl.RelativeTimeFormat(undefined, { numeric: 'auto', style: 'narrow' });

export function ago(time: string, now = Date.now()): string {
  const seconds = Math.round((now - Date.parse(time)) / 1000);
  if (Number.isNaN(seconds)) return '';
  if (seconds < 45) return 'now';
  let size = 1;
  for (const [limit, unit] of STEPS) {
    if (seconds < limit) return relative.format(-Math.round(seconds / size), unit);
    size = limit === 86_400 * 7 ? size : limit;
  }
  return new Date(time).toLocaleDateString(undefined, { day: 'numeric', month: 'short' });
}

/** The last part of a path; a folder that the server made for one session has no name worth reading. */
export function folderName(path: string): string {
  if (path.includes('/scratch/')) return 'scratch';
  return path.split('/').filter((part) => part !== '').at(-1) ?? path;
}
