import assert from "node:assert/strict";
import { test } from "node:test";
import { formatBytes, formatCount, formatExactTime, formatShare, formatTick, formatTime, parseTime, plural, tickStep } from "./format.ts";

test("times have three digits that count, in the unit that fits", () => {
  const cases: [number, string][] = [
    [0, "0 ns"], [1, "1 ns"], [999, "999 ns"], [1_000, "1.00 µs"], [9_270, "9.27 µs"], [41_300, "41.3 µs"], [999_960, "1.00 ms"],
    [297_655, "298 µs"], [2_377_000, "2.38 ms"], [1_240_000_000, "1.24 s"], [-6_000, "−6.00 µs"], [0.5, "0.50 ns"],
  ];
  for (const [ns, text] of cases) assert.equal(formatTime(ns), text);
});

test("an exact time keeps every nanosecond", () => {
  assert.equal(formatExactTime(7_148_125), "7.148125 ms");
  assert.equal(formatExactTime(7_148_000), "7.148 ms");
  assert.equal(formatExactTime(12), "12 ns");
  assert.equal(formatExactTime(0), "0 ns");
  assert.equal(formatExactTime(100_000), "100 µs");
  assert.equal(formatExactTime(1_234_000_000_000), "1,234 s");
});

test("ticks show the digits that tell them apart", () => {
  assert.equal(formatTick(1_365_000, 5_000), "1.365 ms");
  assert.equal(formatTick(1_500_000, 500_000), "1.5 ms");
  assert.equal(formatTick(0, 500_000), "0 µs");
  assert.equal(formatTick(2_000_000_000, 1_000_000_000), "2 s");
});

test("steps of ticks are 1, 2 or 5 times a power of ten", () => {
  assert.equal(tickStep(1000, 10), 100);
  assert.equal(tickStep(1001, 10), 200);
  assert.equal(tickStep(4_900, 10), 500);
  assert.equal(tickStep(9_000, 10), 1000);
});

test("typed times are read, a plain number is microseconds", () => {
  assert.equal(parseTime("100us"), 100_000);
  assert.equal(parseTime("1.5 ms"), 1_500_000);
  assert.equal(parseTime("250"), 250_000);
  assert.equal(parseTime("3s"), 3_000_000_000);
  assert.equal(parseTime("many"), null);
  assert.equal(parseTime("-4us"), null);
});

test("counts, shares and sizes", () => {
  assert.equal(formatCount(1234567), "1,234,567");
  assert.equal(plural(1, "hit"), "1 hit");
  assert.equal(plural(3200, "launch", "launches"), "3,200 launches");
  assert.equal(formatShare(0.123), "12 %");
  assert.equal(formatShare(0.004), "0.4 %");
  assert.equal(formatShare(0.0001), "< 0.1 %");
  assert.equal(formatShare(0), "0 %");
  assert.equal(formatBytes(3 * 1024 * 1024), "3.00 MiB");
});
