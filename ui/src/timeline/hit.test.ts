import assert from "node:assert/strict";
import { test } from "node:test";
import type { Frame, Lane } from "../api/types.ts";
import { hitTest, snap } from "./hit.ts";
import { layOut } from "./layout.ts";

const lane: Lane = { lane: 3, group: 0, kind: "gpu", title: "", rows: 2, slice_count: 3, busy_ns: 1, quiet: false };
const layout = layOut([lane], { folded: new Set(), expanded: new Set() });
const row = (number: number, start: number[], dur: number[]) => ({
  lane: 3, row: number, kind: "slices" as const, count: start.length, start: Float32Array.from(start), dur: Float32Array.from(dur),
  slice: Uint32Array.from(start, (_, index) => number * 100 + index), name: new Uint32Array(start.length), folded: new Uint32Array(start.length).fill(1),
  coverage: new Uint8Array(start.length), kinds: new Uint8Array(start.length), flags: new Uint8Array(start.length),
});
const frame: Frame = { gen: 1, t0: 1000, t1: 2000, step: 1, entries: [row(0, [0, 100, 100, 400], [50, 0, 200, 10]), row(1, [120], [30])] };
const slice = (at: number, y: number) => {
  const hit = hitTest(layout, frame, at, y, 1);
  return hit === null ? null : hit.entry.slice[hit.index];
};
const [first, second] = [layout.boxes[0].y + 2, layout.boxes[0].y + layout.boxes[0].rowHeight + 2];

test("a point finds the event under it, row by row", () => {
  assert.equal(slice(1020, first), 0);
  assert.equal(slice(1250, first), 2);
  assert.equal(slice(1130, second), 100);
  assert.equal(slice(1300, second), null);
});

test("an event of no length can be hit, and what is near counts", () => {
  assert.equal(slice(1098, first), 1);
  assert.equal(slice(1052, first), 0); // 2 ns past its end, within 3 pixels
  assert.equal(slice(1060, first), null);
});

test("measuring snaps to the nearer edge within reach", () => {
  const hit = hitTest(layout, frame, 1290, first, 1);
  assert.equal(snap(hit, 1290, 20), 1300);
  assert.equal(snap(hit, 1110, 20), 1100);
  assert.equal(snap(hit, 1200, 20), null);
});
