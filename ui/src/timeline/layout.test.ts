import assert from "node:assert/strict";
import { test } from "node:test";
import type { Lane } from "../api/types.ts";
import { boxAt, layOut, rowAt, visibleBoxes } from "./layout.ts";

const lane = (number: number, rows: number): Lane => ({ lane: number, group: 0, kind: "cpu", title: "", rows, slice_count: 1, busy_ns: 1, quiet: false });

test("lanes follow each other without overlap, each with its rows", () => {
  const layout = layOut([lane(0, 3), lane(1, 1), lane(2, 40)], { folded: new Set(), expanded: new Set() });
  for (let index = 1; index < layout.boxes.length; index += 1) {
    assert.ok(layout.boxes[index].y >= layout.boxes[index - 1].y + layout.boxes[index - 1].height);
  }
  assert.equal(layout.boxes[2].height, 40 * layout.boxes[2].rowHeight);
  assert.ok(layout.height >= layout.boxes[2].y + layout.boxes[2].height);
});

test("a folded lane has one row", () => {
  assert.equal(layOut([lane(0, 30)], { folded: new Set([0]), expanded: new Set() }).boxes[0].rows, 1);
});

test("a point finds its lane and row, also just below the last row", () => {
  const layout = layOut([lane(5, 2), lane(6, 2)], { folded: new Set(), expanded: new Set() });
  const box = layout.boxes[1];
  assert.equal(boxAt(layout, box.y + 1)?.lane.lane, 6);
  assert.equal(rowAt(box, box.y + box.rowHeight + 1), 1);
  assert.equal(rowAt(box, box.y + 1000), 1);
  assert.equal(boxAt(layout, layout.height + 500), null);
});

test("only boxes in view are drawn", () => {
  const layout = layOut(Array.from({ length: 1000 }, (_, index) => lane(index, 1)), { folded: new Set(), expanded: new Set() });
  assert.ok(visibleBoxes(layout, 4000, 500).length < 20);
});

test("a deep lane is made thin, so that other lanes stay in view, until it is expanded", () => {
  const lanes = [lane(0, 60), lane(1, 2)];
  const thin = layOut(lanes, { folded: new Set(), expanded: new Set() }, 500);
  assert.ok(thin.boxes[0].squeezed && thin.boxes[1].y + thin.boxes[1].height < 500);
  const full = layOut(lanes, { folded: new Set(), expanded: new Set([0]) }, 500);
  assert.ok(!full.boxes[0].squeezed && full.boxes[0].height >= 60 * 16);
});
