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
    session.handleUpdate(chunk('agent_message_chunk', 'bef'));
    expect(texts(session)).toEqual(['before']);
    session.handleUpdate(chunk('agent_message_chunk', 'ore and after'));
    line.answer({ configOptions: [] });
    await loading;
    expect(texts(session)).toEqual(['before and after']);
  });

  it('keeps the last message open when the server says that the turn runs', async () => {
    const loading = session.load();
    session.handleUpdate(chunk('agent_message_chunk', 'half'));
    session.handleRunning(true);
    line.answer({});
    await loading;
    expect(session.state).toMatchObject({ running: true, items: [{ open: true }] });
  });

  it('gives back a prompt that never arrived', async () => {
    const unsent = vi.fn();
    session.onunsent = unsent;
    const prompt = session.send(hello);
    line.peer.close();
    await prompt;
    const second = connect();
    const loading = session.load(second.peer);
    second.answer({});
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
    session.handleUpdate(chunk('user_message_chunk', 'hello'));
    second.answer({});
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
