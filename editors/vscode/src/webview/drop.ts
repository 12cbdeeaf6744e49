/** Files that were dropped on the input. */

/** What VS Code's explorer and other programs put into a drag, the editor's own form first. */
const TYPES = ["application/vnd.code.uri-list", "text/uri-list"] as const;

const MAX_DROPPED = 50;

/** The `file:` URIs of a drop, each once. */
export function droppedFiles(data: Pick<DataTransfer, "getData">): string[] {
  const lists = TYPES.map((type) => data.getData(type));
  const uris = lists.flatMap((list) => list.split(/\r?\n/)).map((line) => line.trim()).filter((line) => /^(file|vscode-remote):/.test(line));
  return [...new Set(uris)].slice(0, MAX_DROPPED);
}
