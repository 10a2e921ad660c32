import assert from "node:assert/strict";
import { test } from "node:test";
import { centre, ease, fit, leastSpanNs, limitWindow, panBy, spanOf, zoomAt } from "./window.ts";

const trace = 1_000_000;

test("zooming keeps the time under the pointer where it is", () => {
  const before = { t0: 100_000, t1: 300_000 };
  const after = zoomAt(before, 150_000, 0.5, trace);
  assert.equal(spanOf(after), 100_000);
  assert.equal((150_000 - after.t0) / spanOf(after), 0.25); // as before: a quarter from the left
});

test("zooming ends at a span that still shows something", () => {
  let window = { t0: 0, t1: trace };
  for (let step = 0; step < 100; step += 1) window = zoomAt(window, 500_000, 0.5, trace);
  assert.equal(spanOf(window), leastSpanNs);
  for (let step = 0; step < 100; step += 1) window = zoomAt(window, 500_000, 2, trace);
  assert.ok(spanOf(window) <= trace * 1.2);
});

test("the middle of the window stays inside of the trace", () => {
  assert.equal(limitWindow({ t0: -900, t1: -700 }, trace).t0, -100);
  const right = panBy({ t0: 0, t1: 1000 }, 5 * trace, trace);
  assert.equal((right.t0 + right.t1) / 2, trace);
});

test("fitting leaves a margin, centring keeps the zoom", () => {
  assert.deepEqual(fit(1000, 2000, trace, 0.1), { t0: 900, t1: 2100 });
  assert.deepEqual(centre({ t0: 0, t1: 100 }, 1000, 2000, trace), { t0: 1450, t1: 1550 });
  assert.ok(spanOf(fit(500, 500, trace)) >= leastSpanNs); // an event of no length
});

test("easing goes 40 % of the way and arrives", () => {
  const goal = { t0: 100, t1: 200 };
  assert.deepEqual(ease({ t0: 0, t1: 100 }, goal), { t0: 40, t1: 140 });
  let now = { t0: 0, t1: 100 };
  for (let frame = 0; frame < 40; frame += 1) now = ease(now, goal);
  assert.equal(now, goal);
});
