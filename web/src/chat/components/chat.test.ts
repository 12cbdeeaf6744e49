// The components in a document: a session is shown, a question answered, a message sent.

import { flushSync, mount, unmount } from 'svelte';
import { afterEach, describe, expect, it, vi } from 'vitest';

import { ChatSession } from '../session';
import Chat from './Chat.svelte';
import Elicitation from './Elicitation.svelte';
import Permission from './Permission.svelte';
import Pickers from './Pickers.svelte';
import ToolCard from './ToolCard.svelte';

let shown: Record<string, unknown> | undefined;
afterEach(async () => {
  if (shown) await unmount(shown);
  document.body.replaceChildren();
});
const find = <T extends Element>(selector: string) => {
  const found = document.querySelector<T>(selector);
  if (!found) throw new Error(`not in the document: ${selector}`);
  return found;
};
const button = (text: string) => {
  const found = [...document.querySelectorAll('button')].find((one) => one.textContent?.includes(text) || one.ariaLabel === text);
  if (!found) throw new Error(`no such button: ${text}`);
  return found;
};

describe('Chat', () => {
  it('sends what was typed and shows it with the answer', async () => {
    const request = vi.fn().mockReturnValue(new Promise(() => {}));
    const session = new ChatSession('s', '/w', { request, notify: vi.fn() });
    shown = mount(Chat, { target: document.body, props: { session } });
    flushSync();
    const area = find<HTMLTextAreaElement>('textarea');
    area.value = 'see @src/main.rs';
    area.dispatchEvent(new Event('input', { bubbles: true }));
    flushSync();
    area.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true, cancelable: true }));
    flushSync();
    expect(request).toHaveBeenCalledWith('session/prompt', {
      sessionId: 's',
      prompt: [{ type: 'text', text: 'see @src/main.rs' }, { type: 'resource_link', uri: 'file:///w/src/main.rs', name: 'main.rs' }],
    });
    expect(area.value).toBe('');
    session.handleUpdate({ sessionUpdate: 'agent_message_chunk', messageId: 'm', content: { type: 'text', text: '**fine**' } });
    await vi.waitFor(() => expect(find('article.agent strong').textContent).toBe('fine'));
    expect(button('Stop')).toBeTruthy();
  });
});

describe('Permission', () => {
  const params = {
    sessionId: 's', toolCall: { toolCallId: 't', title: 'Run a command', kind: 'execute' as const, rawInput: { command: 'rm x' } },
    options: [
      { optionId: 'allow', name: 'Allow', kind: 'allow_once' as const }, { optionId: 'no', name: 'Reject', kind: 'reject_once' as const },
    ],
  };
  it('shows what would run and gives the chosen option', () => {
    const onanswer = vi.fn();
    shown = mount(Permission, { target: document.body, props: { params, onanswer } });
    flushSync();
    expect(find('pre').textContent).toBe('$ rm x');
    button('Reject').click();
    find('section').dispatchEvent(new KeyboardEvent('keydown', { key: '1', bubbles: true }));
    expect(onanswer.mock.calls).toEqual([['no', undefined], ['allow', undefined]]);
  });
  it('sends the plan as it was edited', () => {
    const onanswer = vi.fn();
    const plan = [{ content: 'a', priority: 'high' as const, status: 'pending' as const }];
    shown = mount(Permission, { target: document.body, props: { params, plan, onanswer } });
    flushSync();
    const step = find<HTMLInputElement>('ol input');
    step.value = 'b';
    step.dispatchEvent(new Event('input', { bubbles: true }));
    flushSync();
    button('Allow').click();
    expect(onanswer).toHaveBeenCalledWith('allow', [{ content: 'b', priority: 'high', status: 'pending' }]);
  });
});

describe('Pickers', () => {
  const choice = (value: string) => ({ value, name: value });
  const mode = { id: 'mode', name: 'Mode', category: 'mode', type: 'select' as const, currentValue: 'backend', options: ['assistant', 'backend', 'qa'].map(choice) };
  const agents = [{ name: 'gander', title: 'Gander', modes: ['assistant'] }, { name: 'coding', title: 'Coding', modes: ['backend', 'qa'] }];
  const options = (name: string) => [...find<HTMLSelectElement>(`select[aria-label=${name}]`).options].map(({ value }) => value);
  it('has the agent and the modes of that agent, and sets an agent by its first mode', () => {
    const onset = vi.fn();
    shown = mount(Pickers, { target: document.body, props: { options: [mode], agents, onset } });
    flushSync();
    expect([options('Agent'), options('Mode')]).toEqual([['gander', 'coding'], ['backend', 'qa']]);
    const agent = find<HTMLSelectElement>('select[aria-label=Agent]');
    expect(agent.value).toBe('coding');
    agent.value = 'gander';
    agent.dispatchEvent(new Event('change', { bubbles: true }));
    expect(onset).toHaveBeenCalledWith('mode', 'assistant');
  });
  it('has no agent to choose where there is one', () => {
    shown = mount(Pickers, { target: document.body, props: { options: [mode], agents: agents.slice(1), onset: vi.fn() } });
    flushSync();
    expect(document.querySelector('select[aria-label=Agent]')).toBeNull();
    expect(options('Mode')).toEqual(['assistant', 'backend', 'qa']);
  });
});

describe('ToolCard', () => {
  it('shows a command as a terminal, with its output, colours and exit code', () => {
    const content = [{ type: 'content' as const, content: { type: 'text' as const, text: 'a\n\u001b[31mb\u001b[0m\n[exit code 3]' } }];
    const item = {
      type: 'tool' as const, id: 'i', toolCallId: 't', title: 'x', name: 'shell', kind: 'execute' as const, status: 'failed' as const, content,
      locations: null, rawInput: { command: 'x' }, rawOutput: { exit_code: 3 },
    };
    shown = mount(ToolCard, { target: document.body, props: { item } });
    flushSync();
    expect(find('pre').textContent).toBe('$ x\na\nb');
    expect(find('pre .red').textContent).toBe('b');
    expect(find('.terminal p').textContent).toBe('exit code 3');
  });
});

describe('Elicitation', () => {
  it('does not send what is incomplete', () => {
    const onanswer = vi.fn();
    const requestedSchema = { type: 'object', required: ['name'], properties: { name: { type: 'string' } } };
    shown = mount(Elicitation, { target: document.body, props: { params: { mode: 'form', message: 'Who?', requestedSchema }, onanswer } });
    flushSync();
    const submit = () => find('form').dispatchEvent(new SubmitEvent('submit', { bubbles: true, cancelable: true }));
    submit();
    flushSync();
    expect(onanswer).not.toHaveBeenCalled();
    expect(document.body.textContent).toContain('name is needed');
    const input = find<HTMLInputElement>('input');
    input.value = 'Ann';
    input.dispatchEvent(new Event('input', { bubbles: true }));
    submit();
    expect(onanswer).toHaveBeenCalledWith({ action: 'accept', content: { name: 'Ann' } });
  });
});
