// The chat's reducer: what happened in a session in, what is shown out. Pure, and the same live and replayed.

import type { Agent, ContentBlock, SessionOpened, SessionUpdate, StopReason, ToolCallFields } from './acp';
import { type ChatState, emptyChat, type Item, type MessageItem, type OpenRequest, type ToolItem } from './state';

export type Action =
  | { type: 'update'; update: SessionUpdate }
  /** This client's own prompt: the agent does not echo it. */
  | { type: 'prompted'; blocks: ContentBlock[] }
  | { type: 'opened'; opened: SessionOpened }
  | { type: 'agents'; agents: readonly Agent[] }
  | { type: 'started' }
  | { type: 'ended'; stopReason: StopReason | null }
  | { type: 'failed'; title: string; description: string | null }
  | { type: 'asked'; request: OpenRequest }
  /** Answered here, answered elsewhere, or withdrawn. */
  | { type: 'settled'; id: string }
  /** A part of the conversation that comes before all items, and where the one before it ends. */
  | { type: 'earlier'; updates: readonly SessionUpdate[]; earlier: string | null };

/** Takes everything that happened since the last frame at once, so that the list is copied once. */
export function reduce(state: ChatState, actions: readonly Action[]): ChatState {
  if (actions.length === 0) return state;
  const draft: Draft = { ...state, items: state.items.slice() };
  for (const action of actions) apply(draft, action);
  return draft;
}

type Draft = Omit<ChatState, 'items'> & { items: Item[] };

function apply(draft: Draft, action: Action): void {
  switch (action.type) {
    case 'update': return applyUpdate(draft, action.update);
    case 'prompted':
      closeLast(draft);
      push(draft, (id) => ({ type: 'message', id, messageId: null, role: 'user', blocks: action.blocks, open: false }));
      draft.running = true;
      draft.stopReason = null;
      return;
    case 'opened':
      draft.modes = action.opened.modes ?? draft.modes;
      draft.configOptions = action.opened.configOptions ?? draft.configOptions;
      return;
    case 'agents':
      draft.agents = action.agents;
      return;
    case 'started':
      draft.running = true;
      draft.stopReason = null;
      return;
    case 'ended':
      closeLast(draft);
      // Two may say so: the answer to the prompt, and the server to everybody.
      if (draft.running || action.stopReason) draft.stopReason = action.stopReason;
      draft.running = false;
      return;
    case 'failed':
      closeLast(draft);
      draft.running = false;
      push(draft, (id) => ({
        type: 'notice', id, severity: 'error', title: action.title, description: action.description,
      }));
      return;
    case 'asked':
      // The same question may be sent again, with the reason why the last answer was none.
      draft.requests = [...draft.requests.filter((open) => open.id !== action.request.id), action.request];
      return;
    case 'settled':
      draft.requests = draft.requests.filter((open) => open.id !== action.id);
      return;
    case 'earlier':
      draft.items.unshift(...earlierItems(draft.items, action.updates));
      draft.earlier = action.earlier;
      return;
  }
}

/** Their names count backwards, so that those of the other items stay. */
function earlierItems(items: readonly Item[], updates: readonly SessionUpdate[]): Item[] {
  const part: Draft = { ...emptyChat(), items: [] };
  for (const update of updates) applyUpdate(part, update);
  closeLast(part);
  const first = Number(items[0]?.id.slice(1) ?? 0);
  return part.items.map((item, at) => ({ ...item, id: `i${first - part.items.length + at}` }));
}

function applyUpdate(draft: Draft, update: SessionUpdate): void {
  switch (update.sessionUpdate) {
    case 'user_message_chunk': return growMessage(draft, 'user', update.messageId ?? null, update.content);
    case 'agent_message_chunk': return growMessage(draft, 'agent', update.messageId ?? null, update.content);
    case 'agent_thought_chunk': return growThought(draft, update.messageId ?? null, update.content);
    case 'tool_call':
    case 'tool_call_update': return mergeTool(draft, update.toolCallId, update);
    case 'plan': draft.plan = update.entries; return;
    case 'available_commands_update': draft.commands = update.availableCommands; return;
    case 'current_mode_update':
      if (draft.modes) draft.modes = { ...draft.modes, currentModeId: update.currentModeId };
      return;
    case 'config_option_update': draft.configOptions = update.configOptions; return;
    case 'session_info_update':
      if (update.title !== undefined) draft.title = update.title;
      return;
    case 'usage_update': draft.usage = { used: update.used, size: update.size, cost: update.cost ?? null }; return;
    case 'notice':
      closeLast(draft);
      push(draft, (id) => ({
        type: 'notice', id, severity: update.severity, title: update.title, description: update.description ?? null,
      }));
      return;
    case 'compaction_update':
      closeLast(draft);
      push(draft, (id) => ({
        type: 'notice', id, severity: 'info', title: 'The conversation so far was summarised',
        description: (update.summary ?? []).map(plainText).join('\n') || null,
      }));
      return;
    // A kind of update that a later version of the protocol has: nothing to show.
  }
}

export function plainText(block: ContentBlock): string {
  switch (block.type) {
    case 'text': return block.text;
    case 'resource_link': return block.title ?? block.name;
    case 'resource': return block.resource.text ?? block.resource.uri;
    case 'image':
    case 'audio': return '';
  }
}

function growMessage(draft: Draft, role: 'user' | 'agent', messageId: string | null, block: ContentBlock): void {
  const last = draft.items.at(-1);
  // A message that was read from the history may still grow: its name says that it is the same.
  if (last?.type === 'message' && last.role === role && last.messageId === messageId && (last.open || messageId !== null)) {
    draft.items[draft.items.length - 1] = { ...last, blocks: joinBlock(last.blocks, block), open: true };
    return;
  }
  closeLast(draft);
  push(draft, (id): MessageItem => ({ type: 'message', id, messageId, role, blocks: [block], open: true }));
}

/** Text grows the text before it; everything else stands for itself. */
function joinBlock(blocks: ContentBlock[], block: ContentBlock): ContentBlock[] {
  const last = blocks.at(-1);
  if (block.type === 'text' && last?.type === 'text') {
    return [...blocks.slice(0, -1), { type: 'text', text: last.text + block.text }];
  }
  return [...blocks, block];
}

function growThought(draft: Draft, messageId: string | null, block: ContentBlock): void {
  const text = plainText(block);
  const last = draft.items.at(-1);
  if (last?.type === 'thought' && last.messageId === messageId && last.open) {
    draft.items[draft.items.length - 1] = { ...last, text: last.text + text };
    return;
  }
  closeLast(draft);
  push(draft, (id) => ({ type: 'thought', id, messageId, text, open: true }));
}

function mergeTool(draft: Draft, toolCallId: string, fields: ToolCallFields): void {
  const at = draft.items.findLastIndex((item) => item.type === 'tool' && item.toolCallId === toolCallId);
  const known = draft.items[at];
  if (known?.type === 'tool') {
    draft.items[at] = mergeFields(known, fields);
    return;
  }
  closeLast(draft);
  const empty = {
    title: null, name: null, kind: null, status: null, content: null, locations: null, rawInput: null, rawOutput: null,
  };
  push(draft, (id): ToolItem => mergeFields({ type: 'tool', id, toolCallId, ...empty }, fields));
}

/** A field that is absent or null leaves what was known. */
function mergeFields(tool: ToolItem, fields: ToolCallFields): ToolItem {
  return {
    ...tool,
    title: fields.title ?? tool.title,
    name: fields.name ?? tool.name,
    kind: fields.kind ?? tool.kind,
    status: fields.status ?? tool.status ?? 'pending',
    content: fields.content ?? tool.content,
    locations: fields.locations ?? tool.locations,
    rawInput: fields.rawInput ?? tool.rawInput,
    rawOutput: fields.rawOutput ?? tool.rawOutput,
  };
}

function push(draft: Draft, make: (id: string) => Item): void {
  draft.items.push(make(`i${draft.made}`));
  draft.made += 1;
}

/** What comes next begins a new item, so the last one is complete. */
function closeLast(draft: Draft): void {
  const last = draft.items.at(-1);
  if (last && last.type !== 'tool' && last.type !== 'notice' && last.open) {
    draft.items[draft.items.length - 1] = { ...last, open: false };
  }
}
