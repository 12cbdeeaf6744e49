/** The words of the view, given by the extension in the person's language. */
import { ENGLISH_WORDS, type Words } from "../../../../web/src/chat/words";
import { isRecord, isString } from "./guards";
import type { ProcessStatus } from "./types";

export const ENGLISH = {
  attach: "Attach to a running server",
  blocked: "The agent cannot be started",
  context: "Context",
  chat: ENGLISH_WORDS as Words,
  copy: "Copy the command",
  elsewhere: "elsewhere",
  historyUnavailable: "The agent cannot tell the history of this session.",
  install: "Install",
  lookAgain: "Look again",
  missing: "Install gander, or goose 1.16.0 or later, or tell where one is.",
  missingTitle: "No agent was found",
  newSession: "New session",
  outdated: "Found version {0}, but {1} or later is needed.",
  outdatedTitle: "The agent is too old",
  removeChip: "Remove {0}",
  restart: "Restart",
  session: "Session",
  setPath: "Set the path",
  showLog: "Show log",
  status: { error: "The agent does not run", running: "Running", starting: "The agent starts", stopped: "The agent is stopped" } as Record<ProcessStatus, string>,
  update: "Update",
  windowsHint: "gander has no native binary for Windows yet: install it inside WSL and open this folder there.",
};

export type Strings = typeof ENGLISH;

/** Strings of the page's own element; a text that is missing is English. */
export function readStrings(json: string | null): Strings {
  const given: unknown = parse(json);
  if (!isRecord(given)) return ENGLISH;
  const status = isRecord(given["status"]) ? { ...ENGLISH.status, ...texts(given["status"]) } : ENGLISH.status;
  const chat = isRecord(given["chat"]) ? { ...ENGLISH.chat, ...texts(given["chat"]) } : ENGLISH.chat;
  return { ...ENGLISH, ...texts(given), chat, status };
}

function texts(record: Record<string, unknown>): Record<string, string> {
  return Object.fromEntries(Object.entries(record).filter((entry): entry is [string, string] => isString(entry[1])));
}

function parse(json: string | null): unknown {
  try {
    return JSON.parse(json ?? "null");
  } catch {
    return null;
  }
}
