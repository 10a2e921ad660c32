import assert from "node:assert/strict";
import { test } from "node:test";
import type { FrameEntry } from "../api/types.ts";
import { fillStrip, makeStrip } from "./strips.ts";

function entry(cells: { start: number; dur: number; kind?: number; folded?: number; coverage?: number }[]): FrameEntry {
  return {
    lane: 0, row: 0, kind: "slices", count: cells.length,
    start: Float32Array.from(cells, (cell) => cell.start), dur: Float32Array.from(cells, (cell) => cell.dur),
    slice: Uint32Array.from(cells, (_, index) => index), name: new Uint32Array(cells.length),
    folded: Uint32Array.from(cells, (cell) => cell.folded ?? 1), coverage: Uint8Array.from(cells, (cell) => cell.coverage ?? 255),
    kinds: Uint8Array.from(cells, (cell) => cell.kind ?? 0), flags: new Uint8Array(cells.length),
  };
}
const always = () => true;

test("wide events are rectangles, narrow ones pixels", () => {
  const strip = makeStrip(10);
  const wide: number[] = [];
  const any = fillStrip(strip, entry([{ start: 0, dur: 50 }, { start: 60, dur: 5 }]), 0, { x0: 0, perPixel: 10, width: 10 }, always, (index) => wide.push(index));
  assert.deepEqual(wide, [0]);
  assert.equal(any, true);
  assert.equal(strip.busy[6], 0.5);
  assert.equal(strip.busy[7], 0);
});

test("an event of no length leaves a trace", () => {
  const strip = makeStrip(4);
  fillStrip(strip, entry([{ start: 25, dur: 0 }]), 0, { x0: 0, perPixel: 10, width: 4 }, always, () => undefined);
  assert.ok(strip.busy[2] > 0);
});

test("a pixel has the kind of its largest part", () => {
  const strip = makeStrip(2);
  fillStrip(strip, entry([{ start: 0, dur: 2, kind: 4 }, { start: 3, dur: 5, kind: 6 }, { start: 8.5, dur: 1, kind: 0 }]), 0, { x0: 0, perPixel: 10, width: 2 }, always, () => undefined);
  assert.equal(strip.kind[0], 6);
  assert.ok(Math.abs(strip.busy[0] - 0.8) < 1e-6);
});

test("what is lit wins its pixel against what is longer", () => {
  const strip = makeStrip(1);
  fillStrip(strip, entry([{ start: 0, dur: 8, kind: 4 }, { start: 8.5, dur: 0.5, kind: 6 }]), 0, { x0: 0, perPixel: 10, width: 1 }, (index) => index === 1, () => undefined);
  assert.deepEqual([strip.kind[0], strip.lit[0]], [6, 1]);
});

test("a folded cell is as pale as its events are few", () => {
  const strip = makeStrip(4);
  fillStrip(strip, entry([{ start: 0, dur: 40, folded: 9, coverage: 51 }]), 0, { x0: 0, perPixel: 10, width: 4 }, always, () => assert.fail("no rectangle"));
  for (const busy of strip.busy) assert.ok(Math.abs(busy - 0.2) < 1e-6);
});

test("busy time in pixels is the busy time of the events, on random rows", () => {
  let seed = 7;
  const random = () => (seed = (seed * 16807) % 2147483647) / 2147483647;
  for (let round = 0; round < 50; round += 1) {
    const cells = [];
    for (let at = 0; at < 900;) {
      const dur = 1 + random() * 20;
      cells.push({ start: at, dur });
      at += dur + random() * 10;
    }
    const inside = cells.filter((cell) => cell.start + cell.dur <= 1000);
    const strip = makeStrip(100);
    let wide = 0;
    fillStrip(strip, entry(inside), 0, { x0: 0, perPixel: 10, width: 100 }, always, (index) => { wide += inside[index].dur; });
    const drawn = strip.busy.reduce((sum, busy) => sum + busy, 0) * 10;
    const busy = inside.reduce((sum, cell) => sum + cell.dur, 0) - wide;
    assert.ok(Math.abs(drawn - busy) < busy * 0.02 + 1, `${drawn} of ${busy}`);
  }
});
