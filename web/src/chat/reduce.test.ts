// The reducer: chunks become items, questions come and go, and replayed equals live.

import { describe, expect, it } from 'vitest';

import type { SessionUpdate } from './acp';
import { type Action, reduce } from './reduce';
import { emptyChat } from './state';

const text = (text: string) => ({ type: 'text', text }) as const;
const agent = (said: string, messageId = 'm1'): Action => ({
  type: 'update', update: { sessionUpdate: 'agent_message_chunk', messageId, content: text(said) },
});
const update = (update: SessionUpdate): Action => ({ type: 'update', update });
const run = (...actions: Action[]) => reduce(emptyChat(), actions);

describe('messages', () => {
  it('joins chunks of one message and begins another for another id', () => {
    const state = run(agent('Hel'), agent('lo'), agent('Bye', 'm2'));
    expect(state.items).toEqual([
      { type: 'message', id: 'i0', messageId: 'm1', role: 'agent', blocks: [text('Hello')], open: false },
      { type: 'message', id: 'i1', messageId: 'm2', role: 'agent', blocks: [text('Bye')], open: true },
    ]);
  });

  it('goes on with a message that was taken for complete', () => {
    const state = run(agent('Hel'), { type: 'ended', stopReason: null }, { type: 'started' }, agent('lo'));
    expect(state.items).toMatchObject([{ messageId: 'm1', blocks: [text('Hello')], open: true }]);
  });

  it('keeps a picture between two texts', () => {
    const image = { type: 'image', data: 'AAAA', mimeType: 'image/png' } as const;
    const state = run(agent('a'), update({ sessionUpdate: 'agent_message_chunk', messageId: 'm1', content: image }), agent('b'));
    expect(state.items).toMatchObject([{ blocks: [text('a'), image, text('b')] }]);
  });

  it('begins a new item after a tool call, though the message is the same', () => {
    const state = run(agent('a'), update({ sessionUpdate: 'tool_call', toolCallId: 't', title: 'list' }), agent('b'));
    expect(state.items.map((item) => item.type)).toEqual(['message', 'tool', 'message']);
    expect(new Set(state.items.map((item) => item.id)).size).toBe(3);
  });

  it('keeps a thought apart from the answer that follows', () => {
    const thought = update({ sessionUpdate: 'agent_thought_chunk', messageId: 'm1', content: text('hm') });
    const state = run(thought, thought, agent('yes'));
    expect(state.items).toMatchObject([{ type: 'thought', text: 'hmhm', open: false }, { type: 'message', open: true }]);
  });

  it('closes the last message when the turn ends', () => {
    expect(run(agent('a'), { type: 'ended', stopReason: 'end_turn' }).items).toMatchObject([{ open: false }]);
  });

  it('gives the same whether it is fed at once or piece by piece', () => {
    const actions = [agent('a'), agent('b'), update({ sessionUpdate: 'tool_call', toolCallId: 't' }), agent('c', 'm2')];
    const single = actions.reduce((state, action) => reduce(state, [action]), emptyChat());
    expect(single).toEqual(reduce(emptyChat(), actions));
  });

  it('leaves the state before untouched', () => {
    const before = run(agent('a'));
    const copy = structuredClone(before);
    reduce(before, [agent('b'), { type: 'prompted', blocks: [text('x')] }]);
    expect(before).toEqual(copy);
  });
});

describe('tools', () => {
  it('merges updates and keeps what they leave out', () => {
    const state = run(
      update({ sessionUpdate: 'tool_call', toolCallId: 't', title: 'shell', kind: 'execute', rawInput: { command: 'ls' } }),
      update({ sessionUpdate: 'tool_call_update', toolCallId: 't', status: 'in_progress' }),
      update({ sessionUpdate: 'tool_call_update', toolCallId: 't', status: 'completed', rawOutput: { exit_code: 0 } }),
    );
    expect(state.items).toMatchObject([
      { title: 'shell', kind: 'execute', status: 'completed', rawInput: { command: 'ls' }, rawOutput: { exit_code: 0 } },
    ]);
  });

  it('makes a card for an update of a call that it never saw', () => {
    const state = run(update({ sessionUpdate: 'tool_call_update', toolCallId: 't', title: 'late' }));
    expect(state.items).toMatchObject([{ type: 'tool', toolCallId: 't', title: 'late', status: 'pending' }]);
  });
});

describe('turns and questions', () => {
  const request = {
    type: 'permission' as const, id: 'q1',
    params: { sessionId: 's', toolCall: { toolCallId: 't' }, options: [] },
  };

  it('shows a prompt at once and runs until it ends', () => {
    const state = run({ type: 'prompted', blocks: [text('hi')] });
    expect(state).toMatchObject({ running: true, items: [{ role: 'user', blocks: [text('hi')] }] });
    expect(reduce(state, [{ type: 'ended', stopReason: 'cancelled' }])).toMatchObject({ running: false, stopReason: 'cancelled' });
  });

  it('keeps the stop reason when the end is told twice', () => {
    const ended: Action[] = [{ type: 'started' }, { type: 'ended', stopReason: 'refusal' }, { type: 'ended', stopReason: null }];
    expect(run(...ended).stopReason).toBe('refusal');
  });

  it('has a question once, however often it is asked, until it is settled', () => {
    const asked: Action = { type: 'asked', request };
    const open = run(asked, asked);
    expect(open.requests).toEqual([request]);
    expect(reduce(open, [{ type: 'settled', id: 'q1' }]).requests).toEqual([]);
  });

  it('ignores kinds of updates that it does not know', () => {
    const unknown = { type: 'update', update: { sessionUpdate: 'from_the_future' } } as unknown as Action;
    expect(run(unknown)).toEqual(emptyChat());
  });

  it('tells a failure and stops', () => {
    const state = run({ type: 'started' }, { type: 'failed', title: 'The turn failed', description: 'why' });
    expect(state).toMatchObject({ running: false, items: [{ type: 'notice', severity: 'error', description: 'why' }] });
  });
});
