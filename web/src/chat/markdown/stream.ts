// Markdown that still grows: only ever appended to, never parsed again.

import * as smd from 'streaming-markdown';

import { safeImage, safeLink } from './links';

export class MarkdownStream {
  #parser: smd.Parser;
  #written = 0;
  #broken = false;

  constructor(private readonly root: HTMLElement) {
    const renderer = smd.default_renderer(root);
    this.#parser = smd.parser({ ...renderer, set_attr: setSafeAttribute });
  }

  /** Shows what `text` has more than at the last call. */
  write(text: string): void {
    const more = text.slice(this.#written);
    this.#written = text.length;
    if (more === '') return;
    if (this.#broken) {
      this.root.append(more);
      return;
    }
    try {
      smd.parser_write(this.#parser, more);
    } catch {
      // The parser gives up beyond 24 levels of nesting: what follows is plain until the part is complete.
      this.#broken = true;
      this.root.append(more);
    }
  }
}

function setSafeAttribute(data: smd.Default_Renderer_Data, type: smd.Attr, value: string): void {
  if (type === smd.HREF) {
    const link = safeLink(value);
    const node = data.nodes[data.index];
    if (link === null || !node) return;
    node.setAttribute('href', link);
    node.setAttribute('target', '_blank');
    node.setAttribute('rel', 'noopener noreferrer');
  } else if (type === smd.SRC) {
    const image = safeImage(value);
    if (image !== null) smd.default_set_attr(data, type, image);
  } else {
    smd.default_set_attr(data, type, value);
  }
}
