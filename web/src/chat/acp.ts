// The part of the Agent Client Protocol (version 1) that a chat shows, as types.

export interface TextBlock { type: 'text'; text: string }
export interface ImageBlock { type: 'image'; data: string; mimeType: string; uri?: string | null }
export interface AudioBlock { type: 'audio'; data: string; mimeType: string }
export interface ResourceLinkBlock { type: 'resource_link'; uri: string; name: string; title?: string | null; mimeType?: string | null }
export interface ResourceBlock {
  type: 'resource';
  resource: { uri: string; mimeType?: string | null; text?: string; blob?: string };
}
export type ContentBlock = TextBlock | ImageBlock | AudioBlock | ResourceLinkBlock | ResourceBlock;

export type ToolKind =
  | 'read' | 'edit' | 'delete' | 'move' | 'search' | 'execute' | 'think' | 'fetch' | 'switch_mode' | 'other';
export type ToolStatus = 'pending' | 'in_progress' | 'completed' | 'failed';
export interface DiffContent { type: 'diff'; path: string; oldText?: string | null; newText: string }
export type ToolContent =
  | { type: 'content'; content: ContentBlock }
  | DiffContent
  | { type: 'terminal'; terminalId: string };
export interface ToolLocation { path: string; line?: number | null }

export interface ToolCallFields {
  title?: string | null;
  name?: string | null;
  kind?: ToolKind | null;
  status?: ToolStatus | null;
  content?: ToolContent[] | null;
  locations?: ToolLocation[] | null;
  rawInput?: unknown;
  rawOutput?: unknown;
}

export interface PlanEntry {
  content: string;
  priority: 'high' | 'medium' | 'low';
  status: 'pending' | 'in_progress' | 'completed';
}
export interface Command { name: string; description: string; input?: { hint?: string } | null }
export interface Mode { id: string; name: string; description?: string | null }
export interface ModeState { currentModeId: string; availableModes: Mode[] }
export interface ConfigChoice { value: string; name: string; description?: string | null }
export interface ConfigGroup { group: string; name: string; options: ConfigChoice[] }
export interface ConfigOption {
  id: string;
  name: string;
  description?: string | null;
  category?: string | null;
  type: 'select' | 'boolean';
  currentValue: string | boolean;
  options?: (ConfigChoice | ConfigGroup)[];
}
/** An agent that a session can be set to, by one of its modes; the first is its default. Not part of the protocol. */
export interface Agent { name: string; title: string; description?: string | null; modes: string[] }
export interface Usage { used: number; size: number; cost?: { amount: number; currency: string } | null }

interface Chunk { content: ContentBlock; messageId?: string | null }
export type SessionUpdate =
  | ({ sessionUpdate: 'user_message_chunk' | 'agent_message_chunk' | 'agent_thought_chunk' } & Chunk)
  | ({ sessionUpdate: 'tool_call' | 'tool_call_update'; toolCallId: string } & ToolCallFields)
  | { sessionUpdate: 'plan'; entries: PlanEntry[] }
  | { sessionUpdate: 'available_commands_update'; availableCommands: Command[] }
  | { sessionUpdate: 'current_mode_update'; currentModeId: string }
  | { sessionUpdate: 'config_option_update'; configOptions: ConfigOption[] }
  | { sessionUpdate: 'session_info_update'; title?: string | null; updatedAt?: string | null }
  | ({ sessionUpdate: 'usage_update' } & Usage)
  | { sessionUpdate: 'notice'; severity: 'info' | 'warning' | 'error'; title: string; description?: string | null }
  | { sessionUpdate: 'compaction_update'; compactionId: string; status: string; summary?: ContentBlock[] | null };

export type StopReason = 'end_turn' | 'max_tokens' | 'max_turn_requests' | 'refusal' | 'cancelled';

export interface PermissionOption {
  optionId: string;
  name: string;
  kind: 'allow_once' | 'allow_always' | 'reject_once' | 'reject_always';
}
export interface PermissionParams {
  sessionId: string;
  toolCall: { toolCallId: string } & ToolCallFields;
  options: PermissionOption[];
  _meta?: Record<string, unknown> | null;
}
export interface ElicitationParams {
  sessionId?: string;
  toolCallId?: string;
  message: string;
  mode: 'form' | 'url';
  requestedSchema?: FormSchema;
  elicitationId?: string;
  url?: string;
  _meta?: Record<string, unknown> | null;
}
export interface FormProperty {
  type?: string;
  title?: string;
  description?: string;
  default?: unknown;
  enum?: string[];
  enumNames?: string[];
  oneOf?: { const: string; title?: string }[];
  items?: { enum?: string[]; anyOf?: { const: string; title?: string }[] };
  format?: string;
  minLength?: number;
  maxLength?: number;
  minimum?: number;
  maximum?: number;
  minItems?: number;
  maxItems?: number;
}
export interface FormSchema { type?: string; properties?: Record<string, FormProperty>; required?: string[] }

/** What a session says about itself when it is made or opened. */
export interface SessionOpened { modes?: ModeState | null; configOptions?: ConfigOption[] | null; _meta?: Record<string, unknown> | null }
export interface SessionInfo {
  sessionId: string;
  cwd: string;
  title?: string | null;
  updatedAt?: string | null;
  _meta?: Record<string, unknown> | null;
}
