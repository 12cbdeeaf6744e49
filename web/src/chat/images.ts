// Pictures from the clipboard, a drop or a file dialog, as content blocks.

import type { ImageBlock } from './acp';

const TYPES = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp']);
const MAX_BYTES = 5 * 1024 * 1024;

export async function readImages(files: Iterable<File>): Promise<{ images: ImageBlock[]; problem: string | null }> {
  const images: ImageBlock[] = [];
  let problem: string | null = null;
  for (const file of files) {
    if (!TYPES.has(file.type)) problem = `Only PNG, JPEG, GIF and WebP pictures can be attached: ${file.name}`;
    else if (file.size > MAX_BYTES) problem = `A picture may have at most 5 MB: ${file.name}`;
    else images.push({ type: 'image', mimeType: file.type, data: base64(new Uint8Array(await file.arrayBuffer())) });
  }
  return { images, problem };
}

function base64(bytes: Uint8Array): string {
  let text = '';
  for (let at = 0; at < bytes.length; at += 0x8000) text += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  return btoa(text);
}
