import assert from "node:assert/strict";
import { test } from "node:test";
import { ticksOf } from "./draw_axis.ts";

test("ticks lie where their time is, and none before the trace begins", () => {
  const ticks = ticksOf({ t0: -100_000, t1: 900_000 }, 1000);
  assert.equal(ticks[0].text.startsWith("0"), true);
  assert.equal(Math.round(ticks[0].at), 100);
  const apart = ticks.slice(1).map((tick, index) => Math.round(tick.at - ticks[index].at));
  assert.equal(new Set(apart).size, 1);
});

test("a text that would be cut at the right end is left out, its line is not", () => {
  const ticks = ticksOf({ t0: 0, t1: 1_000_000 }, 1000);
  const last = ticks[ticks.length - 1];
  assert.equal(Math.round(last.at), 1000);
  assert.equal(last.text, "");
  for (const tick of ticks) assert.ok(tick.text === "" || tick.at + tick.text.length * 7 < 1000);
});
