// What tools saved in a session, and how a version of it is shown.

export interface Artifact { name: string; versions: number; mimeType: string | null; updatedAt: string | null }
export interface ArtifactVersion { name: string; version: number; mimeType: string | null; text?: string; blob?: string }

export type Preview = 'html' | 'markdown' | 'image' | 'text' | 'none';

const IMAGES = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp', 'image/avif']);

/** By the media type, else by the end of the name. An SVG is shown as text: as a picture it could be a script. */
export function previewOf({ name, mimeType, text }: ArtifactVersion): Preview {
  const type = (mimeType ?? '').split(';')[0]?.trim().toLowerCase() ?? '';
  if (text === undefined) return IMAGES.has(type) ? 'image' : 'none';
  if (type === 'text/html' || (type === '' && /\.html?$/i.test(name))) return 'html';
  if (type === 'text/markdown' || ((type === '' || type === 'text/plain') && /\.(md|markdown)$/i.test(name))) return 'markdown';
  return 'text';
}

/** As a file to keep. */
export function fileOf({ name, mimeType, text, blob }: ArtifactVersion): File {
  const parts = text === undefined ? Uint8Array.from(atob(blob ?? ''), (letter) => letter.charCodeAt(0)) : text;
  return new File([parts], name.split('/').at(-1) ?? name, { type: mimeType ?? 'application/octet-stream' });
}
