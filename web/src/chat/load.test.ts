// Whether a turn runs is known beside the history, and counts after it.

import { expect, it } from 'vitest';

import { ChatSession } from './session';

it('closes the last message if the server said before the history that no turn runs', async () => {
  const update = { sessionUpdate: 'agent_message_chunk', messageId: 'm', content: { type: 'text', text: 'all' } };
  const answers: Record<string, unknown> = { 'session/resume': {}, '_gander/session/history': { updates: [update], state: [], earlier: null } };
  const request = <T>(method: string) => Promise.resolve(answers[method] as T);
  const session = new ChatSession('s', '/w', { request, notify: () => {} });
  const loading = session.load();
  session.handleRunning(false);
  await loading;
  expect(session.state).toMatchObject({ running: false, items: [{ open: false }] });
});
