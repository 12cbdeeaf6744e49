// A tool call's input, output and end as text for people.

import type { PermissionParams, PlanEntry, ToolCallFields, Usage } from './acp';

/** The command for a command, else the arguments, one a line. */
export function inputText(call: Pick<ToolCallFields, 'rawInput' | 'kind'>): string {
  const input = call.rawInput;
  if (input === null || input === undefined) return '';
  if (typeof input === 'string') return input;
  if (typeof input !== 'object') return String(input);
  const command = commandText(call);
  if (command !== null) return `$ ${command}`;
  const lines = Object.entries(input).map(([name, value]) => `${name}: ${shown(value)}`);
  return lines.join('\n');
}

/** The command line that a call runs; null if it runs none. */
export function commandText({ rawInput, kind }: Pick<ToolCallFields, 'rawInput' | 'kind'>): string | null {
  if (kind !== 'execute' || typeof rawInput !== 'object' || rawInput === null) return null;
  const command = (rawInput as Record<string, unknown>)['command'];
  return typeof command === 'string' ? command : null;
}

function shown(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value, null, 2);
}

/** All text that the tool gave. */
export function outputText(call: Pick<ToolCallFields, 'content'>): string {
  const texts = (call.content ?? []).map((part) =>
    part.type === 'content' && part.content.type === 'text' ? part.content.text : '',
  );
  return texts.filter((text) => text !== '').join('\n').replace(/\n$/, '');
}

export function exitCode(call: Pick<ToolCallFields, 'rawOutput'>): number | null {
  const output = call.rawOutput as Record<string, unknown> | null | undefined;
  const code = typeof output === 'object' ? (output?.['exitCode'] ?? output?.['exit_code'] ?? output?.['exit']) : null;
  return typeof code === 'number' ? code : null;
}

export function formatTokens(count: number): string {
  if (count < 1000) return String(count);
  return count < 1_000_000 ? `${(count / 1000).toFixed(count < 10_000 ? 1 : 0)}k` : `${(count / 1_000_000).toFixed(1)}M`;
}

export function formatCost({ amount, currency }: NonNullable<Usage['cost']>): string {
  const places = amount < 0.1 ? 4 : 2;
  return currency === 'USD' ? `$${amount.toFixed(places)}` : `${amount.toFixed(places)} ${currency}`;
}

/** The plan that a permission request asks approval for, which may be changed in the answer. */
export function proposedPlan({ toolCall }: PermissionParams): PlanEntry[] | null {
  const items = (toolCall.rawInput as { items?: unknown } | null | undefined)?.items;
  if (toolCall.name !== 'propose_plan' || !Array.isArray(items)) return null;
  return items.map((item: unknown) => {
    const { text, content, priority } = (typeof item === 'object' && item ? item : { text: String(item) }) as {
      text?: string; content?: string; priority?: PlanEntry['priority'];
    };
    return { content: text ?? content ?? '', priority: priority ?? 'medium', status: 'pending' };
  });
}
