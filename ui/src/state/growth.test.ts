import assert from "node:assert/strict";
import { test } from "node:test";
import type { Lane, TraceMeta } from "../api/types.ts";
import { lanesByOldNumber, shiftOf, windowAfter } from "./growth.ts";

const lane = (number: number, title: string, kind: Lane["kind"] = "cpu", group = 1): Lane =>
  ({ lane: number, group, kind, title, rows: 1, slice_count: 1, busy_ns: 1, quiet: false });
const meta = (lanes: Lane[], origin = "1000"): TraceMeta => ({
  path: "run.lspool", title: "run", origin_ns: origin, span_ns: 100, slice_count: 1, lanes, steps: [], quality: [],
  groups: [{ id: 1, title: "process 1" }, { id: 2, title: "process 2" }],
});

test("a lane is the same by process, kind and title, whatever its number", () => {
  const before = meta([lane(0, "main"), lane(1, "main", "python"), lane(2, "main", "cpu", 2), lane(3, "gone")]);
  const after = meta([lane(0, "new"), lane(1, "main", "cpu", 2), lane(2, "main"), lane(3, "main", "python")]);
  assert.deepEqual([...lanesByOldNumber(before, after)], [[0, 2], [1, 3], [2, 1]]);
});

test("lanes with equal titles keep their order", () => {
  const before = meta([lane(0, "worker"), lane(1, "worker")]);
  const after = meta([lane(0, "main"), lane(1, "worker"), lane(2, "worker")]);
  assert.deepEqual([...lanesByOldNumber(before, after)], [[0, 1], [1, 2]]);
});

test("an earlier event that came late shifts all times", () => {
  assert.equal(shiftOf(meta([], "1000"), meta([], "900")), 100);
  assert.equal(shiftOf(meta([], "9007199254740993"), meta([], "9007199254740990")), 3);
});

test("whoever sees the whole trace goes on seeing all of it; others stay where they are", () => {
  assert.deepEqual(windowAfter({ t0: 20, t1: 40 }, 100, 200, 5), { t0: 25, t1: 45 });
  const whole = windowAfter({ t0: -1, t1: 101 }, 100, 1_000_000, 0);
  assert.ok(whole.t0 <= 0 && whole.t1 >= 1_000_000);
});
