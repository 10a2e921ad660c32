// The engine of a saved page, on the real traces of tests/data, against sums that are written out here in the plainest way.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { readChromeTrace, savedFromEvents } from "../../test/double/draw_trace.ts";
import { columnsOf } from "./saved_data.ts";
import { SavedEngine } from "./saved_engine.ts";
import { flagZeroLength, type FrameEntry } from "./types.ts";

const folder = path.resolve("../tests/data/h200_mlp_train");
const file = fs.readdirSync(folder).find((name) => /\.json(\.gz)?$/.test(name) && !name.includes("expected")) ?? "";
const events = readChromeTrace(path.join(folder, file)).traceEvents;
const saved = savedFromEvents(events, "mlp_train");
const engine = new SavedEngine(saved, columnsOf(saved));
const meta = saved.answers["/api/meta"].traces[0];
const all = meta.lanes.map((lane) => lane.lane);
let seed = 11;
const random = () => (seed = (seed * 16807) % 2147483647) / 2147483647;

test("in random windows every slice is in exactly one cell, and busy time is kept", async () => {
  const columns = columnsOf(saved);
  for (let round = 0; round < 40; round += 1) {
    const t0 = Math.floor(random() * meta.span_ns);
    const t1 = t0 + 1 + Math.floor(random() * (meta.span_ns - t0));
    const frame = await engine.frame({ trace: 0, t0, t1, step: (t1 - t0) / 500, lanes: all, gen: round });
    const cells = frame.entries.filter((entry): entry is FrameEntry => entry.kind === "slices" && meta.lanes.find((lane) => lane.lane === entry.lane)?.kind !== "idle");
    const shown = cells.reduce((sum, entry) => sum + entry.folded.reduce((a, b) => a + b, 0), 0);
    let wanted = 0;
    for (let index = 0; index < columns.count; index += 1) {
      const end = columns.start[index] + columns.dur[index];
      if (columns.start[index] < t1 && (end > t0 || (columns.dur[index] === 0 && columns.start[index] >= t0))) wanted += 1;
    }
    assert.equal(shown, wanted);
    for (const entry of cells) {
      for (let index = 0; index < entry.count; index += 1) if (entry.folded[index] > 1) assert.ok(entry.dur[index] <= frame.step);
    }
  }
});

test("an event without a length is a cell that says so", async () => {
  const drawn = savedFromEvents([
    { ph: "X", cat: "cpu_op", name: "a", pid: 1, tid: 1, ts: 0, dur: 10 },
    { ph: "X", cat: "cpu_op", name: "nothing", pid: 1, tid: 1, ts: 20, dur: 0 },
  ], "drawn");
  const frame = await new SavedEngine(drawn, columnsOf(drawn)).frame({ trace: 0, t0: 0, t1: 30_000, step: 1, lanes: [0], gen: 1 });
  const entry = frame.entries[0] as FrameEntry;
  assert.deepEqual([...entry.flags], [0, flagZeroLength]);
});

test("kernels that overlap on a stream are all there, on rows of their own", async () => {
  const drawn = savedFromEvents([
    { ph: "X", cat: "kernel", name: "k1", pid: 0, tid: 7, ts: 0, dur: 10 },
    { ph: "X", cat: "kernel", name: "k2", pid: 0, tid: 7, ts: 5, dur: 10 },
    { ph: "X", cat: "kernel", name: "k3", pid: 0, tid: 7, ts: 12, dur: 10 },
  ], "drawn");
  const frame = await new SavedEngine(drawn, columnsOf(drawn)).frame({ trace: 0, t0: 0, t1: 30_000, step: 1, lanes: [0], gen: 1 });
  assert.deepEqual(frame.entries.map((entry) => [entry.row, entry.count]), [[0, 2], [1, 1]]);
});

test("a launch leads to its kernel and back", async () => {
  const [launch, work] = [saved.links[0], saved.links[1]];
  const call = await engine.event(0, launch);
  assert.equal(call.arrows[0].to, work);
  const kernel = await engine.event(0, work);
  assert.equal(kernel.arrows[0].from, launch);
  assert.deepEqual(kernel.chain.slice(-2).map((link) => link.role), ["launch", "kernel"]);
  assert.equal(kernel.queue_ns, kernel.start_ns - call.start_ns - call.dur_ns);
});

test("self time of all events of a thread is its busy time", async () => {
  const columns = columnsOf(saved);
  const lane = meta.lanes.find((each) => each.kind === "cpu" && each.rows > 3);
  assert.ok(lane);
  let self = 0;
  for (let index = 0; index < columns.count; index += 1) {
    if (columns.lane[index] === lane.lane) self += (await engine.event(0, columns.slice[index])).self_ns ?? 0;
  }
  assert.equal(self, lane.busy_ns);
});

test("a search needs all words, and kinds and times narrow it", async () => {
  const names = new Map(saved.names.map((name) => [name.id, name.full]));
  const columns = columnsOf(saved);
  const count = (keep: (index: number) => boolean) => Array.from({ length: columns.count }, (_, index) => index).filter(keep).length;
  assert.equal((await engine.search(0, "AtEn:: mm", 10)).total, count((index) => /aten::/.test(names.get(columns.name[index]) ?? "") && /mm/.test(names.get(columns.name[index]) ?? "")));
  assert.equal((await engine.search(0, "kind:copy", 10)).total, count((index) => columns.kind[index] === 6));
  assert.equal((await engine.search(0, ">100us kind:compute", 10)).total, count((index) => columns.kind[index] === 4 && columns.dur[index] > 100_000));
  await assert.rejects(engine.search(0, ">soon", 10), /expected a time/);
});

test("a table's totals are the sums of its events", async () => {
  const table = await engine.table(0, { table: "kernels", sort: "total_ns", descending: true, filter: "", offset: 0, limit: 10_000 });
  const columns = columnsOf(saved);
  const gpu = new Set(meta.lanes.filter((lane) => lane.kind === "gpu").map((lane) => lane.lane));
  let total = 0;
  for (let index = 0; index < columns.count; index += 1) if (gpu.has(columns.lane[index])) total += columns.dur[index];
  assert.equal(table.rows.reduce((sum, row) => sum + Number(row.total_ns), 0), total);
  const sorted = table.rows.map((row) => Number(row.total_ns));
  assert.deepEqual(sorted, [...sorted].sort((a, b) => b - a));
});

test("what is not in the saved range is said in a sentence", async () => {
  await assert.rejects(engine.event(0, 4_000_000), /not in the saved range/);
  await assert.rejects(engine.compare(), /lanescope view A B/);
});

test("rows of gaps and steps are drawn, and are no slices", async () => {
  const drawn = savedFromEvents([
    { ph: "X", cat: "cpu_op", name: "a", pid: 1, tid: 1, ts: 0, dur: 10 },
    { ph: "X", cat: "kernel", name: "k1", pid: 0, tid: 7, ts: 0, dur: 10 },
    { ph: "X", cat: "kernel", name: "k2", pid: 0, tid: 7, ts: 40, dur: 10 },
  ], "drawn");
  const idle = drawn.answers["/api/meta"].traces[0].lanes.find((lane) => lane.kind === "idle")?.lane ?? -1;
  drawn.rows.push({ lane: idle, row: 0, start: [10_000], dur: [30_000], slice: [0], name: [], kind: [1] });
  const other = new SavedEngine(drawn, columnsOf(drawn));
  const frame = await other.frame({ trace: 0, t0: 0, t1: 60_000, step: 1, lanes: [idle], gen: 1 });
  assert.deepEqual(frame.entries.map((entry) => [entry.lane, entry.count]), [[idle, 1]]);
  assert.equal((await other.event(0, 0)).name, "a"); // slice 0, and not gap 0
  assert.equal((await other.area(0, 0, 60_000, [0, 1, idle])).names.length, 3);
  assert.equal((await other.search(0, "", 10)).total, 3);
});
