/** Which links may leave the webview. */

const ALLOWED = new Set(["http:", "https:", "mailto:"]);

/** The link as it will be opened, or undefined when its scheme is none of http, https and mailto. */
export function externalLink(url: string): string | undefined {
  let parsed: URL;
  try {
    parsed = new URL(url);
  } catch {
    return undefined;
  }
  return ALLOWED.has(parsed.protocol) ? parsed.href : undefined;
}
