import assert from "node:assert/strict";
import { test } from "node:test";
import type { Engine } from "../api/engine.ts";
import type { Step, TraceMeta } from "../api/types.ts";
import { Steps } from "./steps.ts";

// Step number n + 10 begins at n * 100 and lasts 90.
const step = (index: number): Step => ({ index, number: index + 10, slice: index, start_ns: index * 100, dur_ns: 90 });
const meta = (count: number, listed: Step[]): TraceMeta => ({
  path: "a", title: "a", origin_ns: "0", span_ns: count * 100, slice_count: 1, groups: [], lanes: [], quality: [],
  steps: listed, step_count: count, typical_step: 3, typical: [step(3)],
});

class Pages {
  asked: unknown[] = [];
  constructor(private readonly count: number) {}
  steps(_trace: number, which: { from?: number; at?: number; number?: number; limit: number }) {
    this.asked.push(which);
    let found = which.at !== undefined ? Math.min(this.count - 1, Math.floor(which.at / 100)) : which.number !== undefined ? which.number - 10 : -1;
    if (found >= this.count) found = -1;
    const first = found >= 0 ? found - (found % which.limit) : which.from ?? 0;
    const last = Math.min(this.count, first + which.limit);
    return Promise.resolve({ total: this.count, found, steps: Array.from({ length: last - first }, (_, at) => step(first + at)) });
  }
}

test("few steps are all known, and none is asked for", async () => {
  const steps = new Steps(() => { throw new Error("asked"); }, 0, meta(5, [0, 1, 2, 3, 4].map(step)));
  assert.equal(steps.at(4)?.number, 14);
  assert.equal(steps.at(5), undefined);
  assert.equal(steps.indexAt(-1), -1);
  assert.equal(steps.indexAt(0), 0);
  assert.equal(steps.indexAt(299), 2);
  assert.equal((await steps.ofNumber(12))?.index, 2);
  assert.equal(steps.typical?.index, 3);
});

test("of a million steps only the pages that are shown are asked for", async () => {
  const pages = new Pages(1_000_000);
  const steps = new Steps(() => pages as unknown as Engine, 0, meta(1_000_000, []));
  assert.equal(steps.at(123_456), undefined); // asks
  assert.equal((await steps.get(123_456))?.number, 123_466);
  assert.equal(steps.at(123_499)?.index, 123_499);
  assert.deepEqual(pages.asked, [{ from: 123_000, limit: 500 }]);
  assert.equal(steps.indexAt(12_345_650), 123_456);
  assert.equal(await steps.find(50_000_000 + 95), 500_000); // between two steps: the last that began
  assert.equal(steps.indexAt(50_000_000), 500_000);
  assert.equal((await steps.ofNumber(999_999 + 10))?.index, 999_999);
  assert.equal(steps.indexAt(1e12), 999_999);
  assert.equal(await steps.ofNumber(5_000_000), undefined);
  assert.equal(pages.asked.length, 4);
});
