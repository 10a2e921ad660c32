// Events too narrow for a rectangle become pixels: how much of each pixel is busy, and with what. The cost is bounded by
// pixels and not by events.
import type { FrameEntry } from "../api/types.ts";

export const leastRectanglePixels = 3;

export interface Strip {
  busy: Float32Array; // share of the pixel, 0 to 1; may pass 1 by rounding
  kind: Uint8Array; // of the largest part
  lit: Uint8Array;
  part: Float32Array; // how large that part is
}

export function makeStrip(width: number): Strip {
  return { busy: new Float32Array(width), kind: new Uint8Array(width), lit: new Uint8Array(width), part: new Float32Array(width) };
}

export interface Scale { x0: number; perPixel: number; width: number } // ns at the left edge, ns a pixel, pixels

// Calls `wide` for what is a rectangle. Returns false if nothing was put into the strip.
export function fillStrip(
  strip: Strip, entry: FrameEntry, frameT0: number, scale: Scale, isLit: (index: number) => boolean, wide: (index: number, x: number, w: number) => void,
): boolean {
  strip.busy.fill(0);
  strip.part.fill(0);
  strip.lit.fill(0);
  let any = false;
  const offset = frameT0 - scale.x0;
  for (let index = 0; index < entry.count; index += 1) {
    const x = (offset + entry.start[index]) / scale.perPixel;
    const w = entry.dur[index] / scale.perPixel;
    if (x + w < 0 || x > scale.width) continue;
    if (entry.folded[index] <= 1 && w >= leastRectanglePixels) {
      wide(index, x, w);
      continue;
    }
    any = true;
    addToStrip(strip, x, w, entry.coverage[index] / 255, entry.kinds[index], isLit(index));
  }
  return any;
}

function addToStrip(strip: Strip, x: number, w: number, coverage: number, kind: number, lit: boolean): void {
  const first = Math.max(0, Math.floor(x));
  const last = Math.min(strip.busy.length - 1, Math.max(first, Math.ceil(x + w) - 1));
  for (let pixel = first; pixel <= last; pixel += 1) {
    const inside = Math.min(x + w, pixel + 1) - Math.max(x, pixel);
    // What is shorter than a pixel, or has no length at all, still leaves a trace.
    const part = Math.max(inside * coverage, 0.02);
    strip.busy[pixel] += part;
    if ((lit && strip.lit[pixel] === 0) || (part > strip.part[pixel] && (lit || strip.lit[pixel] === 0))) {
      strip.part[pixel] = part;
      strip.kind[pixel] = kind;
    }
    if (lit) strip.lit[pixel] = 1;
  }
}
