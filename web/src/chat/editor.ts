// What an editor around the chat can open. The page has none: then nothing is offered.

import { getContext, setContext } from 'svelte';

export interface ChatEditor {
  openFile(path: string, line?: number): void;
  /** The change that a tool call made or asks for, in the editor's own diff view. */
  openDiff(toolCallId: string): void;
  openTerminal(terminalId: string): void;
}

const KEY = Symbol('chat editor');

/** Called by the component that holds the chat. */
export function provideEditor(editor: ChatEditor): void {
  setContext(KEY, editor);
}

export function usedEditor(): ChatEditor | undefined {
  return getContext<ChatEditor | undefined>(KEY);
}
