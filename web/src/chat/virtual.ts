// Which rows of a long list have to be in the document: heights that were measured, and a guess for the others.

export const ESTIMATED_HEIGHT = 96;

export interface Window { from: number; to: number; above: number; below: number }

/** The rows between `top - margin` and `top + height + margin`, and the empty space that stands for the others. */
export function visibleWindow(heights: ArrayLike<number>, top: number, height: number, margin: number): Window {
  const count = heights.length;
  let [from, above] = [0, 0];
  while (from < count && above + rowHeight(heights, from) < top - margin) {
    above += rowHeight(heights, from);
    from += 1;
  }
  let [to, end] = [from, above];
  while (to < count && end < top + height + margin) {
    end += rowHeight(heights, to);
    to += 1;
  }
  let below = 0;
  for (let at = to; at < count; at += 1) below += rowHeight(heights, at);
  return { from, to, above, below };
}

function rowHeight(heights: ArrayLike<number>, at: number): number {
  return heights[at] || ESTIMATED_HEIGHT;
}
