// Which cell lies under a point.
import type { Frame, FrameEntry } from "../api/types.ts";
import { upperBound } from "../base/numbers.ts";
import { boxAt, rowAt, type Layout, type LaneBox } from "./layout.ts";

export interface Hit { box: LaneBox; row: number; entry: FrameEntry; index: number; start: number; dur: number }

const reachPixels = 3;

export function entryOf(frame: Frame, lane: number, row: number): FrameEntry | null {
  for (const entry of frame.entries) if (entry.lane === lane && entry.row === row && entry.kind === "slices") return entry;
  return null;
}

// `at` in ns of the trace, `y` from the top of the list of lanes.
export function hitTest(layout: Layout, frame: Frame | null, at: number, y: number, perPixel: number): Hit | null {
  const box = boxAt(layout, y);
  if (box === null || frame === null) return null;
  const row = rowAt(box, y);
  const entry = entryOf(frame, box.lane.lane, row);
  if (entry === null) return null;
  const found = nearest(entry, at - frame.t0, perPixel * reachPixels);
  if (found < 0) return null;
  return { box, row, entry, index: found, start: frame.t0 + entry.start[found], dur: entry.dur[found] };
}

function nearest(entry: FrameEntry, at: number, reach: number): number {
  const after = upperBound(entry.start, at);
  let best = -1;
  let distance = reach;
  // Cells of a row do not overlap, so only the ones around the point can be it; several of no length may begin together.
  for (let index = Math.max(0, after - 3); index < Math.min(entry.count, after + 2); index += 1) {
    const gap = Math.max(entry.start[index] - at, at - entry.start[index] - entry.dur[index], 0);
    if (gap < distance || (gap === 0 && best < 0)) {
      best = index;
      distance = gap;
    }
  }
  return best;
}

// The edge of an event nearest to a time, for measuring and areas; null: none within reach.
export function snap(hit: Hit | null, at: number, reach: number): number | null {
  if (hit === null) return null;
  const edges = [hit.start, hit.start + hit.dur];
  const best = edges.reduce((a, b) => (Math.abs(a - at) <= Math.abs(b - at) ? a : b));
  return Math.abs(best - at) <= reach ? best : null;
}
