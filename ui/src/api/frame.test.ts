import assert from "node:assert/strict";
import { test } from "node:test";
import { encodeFrame } from "../../test/double/encode_frame.ts";
import { decodeFrame } from "./frame.ts";
import type { Frame } from "./types.ts";

const frame: Frame = {
  gen: 7, t0: 1_000_000_000_123, t1: 1_000_000_001_000, step: 4,
  entries: [
    {
      lane: 2, row: 1, kind: "slices", count: 3, start: Float32Array.of(-5, 0, 16), dur: Float32Array.of(2.5, 0, 9), slice: Uint32Array.of(1, 4_000_000_000, 3),
      name: Uint32Array.of(9, 8, 7), folded: Uint32Array.of(1, 1, 12), coverage: Uint8Array.of(255, 255, 40), kinds: Uint8Array.of(4, 5, 6), flags: Uint8Array.of(2, 4, 0),
    },
    { lane: 5, row: 0, kind: "counter", count: 1, start: Float32Array.of(3), min: Float32Array.of(1), max: Float32Array.of(8), last: Float32Array.of(2) },
    {
      lane: 6, row: 0, kind: "slices", count: 0, start: new Float32Array(0), dur: new Float32Array(0), slice: new Uint32Array(0), name: new Uint32Array(0),
      folded: new Uint32Array(0), coverage: new Uint8Array(0), kinds: new Uint8Array(0), flags: new Uint8Array(0),
    },
  ],
};

test("a frame is read as it was written", () => {
  assert.deepEqual(decodeFrame(encodeFrame(frame), frame.t1), frame);
});

test("other bytes are refused with a sentence", () => {
  assert.throws(() => decodeFrame(new ArrayBuffer(8), 0), /not a frame/);
  assert.throws(() => decodeFrame(new ArrayBuffer(64), 0), /not a frame/);
  const cut = encodeFrame(frame).slice(0, 90);
  assert.throws(() => decodeFrame(cut, 0));
});
