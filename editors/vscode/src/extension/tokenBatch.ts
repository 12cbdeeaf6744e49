/** Joins the tokens that arrive together, so that a burst is one message to the webview. */

export interface Scheduler {
  (run: () => void): void;
}

/** One animation frame: more often nobody could see it. */
export const FRAME_MS = 16;

/**
 * Tokens of one message are joined for the time of a frame. An agent can be quicker than a window on a busy machine: messages that
 * wait in between would keep a cancellation waiting, too. Whoever sends anything else to the webview calls `flush` first: the order
 * of what the agent said is kept.
 */
export class TokenBatch {
  #messageId: string | undefined;
  #text = "";
  #scheduled = false;

  constructor(private readonly send: (messageId: string, token: string) => void, private readonly schedule: Scheduler = nextFrame) {}

  push(messageId: string, token: string): void {
    if (this.#messageId !== messageId) this.flush();
    this.#messageId = messageId;
    this.#text += token;
    if (this.#scheduled) return;
    this.#scheduled = true;
    this.schedule(() => {
      this.#scheduled = false;
      this.flush();
    });
  }

  flush(): void {
    const messageId = this.#messageId;
    const text = this.#text;
    this.#messageId = undefined;
    this.#text = "";
    if (messageId !== undefined && text !== "") this.send(messageId, text);
  }
}

function nextFrame(run: () => void): void {
  setTimeout(run, FRAME_MS);
}
