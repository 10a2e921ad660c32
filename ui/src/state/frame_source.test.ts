import assert from "node:assert/strict";
import { test } from "node:test";
import type { Engine } from "../api/engine.ts";
import type { Frame, FrameRequest } from "../api/types.ts";
import { frameRange, FrameSource, frameServes } from "./frame_source.ts";

test("a frame reaches one window to each side, in steps of a power of two of at most a pixel", () => {
  const range = frameRange({ t0: 10_000, t1: 20_000 }, 1000, 1_000_000);
  assert.deepEqual(range, { t0: 0, t1: 30_000, step: 8 });
  const whole = frameRange({ t0: 0, t1: 1_000_000 }, 1000, 1_000_000);
  assert.deepEqual(whole, { t0: 0, t1: 1_000_001, step: 512 });
});

test("a frame serves while the window is inside of it and the zoom is the same", () => {
  const frame = { gen: 1, ...frameRange({ t0: 10_000, t1: 20_000 }, 1000, 1_000_000), entries: [] };
  assert.ok(frameServes(frame, { t0: 15_000, t1: 25_000 }, 1000, 1_000_000));
  assert.ok(!frameServes(frame, { t0: 25_000, t1: 35_000 }, 1000, 1_000_000));
  assert.ok(!frameServes(frame, { t0: 10_000, t1: 12_000 }, 1000, 1_000_000));
});

test("one question at a time, and the newest wish is asked next", async () => {
  const asked: FrameRequest[] = [];
  let answer: (() => void) | null = null;
  const engine = {
    frame: (request: FrameRequest) => {
      asked.push(request);
      return new Promise<Frame>((resolve) => { answer = () => resolve({ ...request, entries: [] }); });
    },
  } as unknown as Engine;
  const source = new FrameSource(() => engine, 0, () => 1_000_000);
  source.want({ t0: 0, t1: 1000 }, 100, [1]);
  source.want({ t0: 0, t1: 5_000 }, 100, [1]); // never asked: a newer wish came first
  source.want({ t0: 0, t1: 300_000 }, 100, [1]);
  assert.equal(asked.length, 1);
  (answer as (() => void) | null)?.();
  await new Promise((resolve) => setTimeout(resolve, 5));
  assert.equal(asked.length, 2);
  assert.equal(asked[1].step, 2048);
  (answer as (() => void) | null)?.();
  await new Promise((resolve) => setTimeout(resolve, 5));
  source.want({ t0: 10_000, t1: 310_000 }, 100, [1]); // inside of what is there
  assert.equal(asked.length, 2);
  source.want({ t0: 10_000, t1: 310_000 }, 100, [1, 2]); // another lane
  assert.equal(asked.length, 3);
});
