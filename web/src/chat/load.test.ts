// Whether a turn runs is known beside the history, and counts after it.

import { expect, it } from 'vitest';

import { ChatSession } from './session';

it('closes the last message if the server said before the history that no turn runs', async () => {
  let answer: (value: object) => void = () => {};
  const request = <T>() => new Promise<T>((resolve) => (answer = resolve as (value: object) => void));
  const session = new ChatSession('s', '/w', { request, notify: () => {} });
  const loading = session.load();
  session.handleRunning(false);
  session.handleUpdate({ sessionUpdate: 'agent_message_chunk', messageId: 'm', content: { type: 'text', text: 'all' } });
  answer({});
  await loading;
  expect(session.state).toMatchObject({ running: false, items: [{ open: false }] });
});
