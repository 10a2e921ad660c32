import assert from "node:assert/strict";
import { test } from "node:test";
import type { FlameNode } from "../api/types.ts";
import { compareRows } from "./compare.tsx";
import { firstFork, flameBoxes } from "./flame.tsx";
import { stepBars } from "./step_ribbon.tsx";

test("a step that takes longer than usual is marked, start-up steps do not flatten the others", () => {
  const steps = [{ dur_ns: 90_000, steady: false }, ...Array.from({ length: 8 }, () => ({ dur_ns: 100 })), { dur_ns: 140 }];
  const bars = stepBars(steps);
  assert.deepEqual(bars.map((bar) => bar.odd), [true, ...Array(8).fill(false), true]);
  assert.ok(bars[1].share >= 0.4);
});

test("20,000 steps share bars, and the longest of a bar is shown", () => {
  const steps = Array.from({ length: 20_000 }, (_, index) => ({ dur_ns: index === 12_345 ? 900 : 100 }));
  const bars = stepBars(steps);
  assert.ok(bars.length <= 160);
  assert.equal(bars.reduce((sum, bar) => sum + bar.last - bar.first + 1, 0), 20_000);
  assert.ok(bars.some((bar) => bar.longest === 12_345 && bar.odd));
});

test("boxes of a flame graph lie inside of the box above, widths are shares", () => {
  const node = (name: string, parent: number, total: number): FlameNode => ({ name, parent, kind: 0, total_ns: total, self_ns: 0, count: 1 });
  const nodes = [node("a", -1, 60), node("b", -1, 40), node("c", 0, 30), node("d", 0, 15), node("e", 2, 30)];
  const boxes = new Map(flameBoxes(nodes, -1).map((box) => [nodes[box.node].name, box]));
  assert.deepEqual([boxes.get("a")?.width, boxes.get("b")?.x, boxes.get("c")?.width, boxes.get("d")?.x], [0.6, 0.6, 0.3, 0.3]);
  assert.equal(boxes.get("e")?.depth, 2);
  assert.deepEqual(flameBoxes(nodes, 2).map((box) => box.width), [1, 1]);
});

test("rows of a comparison are ordered by change, and say what is new or gone", () => {
  const rows = compareRows({ kernels: [
    { a: [{ name: "k1" }], b: [{ name: "k1" }], a_count: 2, b_count: 2, a_ns: 100, b_ns: 90, delta_ns: -10 },
    { a: [], b: [{ name: "k2", readable_name: "GEMM" }], a_count: 0, b_count: 1, a_ns: 0, b_ns: 70, delta_ns: 70 },
    { a: [{ name: "k3" }], b: [], a_count: 3, b_count: 0, a_ns: 20, b_ns: 0, delta_ns: -20 },
  ] });
  assert.deepEqual(rows.map((row) => [row.name, row.state]), [["GEMM", "new"], ["k3", "gone"], ["k1", ""]]);
  assert.deepEqual(compareRows({}), []);
  const [fused] = compareRows({ kernels: [{ a: [{ name: "mul" }, { name: "gelu" }], b: [{ name: "fused" }], a_count: 4, b_count: 2, a_ns: 90, b_ns: 50, delta_ns: -40 }] });
  assert.deepEqual([fused.name, fused.full], ["mul, gelu → fused", "fused"]); // a click looks for it in B
});

test("a flame graph begins where the time divides", () => {
  const node = (parent: number, total: number): FlameNode => ({ name: "", parent, kind: 2, total_ns: total, self_ns: 0, count: 1 });
  const chain = [node(-1, 100), node(0, 100), node(1, 99), node(2, 98), node(3, 60), node(3, 38)];
  assert.equal(firstFork(chain), 3);
  assert.equal(firstFork([node(-1, 60), node(-1, 40)]), -1);
  assert.equal(firstFork([]), -1);
});
