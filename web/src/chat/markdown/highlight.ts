// Colours for code, loaded when the first code block is complete. Colours are classes: the page allows no inline style.

import type { HighlighterCore, LanguageInput, ThemedToken } from 'shiki/core';

const LANGUAGES: Record<string, () => Promise<{ default: LanguageInput }>> = {
  bash: () => import('shiki/langs/bash.mjs'),
  c: () => import('shiki/langs/c.mjs'),
  css: () => import('shiki/langs/css.mjs'),
  diff: () => import('shiki/langs/diff.mjs'),
  docker: () => import('shiki/langs/docker.mjs'),
  go: () => import('shiki/langs/go.mjs'),
  html: () => import('shiki/langs/html.mjs'),
  ini: () => import('shiki/langs/ini.mjs'),
  java: () => import('shiki/langs/java.mjs'),
  javascript: () => import('shiki/langs/javascript.mjs'),
  json: () => import('shiki/langs/json.mjs'),
  kotlin: () => import('shiki/langs/kotlin.mjs'),
  lua: () => import('shiki/langs/lua.mjs'),
  markdown: () => import('shiki/langs/markdown.mjs'),
  python: () => import('shiki/langs/python.mjs'),
  rust: () => import('shiki/langs/rust.mjs'),
  sql: () => import('shiki/langs/sql.mjs'),
  swift: () => import('shiki/langs/swift.mjs'),
  toml: () => import('shiki/langs/toml.mjs'),
  typescript: () => import('shiki/langs/typescript.mjs'),
  tsx: () => import('shiki/langs/tsx.mjs'),
  xml: () => import('shiki/langs/xml.mjs'),
  yaml: () => import('shiki/langs/yaml.mjs'),
};

const ALIASES: Record<string, string> = {
  sh: 'bash', shell: 'bash', zsh: 'bash', console: 'bash', h: 'c', dockerfile: 'docker', js: 'javascript', mjs: 'javascript',
  jsx: 'tsx', ts: 'typescript', py: 'python', rs: 'rust', md: 'markdown', yml: 'yaml', kt: 'kotlin', patch: 'diff',
  conf: 'ini', jsonc: 'json', svg: 'xml',
};

/** More than this stays plain: colours are not worth a page that stands still. */
const MAX_CODE = 60_000;

let highlighter: Promise<HighlighterCore> | undefined;

async function open(): Promise<HighlighterCore> {
  const [core, engine] = await Promise.all([import('shiki/core'), import('shiki/engine/javascript')]);
  return core.createHighlighterCore({
    themes: [core.createCssVariablesTheme({ name: 'classes', variablePrefix: '--' })],
    langs: [],
    engine: engine.createJavaScriptRegexEngine({ forgiving: true }),
  });
}

export function knownLanguage(name: string): string | null {
  const lower = name.toLowerCase();
  const language = ALIASES[lower] ?? lower;
  return Object.hasOwn(LANGUAGES, language) ? language : null;
}

/** The language of a file by its name. */
export function languageOfPath(path: string): string | null {
  return knownLanguage(path.split('.').at(-1) ?? '');
}

/** Lines of coloured pieces, or null if the language is not known or the code is too long. */
export async function highlight(code: string, name: string): Promise<ThemedToken[][] | null> {
  const language = knownLanguage(name);
  const load = language === null ? undefined : LANGUAGES[language];
  if (language === null || !load || code.length > MAX_CODE) return null;
  highlighter ??= open();
  const opened = await highlighter;
  if (!opened.getLoadedLanguages().includes(language)) await opened.loadLanguage((await load()).default);
  return opened.codeToTokensBase(code, { lang: language, theme: 'classes' });
}

/** `var(--token-keyword)` as the class `tok-keyword`. */
export function tokenClass(token: Pick<ThemedToken, 'color'>): string {
  const name = /^var\(--(?:token-)?([a-z-]+)\)$/.exec(token.color ?? '');
  return name && name[1] !== 'foreground' ? `tok-${name[1]}` : '';
}

/** Replaces the plain text of code elements under `root` by coloured pieces. */
export async function highlightBlocks(root: HTMLElement): Promise<void> {
  for (const code of root.querySelectorAll<HTMLElement>('code[data-language]')) {
    const text = code.textContent ?? '';
    const lines = await highlight(text, code.dataset['language'] ?? '').catch(() => null);
    if (!lines || code.textContent !== text) continue;
    code.replaceChildren(...lines.flatMap((line, at) => [...line.map(piece), ...(at + 1 < lines.length ? ['\n'] : [])]));
    delete code.dataset['language'];
  }
}

function piece(token: ThemedToken): Node {
  const name = tokenClass(token);
  const text = document.createTextNode(token.content);
  if (name === '') return text;
  const span = document.createElement('span');
  span.className = name;
  span.append(text);
  return span;
}
