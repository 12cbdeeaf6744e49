// Markdown that is complete: one proper rendering, in which nothing of the text can become markup of its own.

import MarkdownIt from 'markdown-it';
import { words } from '../words';

import { safeImage, safeLink } from './links';

// Line ends are kept, as they are while the text grows: it must not jump when it is complete.
const markdown = new MarkdownIt({ html: false, linkify: true, breaks: true });
markdown.validateLink = (address) => safeLink(address) !== null || safeImage(address) !== null;

markdown.renderer.rules.link_open = (tokens, at, options, _env, self) => {
  const token = tokens[at];
  token?.attrSet('target', '_blank');
  token?.attrSet('rel', 'noopener noreferrer');
  return self.renderToken(tokens, at, options);
};

// Other pictures are links, which a person may follow.
markdown.renderer.rules.image = (tokens, at) => {
  const token = tokens[at];
  const [source, label] = [String(token?.attrGet('src') ?? ''), markdown.utils.escapeHtml(token?.content || 'image')];
  if (safeImage(source)) return `<img src="${markdown.utils.escapeHtml(source)}" alt="${label}">`;
  return `<a href="${markdown.utils.escapeHtml(source)}" target="_blank" rel="noopener noreferrer">${label}</a>`;
};

// The language goes along for the highlighter, which comes later and only if it is needed.
markdown.renderer.rules.fence = (tokens, at) => {
  const token = tokens[at];
  return codeBlock(token?.content ?? '', (token?.info ?? '').trim().split(/\s+/)[0] ?? '');
};
markdown.renderer.rules.code_block = (tokens, at) => codeBlock(tokens[at]?.content ?? '', '');
markdown.renderer.rules.table_open = () => '<div class="table"><table>';
markdown.renderer.rules.table_close = () => '</table></div>';

export function renderMarkdown(text: string): string {
  return markdown.render(text);
}

export function escapeHtml(text: string): string {
  return markdown.utils.escapeHtml(text);
}

function codeBlock(code: string, language: string): string {
  const name = escapeHtml(language);
  const head = `<div class="code-head"><span>${name || 'text'}</span>`
    + `<button type="button" class="copy" aria-label="${escapeHtml(words.copyCode)}">${escapeHtml(words.copy)}</button></div>`;
  return `<div class="code">${head}<pre tabindex="0"><code data-language="${name}">${escapeHtml(code)}</code></pre></div>`;
}
