// Notifications of the browser, for questions that come while nobody looks.

import type { InboxEntry } from './server.svelte';

export function canNotify(): boolean {
  return 'Notification' in globalThis && isSecureContext;
}

export async function askToNotify(): Promise<boolean> {
  return canNotify() && (await Notification.requestPermission()) === 'granted';
}

export function notifyOf({ chat, request }: InboxEntry, open: () => void): void {
  if (!canNotify() || Notification.permission !== 'granted' || !document.hidden) return;
  const what = request.type === 'permission' ? (request.params.toolCall.title ?? 'A tool asks') : request.params.message;
  const shown = new Notification(chat.state.title ?? 'gander', { body: what, tag: request.id });
  shown.onclick = () => {
    focus();
    open();
    shown.close();
  };
}
