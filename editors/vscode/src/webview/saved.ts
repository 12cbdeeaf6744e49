/** What the webview saves, so that one that is created again looks as the one before. */
import { isArrayOf, isObject, isRecord, isString } from "../shared/guards";
import { isContextChip } from "../shared/messages";
import type { ContextChip } from "../shared/types";
import type { ViewState } from "./reducer";

export interface SavedState {
  readonly schemaVersion: 1;
  readonly view: ViewState;
  readonly chips: readonly ContextChip[];
  readonly cwd: string;
}

const isView = (value: unknown): value is ViewState =>
  isRecord(value) && isRecord(value["chat"]) && Array.isArray(value["chat"]["items"]) && Array.isArray(value["chat"]["requests"]) && isString(value["inputValue"]);

export const isSavedState = isObject<SavedState>({
  required: { schemaVersion: (value): value is 1 => value === 1, view: isView, chips: isArrayOf(isContextChip), cwd: isString },
});

/** Questions are not saved: the extension asks those again that are still open. */
export function savedState(view: ViewState, chips: readonly ContextChip[], cwd: string): SavedState {
  return { schemaVersion: 1, view: { ...view, chat: { ...view.chat, requests: [] } }, chips, cwd };
}
