/** The words of the chat view in the person's language: the page has no access to VS Code's translations. */
import { ENGLISH, type Strings } from "../shared/strings";

export function viewStrings(t: (text: string) => string): Strings {
  const { chat, status, ...texts } = ENGLISH;
  return { ...translated(texts, t), chat: translated(chat, t), status: translated(status, t) };
}

function translated<T extends Record<string, string>>(texts: T, t: (text: string) => string): T {
  return Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, t(text)])) as T;
}
