/** What is known of tool calls: enough to show the change that one made or proposes. */
import { isAbsolute, join } from "node:path";
import type { SessionUpdate, ToolCallUpdate } from "@agentclientprotocol/sdk";
import { isRecord, isString } from "../shared/guards";

/** Old calls are forgotten: their cards still show the change, only the diff editor is not offered any more. */
export const MAX_TOOL_CALLS = 500;

export interface FileChange {
  readonly path: string;
  readonly oldText: string;
  readonly newText: string;
}

export class ToolCalls {
  readonly #calls = new Map<string, ToolCallUpdate>();

  handleUpdate(update: SessionUpdate): void {
    if (update.sessionUpdate === "tool_call" || update.sessionUpdate === "tool_call_update") this.merge(update);
  }

  /** Fields that are absent or null leave what was known. */
  merge(call: ToolCallUpdate): ToolCallUpdate {
    const known = this.#calls.get(call.toolCallId) ?? {};
    const given = Object.fromEntries(Object.entries(call).filter(([, value]) => value !== undefined && value !== null));
    const merged = { ...known, ...given, toolCallId: call.toolCallId } as ToolCallUpdate;
    this.#calls.delete(call.toolCallId);
    this.#calls.set(call.toolCallId, merged);
    if (this.#calls.size > MAX_TOOL_CALLS) {
      const [oldest] = this.#calls.keys();
      if (oldest !== undefined) this.#calls.delete(oldest);
    }
    return merged;
  }

  find(toolCallId: string): ToolCallUpdate | undefined {
    return this.#calls.get(toolCallId);
  }
}

/** Reads a file as the editor has it; undefined when there is none. */
export type ReadFile = (path: string) => Promise<string | undefined>;

/**
 * The change that a tool call made or would make. Agents send a diff when the change is made; what an approval is asked for is often
 * known by the input alone, whose usual forms are read here: `content` writes a file, `old` and `new` replace a piece of it.
 */
export async function fileChange(call: ToolCallUpdate, cwd: string, readFile: ReadFile): Promise<FileChange | undefined> {
  for (const part of call.content ?? []) {
    if (part.type === "diff") return { path: part.path, oldText: part.oldText ?? "", newText: part.newText };
  }
  const input = call.rawInput;
  if (!isRecord(input) || call.kind !== "edit") return undefined;
  const given = textOf(input, ["path", "file_path", "filePath"]) ?? call.locations?.[0]?.path;
  if (given === undefined) return undefined;
  const path = isAbsolute(given) ? given : join(cwd, given);
  const present = await readFile(path);
  const whole = textOf(input, ["content", "file_text", "text"]);
  if (whole !== undefined) return { path, oldText: present ?? "", newText: whole };
  const before = textOf(input, ["old", "old_str", "old_string", "before"]);
  const after = textOf(input, ["new", "new_str", "new_string", "after"]);
  if (present === undefined || before === undefined || after === undefined || !present.includes(before)) return undefined;
  const at = present.indexOf(before);
  return { path, oldText: present, newText: present.slice(0, at) + after + present.slice(at + before.length) };
}

function textOf(input: Record<string, unknown>, names: readonly string[]): string | undefined {
  return names.map((name) => input[name]).find(isString);
}
