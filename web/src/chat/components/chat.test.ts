// The components in a document: a session is shown, a question answered, a message sent.

import { flushSync, mount, unmount } from 'svelte';
import { afterEach, describe, expect, it, vi } from 'vitest';

import { ChatSession } from '../session';
import Chat from './Chat.svelte';
import Elicitation from './Elicitation.svelte';
import Permission from './Permission.svelte';

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
