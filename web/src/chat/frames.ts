// Gathers what comes within one animation frame, so that a burst of deltas is one change of the page.

/** Calls `flush` with all that was pushed, at the next frame; a hidden page has no frames, so a timer stands in. */
export class FrameQueue<T> {
  #waiting: T[] = [];
  #frame = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly flush: (batch: T[]) => void) {}

  push(item: T): void {
    this.#waiting.push(item);
    if (this.#waiting.length > 1) return;
    this.#frame = requestAnimationFrame(() => this.flushNow());
    this.#timer = setTimeout(() => this.flushNow(), 250);
  }

  flushNow(): void {
    cancelAnimationFrame(this.#frame);
    clearTimeout(this.#timer);
    if (this.#waiting.length === 0) return;
    const batch = this.#waiting;
    this.#waiting = [];
    this.flush(batch);
  }
}
