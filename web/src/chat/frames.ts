// Gathers what comes within an animation frame or two, so that a burst of deltas is one change of the page.

/**
 * The least time between two flushes, in milliseconds: text that grows thirty times a second reads like text that grows sixty times,
 * and every other frame is left to scrolling and typing.
 */
const MIN_INTERVAL = 24;

/** Calls `flush` with all that was pushed, at the next frame; a hidden page has no frames, so a timer stands in. */
export class FrameQueue<T> {
  #waiting: T[] = [];
  #flushed = -Infinity;
  #frame = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly flush: (batch: T[]) => void) {}

  push(item: T): void {
    this.#waiting.push(item);
    if (this.#waiting.length > 1) return;
    this.#frame = requestAnimationFrame(this.#tick);
    this.#timer = setTimeout(() => this.flushNow(), 250);
  }

  #tick = (now: number): void => {
    if (now - this.#flushed < MIN_INTERVAL) {
      this.#frame = requestAnimationFrame(this.#tick);
      return;
    }
    this.#flushed = now;
    this.flushNow();
  };

  flushNow(): void {
    cancelAnimationFrame(this.#frame);
    clearTimeout(this.#timer);
    if (this.#waiting.length === 0) return;
    const batch = this.#waiting;
    this.#waiting = [];
    this.flush(batch);
  }
}
