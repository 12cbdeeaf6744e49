/** Asks the extension for files, for an @-mention. */
import type { FileSearchResult } from "../shared/types";
import type { Bridge } from "./bridge";

/** An answer is found by its query; a later question makes an earlier one pointless, which is then answered with nothing. */
export class FileSearch {
  #waiting: { readonly query: string; readonly resolve: (results: readonly FileSearchResult[]) => void } | undefined;

  constructor(private readonly bridge: Bridge) {
    bridge.onMessage((message) => {
      if (message.type !== "SEARCH_RESULTS" || message.payload.query !== this.#waiting?.query) return;
      this.#waiting.resolve(message.payload.results);
      this.#waiting = undefined;
    });
  }

  async complete(query: string): Promise<string[]> {
    this.#waiting?.resolve([]);
    const results = await new Promise<readonly FileSearchResult[]>((resolve) => {
      this.#waiting = { query, resolve };
      this.bridge.post("FILE_SEARCH", { query });
    });
    return results.map(({ relativePath }) => relativePath);
  }
}
