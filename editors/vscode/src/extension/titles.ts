/** Titles of sessions, from their first message. */

export const MAX_TITLE = 50;
export const DEFAULT_TITLE = "New Session";
const ELLIPSIS = "...";

/** At most fifty characters, cut between words where that is possible, with `...` when something was left out. */
export function sessionTitle(firstMessage: string): string {
  const text = firstMessage.trim().replace(/\s+/g, " ");
  if (text === "") return DEFAULT_TITLE;
  // Counted in characters as a reader sees them, so that no emoji is cut in half.
  const characters = [...text];
  if (characters.length <= MAX_TITLE) return text;
  const room = MAX_TITLE - ELLIPSIS.length;
  const cut = characters.slice(0, room).join("");
  const endsAWord = characters[room] === " ";
  const space = cut.lastIndexOf(" ");
  const kept = endsAWord || space <= 0 ? cut : cut.slice(0, space);
  return `${kept.trimEnd()}${ELLIPSIS}`;
}
