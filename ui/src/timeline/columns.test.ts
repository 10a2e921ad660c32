import assert from "node:assert/strict";
import { test } from "node:test";
import type { CounterEntry } from "../api/types.ts";
import { fillColumns } from "./columns.ts";

function columns(values: [at: number, value: number][], width: number, endNs: number, x0 = 0): number[] {
  const numbers = Float32Array.from(values, ([, value]) => value);
  const entry: CounterEntry = { lane: 0, row: 0, kind: "counter", count: values.length, start: Float32Array.from(values, ([at]) => at), min: numbers, max: numbers, last: numbers };
  const tops = new Float32Array(width).fill(9); // of the picture before
  fillColumns(tops, entry, 0, { x0, perPixel: 10, width }, endNs);
  return [...tops];
}

test("a value holds until the next, and the last until the end of the trace", () => {
  assert.deepEqual(columns([[10, 2], [30, 5]], 6, 50), [0, 2, 2, 5, 5, 0]);
});

test("a pixel has its largest value, however short that holds", () => {
  assert.deepEqual(columns([[0, 1], [14, 7], [15, 1], [21, 0]], 3, 30), [1, 7, 1]);
});

test("values before and after the window have no pixel, and what reaches into it has", () => {
  assert.deepEqual(columns([[0, 3], [25, 4], [90, 8]], 3, 100, 20), [4, 4, 4]);
  assert.deepEqual(columns([[0, 3], [5, 1]], 3, 10, 20), [0, 0, 0]);
});
