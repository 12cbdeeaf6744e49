// What is pushed within a frame or two is one batch; nothing waits for longer.

import { afterEach, describe, expect, it, vi } from 'vitest';

import { FrameQueue } from './frames';

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

describe('FrameQueue', () => {
  const queue = () => {
    const batches: number[][] = [];
    let callback: FrameRequestCallback | undefined;
    vi.useFakeTimers();
    vi.stubGlobal('requestAnimationFrame', (next: FrameRequestCallback) => {
      callback = next;
      return 1;
    });
    vi.stubGlobal('cancelAnimationFrame', () => (callback = undefined));
    const frame = (now: number) => {
      const due = callback;
      callback = undefined;
      due?.(now);
    };
    return { batches, frame, queue: new FrameQueue<number>((batch) => batches.push(batch)) };
  };

  it('flushes at the first frame, then at every other one', () => {
    const { batches, frame, queue: frames } = queue();
    frames.push(1);
    frames.push(2);
    frame(100);
    frames.push(3);
    frame(116);
    frames.push(4);
    expect(batches).toEqual([[1, 2]]);
    frame(133);
    expect(batches).toEqual([[1, 2], [3, 4]]);
  });

  it('does not wait for a frame when it is told to flush, or when there is none', () => {
    const { batches, queue: frames } = queue();
    frames.push(1);
    frames.flushNow();
    frames.push(2);
    vi.advanceTimersByTime(250);
    expect(batches).toEqual([[1], [2]]);
  });
});
