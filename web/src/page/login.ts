// Logging in: a link that `gander open` made carries a ticket behind the #, which counts once and becomes a cookie and a page key.

const PAGE_KEY = 'gander.pageKey';

/** What makes the cookie count. Programs on other ports of this host see the cookie, but not this. */
function pageKey(): string {
  return localStorage.getItem(PAGE_KEY) ?? '';
}

/** The page key as a request carries it. */
export function pageKeyHeaders(): Record<string, string> {
  return { 'x-gander-page-key': pageKey() };
}

/** The same of a WebSocket, which has no headers. The server answers with the first. */
export function pageKeySubprotocols(): string[] {
  return ['acp', `gander.page.${pageKey() || 'none'}`];
}

/** Trades the ticket of this address for a cookie and a page key; gives why it does not count any more, or null. */
export async function logIn(): Promise<string | null> {
  const ticket = new URLSearchParams(location.hash.slice(1)).get('ticket');
  if (!ticket) return null;
  // Out of the address and the history before anything else.
  history.replaceState(null, '', location.pathname);
  const answer = await fetch('./gander/login', {
    method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ ticket }),
  }).catch(() => null);
  if (!answer) return 'the server does not answer';
  if (answer.ok) {
    const { pageKey } = (await answer.json()) as { pageKey: string };
    localStorage.setItem(PAGE_KEY, pageKey);
    return null;
  }
  const body = (await answer.json().catch(() => null)) as { error?: { message?: string } } | null;
  return body?.error?.message ?? `the server refused the link: ${answer.status}`;
}
