import assert from "node:assert/strict";
import { test } from "node:test";
import type { Lane } from "../api/types.ts";
import { chooseLanes, type LaneChoice } from "./lane_list.ts";

const lane = (number: number, change: Partial<Lane>): Lane => ({
  lane: number, group: 0, kind: "cpu", title: `thread ${number}`, rows: 1, slice_count: 1, busy_ns: 1, quiet: false, ...change,
});
const lanes = [lane(0, { main: true }), lane(1, {}), lane(2, { quiet: true }), lane(3, { quiet: true }), lane(4, { main: true, title: "stream 7", kind: "gpu" })];
const choice = (change: Partial<LaneChoice> = {}): LaneChoice => ({
  pinned: new Set(), folded: new Set(), expanded: new Set(), revealed: new Set(), showAll: false, showQuiet: false, filter: "", ...change,
});
const numbers = (shown: { lanes: Lane[] }) => shown.lanes.map((each) => each.lane);

test("only lanes that matter at first, and the others are counted", () => {
  const shown = chooseLanes(lanes, choice());
  assert.deepEqual(numbers(shown), [0, 4]);
  assert.equal(shown.moreCount, 1);
  assert.equal(shown.quietCount, 2);
});

test("every lane is shown or counted, whatever is chosen", () => {
  for (const change of [{}, { showAll: true }, { showQuiet: true }, { showAll: true, showQuiet: true }, { filter: "stream" }, { pinned: new Set([2]) }, { revealed: new Set([1, 3]) }]) {
    const shown = chooseLanes(lanes, choice(change));
    assert.equal(shown.lanes.length + shown.moreCount + shown.quietCount + shown.filteredCount, lanes.length, JSON.stringify(Object.keys(change)));
  }
});

test("pinned lanes come first, a lane that was asked for keeps its place", () => {
  assert.deepEqual(numbers(chooseLanes(lanes, choice({ pinned: new Set([4]) }))), [4, 0]);
  assert.deepEqual(numbers(chooseLanes(lanes, choice({ revealed: new Set([1]) }))), [0, 1, 4]);
});

test("a filter needs all words, in title or kind", () => {
  assert.deepEqual(numbers(chooseLanes(lanes, choice({ filter: "gpu 7" }))), [4]);
});

test("when no lane is said to matter, all that are not quiet are shown", () => {
  assert.deepEqual(numbers(chooseLanes(lanes.map((each) => ({ ...each, main: false })), choice())), [0, 1, 4]);
});
