// Where in the page one is: the part of the address after #.

export type Route =
  | { view: 'home' }
  | { view: 'session'; id: string }
  | { view: 'inspector'; id: string | null }
  | { view: 'apps'; name: string | null }
  | { view: 'docs'; name: string }
  | { view: 'inbox' | 'recipes' | 'schedules' | 'extensions' | 'audit' };

export function parseRoute(hash: string, path = ''): Route {
  const [, view = '', id = ''] = /^#\/([a-z]*)\/?(.*)$/.exec(hash) ?? [];
  if (view === 'session' && id) return { view, id: decodeURIComponent(id) };
  if (view === 'inspector') return { view, id: id ? decodeURIComponent(id) : null };
  if (view === 'apps') return { view, name: id ? decodeURIComponent(id) : null };
  if (view === 'docs') return { view, name: id === '' ? 'README' : decodeURIComponent(id) };
  if (view === 'inbox' || view === 'recipes' || view === 'schedules' || view === 'extensions' || view === 'audit') return { view };
  return path.endsWith('/inspector') ? { view: 'inspector', id: null } : { view: 'home' };
}

export class Router {
  route = $state.raw<Route>(parseRoute(location.hash, location.pathname));

  constructor() {
    addEventListener('hashchange', () => (this.route = parseRoute(location.hash, location.pathname)));
  }

  go(hash: string): void {
    location.hash = hash;
  }

  /** Without a step back: the address of what is shown already. */
  replace(hash: string): void {
    history.replaceState(null, '', hash);
    this.route = parseRoute(location.hash, location.pathname);
  }
}
