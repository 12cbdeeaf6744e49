// Which addresses of untrusted text become links.

const ALLOWED = new Set(['http:', 'https:', 'mailto:']);

/** The address if it may be followed, else null. Relative addresses would lead into this page, so they are none. */
export function safeLink(address: string): string | null {
  try {
    const url = new URL(address);
    return ALLOWED.has(url.protocol) ? url.href : null;
  } catch {
    return null;
  }
}

/** Pictures come along in the text or not at all: nothing is fetched because an answer says so. */
export function safeImage(address: string): string | null {
  return /^data:image\/(?:png|jpeg|gif|webp|avif);base64,[A-Za-z0-9+/=\s]+$/.test(address) ? address : null;
}
