// Logging in: a link that `gander open` made carries a ticket behind the #, which counts once and becomes a cookie.

/** Trades the ticket of this address for a cookie; gives why it does not count any more, or null. */
export async function logIn(): Promise<string | null> {
  const ticket = new URLSearchParams(location.hash.slice(1)).get('ticket');
  if (!ticket) return null;
  // Out of the address and the history before anything else.
  history.replaceState(null, '', location.pathname);
  const answer = await fetch('./gander/login', {
    method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ ticket }),
  }).catch(() => null);
  if (!answer) return 'the server does not answer';
  if (answer.ok) return null;
  const body = (await answer.json().catch(() => null)) as { error?: { message?: string } } | null;
  return body?.error?.message ?? `the server refused the link: ${answer.status}`;
}
