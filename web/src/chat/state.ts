// What a chat shows: plain data, replaced and never changed in place.

import type {
  Agent, Command, ConfigOption, ContentBlock, ElicitationParams, ModeState, PermissionParams, PlanEntry, StopReason,
  ToolCallFields, Usage,
} from './acp';

export interface MessageItem {
  type: 'message';
  id: string;
  messageId: string | null;
  role: 'user' | 'agent';
  blocks: ContentBlock[];
  /** It may still grow. */
  open: boolean;
}
export interface ThoughtItem { type: 'thought'; id: string; messageId: string | null; text: string; open: boolean }
export interface ToolItem extends Required<{ [K in keyof ToolCallFields]: NonNullable<ToolCallFields[K]> | null }> {
  type: 'tool';
  id: string;
  toolCallId: string;
}
export interface NoticeItem {
  type: 'notice';
  id: string;
  severity: 'info' | 'warning' | 'error';
  title: string;
  description: string | null;
}
export type Item = MessageItem | ThoughtItem | ToolItem | NoticeItem;

/** A question of the agent that waits for an answer. Its id is that of the JSON-RPC request. */
export type OpenRequest =
  | { type: 'permission'; id: string; params: PermissionParams }
  | { type: 'elicitation'; id: string; params: ElicitationParams };

export interface ChatState {
  items: readonly Item[];
  plan: readonly PlanEntry[];
  commands: readonly Command[];
  modes: ModeState | null;
  agents: readonly Agent[];
  configOptions: readonly ConfigOption[];
  title: string | null;
  usage: Usage | null;
  requests: readonly OpenRequest[];
  running: boolean;
  stopReason: StopReason | null;
  /** How many items were ever made: the next one's name. */
  made: number;
  /** Where the part of the conversation ends that comes before these items; null: there is none, or nobody said. */
  earlier: string | null;
}

export function emptyChat(): ChatState {
  return {
    items: [], plan: [], commands: [], modes: null, agents: [], configOptions: [], title: null, usage: null, requests: [],
    running: false, stopReason: null, made: 0, earlier: null,
  };
}
