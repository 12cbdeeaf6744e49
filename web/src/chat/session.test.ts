// A session over a scripted connection: loading replaces the state in one step, nothing typed is lost.

import { beforeEach, describe, expect, it, vi } from 'vitest';

import type { ContentBlock } from './acp';
import { Disconnected, type Message, RpcPeer } from './rpc';
import { ChatSession } from './session';

const hello: ContentBlock[] = [{ type: 'text', text: 'hello' }];

function connect() {
  const sent: Message[] = [];
  const peer = new RpcPeer((message) => sent.push(message), { notification: () => {}, request: () => {} });
  const answer = (result: unknown) => peer.receive({ jsonrpc: '2.0', id: sent.at(-1)?.id ?? 0, result });
  return { sent, peer, answer };
}
const chunk = (kind: 'user_message_chunk' | 'agent_message_chunk', text: string) =>
  ({ sessionUpdate: kind, messageId: kind, content: { type: 'text', text } }) as const;
const texts = (session: ChatSession) =>
  session.state.items.map((item) => (item.type === 'message' ? item.blocks.map((block) => (block as { text: string }).text).join('') : item.type));
/** Answers both requests of a load: the session is attached to, then its end is read. */
async function tell(line: ReturnType<typeof connect>, updates: unknown[] = [], between: () => void = () => {}, earlier: string | null = null) {
  line.answer({ configOptions: [], _meta: { 'gander/head': 7 } });
  await settle();
  between();
  line.answer({ updates, state: [], earlier });
}
const settle = () => new Promise((resolve) => setTimeout(resolve, 30));

describe('ChatSession', () => {
  let line: ReturnType<typeof connect>;
  let session: ChatSession;
  beforeEach(() => {
    line = connect();
    session = new ChatSession('s1', '/w', line.peer);
  });

  it('shows the old state until the history is complete', async () => {
    session.handleUpdate(chunk('agent_message_chunk', 'before'));
    await settle();
    const loading = session.load();
    // What is told before the answer is part of the history, and what is told after it is not.
    session.handleUpdate(chunk('agent_message_chunk', 'bef'));
    expect(texts(session)).toEqual(['before']);
    await tell(line, [chunk('agent_message_chunk', 'before')], () => session.handleUpdate(chunk('agent_message_chunk', ' and after')));
    await loading;
    expect(texts(session)).toEqual(['before and after']);
    expect(line.sent.map(({ method, params }) => [method, params])).toEqual([
      ['session/resume', { sessionId: 's1', cwd: '/w', mcpServers: [] }],
      ['_gander/session/history', { sessionId: 's1', last: 7, limit: 40 }],
    ]);
  });

  it('reads what comes before the first item once, and keeps the names of the others', async () => {
    const loading = session.load();
    await tell(line, [chunk('user_message_chunk', 'third')], () => {}, '4:2');
    await loading;
    const names = session.state.items.map(({ id }) => id);
    const [reading, again] = [session.readEarlier(), session.readEarlier()];
    expect(line.sent.at(-1)).toMatchObject({ method: '_gander/session/history', params: { last: '4:2' } });
    expect(line.sent.length).toBe(3);
    line.answer({ updates: [chunk('user_message_chunk', 'first'), chunk('agent_message_chunk', 'second')], state: [], earlier: null });
    await Promise.all([reading, again]);
    expect(texts(session)).toEqual(['first', 'second', 'third']);
    expect(session.state.items.map(({ id }) => id)).toEqual(['i-2', 'i-1', ...names]);
    await session.readEarlier();
    expect(line.sent.length).toBe(3);
  });

  it('keeps the last message open when the server says that the turn runs', async () => {
    const loading = session.load();
    session.handleRunning(true);
    await tell(line, [chunk('agent_message_chunk', 'half')]);
    await loading;
    expect(session.state).toMatchObject({ running: true, items: [{ open: true }] });
  });

  it('says at once that a turn runs, so that an end within the same frame is not missed', () => {
    session.handleRunning(true);
    expect(session.state.running).toBe(true);
    session.handleRunning(false);
    expect(session.state.running).toBe(false);
  });

  it('gives back a prompt that never arrived', async () => {
    const unsent = vi.fn();
    session.onunsent = unsent;
    const prompt = session.send(hello);
    line.peer.close();
    await prompt;
    const second = connect();
    const loading = session.load(second.peer);
    await tell(second);
    await loading;
    expect(unsent).toHaveBeenCalledWith(hello);
    expect(texts(session)).toEqual([]);
  });

  it('does not give back one that the history has', async () => {
    const unsent = vi.fn();
    session.onunsent = unsent;
    const prompt = session.send(hello);
    line.peer.close();
    await prompt;
    const second = connect();
    const loading = session.load(second.peer);
    await tell(second, [chunk('user_message_chunk', 'hello')]);
    await loading;
    expect(unsent).not.toHaveBeenCalled();
    expect(texts(session)).toEqual(['hello']);
  });

  it('sends what was queued when the turn ends, and steers while it runs', async () => {
    const first = session.send(hello);
    session.enqueue([{ type: 'text', text: 'later' }]);
    void session.send([{ type: 'text', text: 'now' }]);
    expect(line.sent.map((message) => message.method)).toEqual(['session/prompt', '_session/steering']);
    line.peer.receive({ jsonrpc: '2.0', id: 1, result: { stopReason: 'end_turn' } });
    await first;
    expect(line.sent.at(-1)).toMatchObject({ method: 'session/prompt', params: { prompt: [{ text: 'later' }] } });
  });

  it('answers a question once, and not at all after it was withdrawn', async () => {
    const respond = vi.fn();
    const params = { sessionId: 's1', toolCall: { toolCallId: 't' }, options: [] };
    session.handlePermission('q1', params, respond);
    session.answerPermission('q1', 'allow');
    session.answerPermission('q1', 'allow');
    expect(respond.mock.calls).toEqual([[{ outcome: { outcome: 'selected', optionId: 'allow' } }]]);
    session.handlePermission('q2', params, respond);
    session.handleWithdrawn('q2');
    session.answerPermission('q2', 'allow');
    expect(respond).toHaveBeenCalledTimes(1);
    expect(session.state.requests).toEqual([]);
  });
});

describe('RpcPeer', () => {
  it('rejects with the error of the other side, and with a lost connection', async () => {
    const { peer, sent } = connect();
    const refused = peer.request('a', {});
    peer.receive({ jsonrpc: '2.0', id: sent[0]?.id ?? 0, error: { code: -32602, message: 'no', data: { reason: 'forbidden' } } });
    await expect(refused).rejects.toMatchObject({ code: -32602, reason: 'forbidden' });
    const lost = peer.request('b', {});
    peer.close();
    await expect(lost).rejects.toBeInstanceOf(Disconnected);
  });
});
