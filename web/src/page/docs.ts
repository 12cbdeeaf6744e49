// The documentation and the description of the routes, as the server has them.

/** The pages in the order in which somebody new would read them; the others follow by name. */
export const CONTENTS = [
  ['README', 'Contents'], ['cli', 'Command line'], ['configuration', 'Configuration'], ['editors', 'Editors'], ['agents', 'Agents and modes'],
  ['recipes', 'Recipes'], ['schedules', 'Schedules'], ['skills', 'Skills'], ['mcp', 'Extensions (MCP)'], ['sandbox', 'Sandbox'], ['tokens', 'Tokens'],
  ['http', 'HTTP'], ['acp', 'ACP'], ['acp-rest', 'ACP-REST'], ['a2a', 'A2A'], ['adk', 'ADK'], ['goose', 'goose'], ['conformance', 'Conformance'],
] as const;

/** A page's text with its links to other pages led here, and without its pictures, which the server does not have. */
export function linkPages(text: string, name: string, base: string): string {
  const folder = name.includes('/') ? name.slice(0, name.lastIndexOf('/') + 1) : '';
  const plain = text.replaceAll(/!\[([^\]]*)\]\([^)]*\)\n*/g, '');
  return plain.replaceAll(/\]\((?!https?:|mailto:|#)([^)#\s]+)(#[^)\s]*)?\)/g, (whole, path: string) => {
    const target = new URL(path, `http://docs/${folder}`).pathname.slice(1);
    return target.endsWith('.md') ? `](${base}#/docs/${target.slice(0, -3)})` : whole;
  });
}

export interface Operation {
  summary?: string;
  tags?: string[];
  security?: object[];
  'x-scope'?: string;
  requestBody?: unknown;
  responses?: Record<string, { description?: string; content?: Record<string, unknown> }>;
  externalDocs?: { url: string };
}
export interface Api {
  tags: { name: string; description: string; externalDocs?: { url: string } }[];
  paths: Record<string, Record<string, Operation>>;
  components?: unknown;
}
export interface Row { method: string; path: string; operation: Operation }

/** The routes of one protocol, by path. */
export function routesOf(api: Api, tag: string): Row[] {
  return Object.entries(api.paths).flatMap(([path, methods]) =>
    Object.entries(methods).filter(([, operation]) => operation.tags?.includes(tag)).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })));
}

/** Who may call it, in words. */
export function accessOf({ security, 'x-scope': scope }: Operation): string {
  if (!security || security.length === 0) return 'public';
  return security.length > 1 ? `${scope}, or open` : String(scope);
}
