// A counter as columns of pixels: the largest value in each. A frame has thousands of values, whose rectangles would be a path that a
// machine without a GPU fills for milliseconds; columns cost what their pixels cost.
import type { CounterEntry } from "../api/types.ts";
import type { Scale } from "./strips.ts";

// Writes the largest value of each pixel to `tops`; 0 where there is none. A value holds until the next, the last until `endNs`. What holds
// for less than a pixel has one.
export function fillColumns(tops: Float32Array, entry: CounterEntry, frameT0: number, scale: Scale, endNs: number): void {
  tops.fill(0);
  const offset = frameT0 - scale.x0;
  const end = (endNs - scale.x0) / scale.perPixel;
  for (let index = 0; index < entry.count; index += 1) {
    const x0 = (offset + entry.start[index]) / scale.perPixel;
    const x1 = index + 1 < entry.count ? (offset + entry.start[index + 1]) / scale.perPixel : end;
    if (x1 < 0 || x0 >= scale.width || x1 < x0) continue;
    const value = Math.max(entry.max[index], entry.last[index]);
    const first = Math.max(0, Math.floor(x0));
    const last = Math.min(scale.width - 1, Math.max(first, Math.ceil(x1) - 1));
    for (let pixel = first; pixel <= last; pixel += 1) {
      if (value > tops[pixel]) tops[pixel] = value;
    }
  }
}
