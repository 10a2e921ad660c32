// One picture of a saved page.
import { lowerBound } from "../base/numbers.ts";
import type { SavedSlices } from "./saved_slices.ts";
import { flagClipped, flagOverlap, flagZeroLength, none, type CounterEntry, type Frame, type FrameEntry, type FrameRequest } from "./types.ts";

interface Cell { start: number; dur: number; slice: number; name: number; folded: number; busy: number; kind: number; flags: number }

export function savedFrame(slices: SavedSlices, request: FrameRequest): Frame {
  const step = 2 ** Math.floor(Math.log2(Math.max(1, request.step)));
  const frame: Frame = { gen: request.gen, t0: request.t0, t1: request.t1, step, entries: [] };
  const wanted = new Set(request.lanes);
  for (const run of slices.columns.runs) {
    if (wanted.has(run.lane)) frame.entries.push(frameEntry(slices, run, request, step));
  }
  for (const counter of slices.data.counters ?? []) {
    if (wanted.has(counter.lane)) frame.entries.push(counterEntry(counter, request));
  }
  for (const lane of slices.lanes.values()) {
    if (!wanted.has(lane.lane) || slices.columns.runs.some((run) => run.lane === lane.lane)) continue;
    if (lane.kind === "idle") frame.entries.push(gapEntry(slices, lane.lane, request));
    if (lane.kind === "steps") frame.entries.push(stepEntry(slices, lane.lane, request));
  }
  return frame;
}

function gapEntry(slices: SavedSlices, lane: number, request: FrameRequest): FrameEntry {
  const causes = slices.data.answers["/api/meta"].causes;
  const gaps = slices.gaps
    .filter((gap) => gap.lane === lane && gap.start_ns < request.t1 && gap.start_ns + gap.dur_ns > request.t0)
    .sort((a, b) => a.start_ns - b.start_ns);
  return makeEntry(lane, 0, gaps.map((gap) => ({
    start: gap.start_ns, dur: gap.dur_ns, slice: gap.index, name: none, folded: 1, busy: gap.dur_ns, flags: 0,
    kind: causes.find((cause) => cause.key === gap.cause || cause.cause === gap.cause)?.cause ?? 0,
  })), request);
}

function stepEntry(slices: SavedSlices, lane: number, request: FrameRequest): FrameEntry {
  const steps = slices.steps.filter((step) => step.start_ns < request.t1 && step.start_ns + step.dur_ns > request.t0);
  return makeEntry(lane, 0, steps.map((step) => ({
    start: step.start_ns, dur: step.dur_ns, slice: step.index, name: none, folded: 1, busy: step.dur_ns, flags: 0, kind: 1,
  })), request);
}

function frameEntry(slices: SavedSlices, run: { lane: number; row: number; from: number; to: number }, request: FrameRequest, step: number): FrameEntry {
  const c = slices.columns;
  const overlapFlag = run.row > 0 && slices.isOnDevice(run.lane) ? flagOverlap : 0;
  const cells: Cell[] = [];
  // A row holds no overlaps, so its ends are sorted as its starts are.
  let from = lowerBound(c.start, request.t0, run.from, run.to);
  if (from > run.from && c.start[from - 1] + c.dur[from - 1] > request.t0) from -= 1;
  let bucketEnd = Number.NEGATIVE_INFINITY;
  let longest = 0;
  for (let index = from; index < run.to && c.start[index] < request.t1; index += 1) {
    const [start, dur] = [c.start[index], c.dur[index]];
    const last = cells[cells.length - 1];
    if (dur < step && start + dur < bucketEnd && last !== undefined) {
      last.folded += 1;
      last.busy += dur;
      last.dur = start + dur - last.start;
      if (dur > longest) Object.assign(last, { slice: c.slice[index], name: c.name[index], kind: c.kind[index] });
      longest = Math.max(longest, dur);
      continue;
    }
    bucketEnd = dur < step ? (Math.floor(start / step) + 1) * step : Number.NEGATIVE_INFINITY;
    longest = dur;
    const flags = overlapFlag | (dur === 0 ? flagZeroLength : 0) | (start < request.t0 || start + dur > request.t1 ? flagClipped : 0);
    cells.push({ start, dur, slice: c.slice[index], name: c.name[index], folded: 1, busy: dur, kind: c.kind[index], flags });
  }
  return makeEntry(run.lane, run.row, cells, request);
}

function makeEntry(lane: number, row: number, cells: Cell[], request: FrameRequest): FrameEntry {
  return {
    lane, row, kind: "slices", count: cells.length,
    start: Float32Array.from(cells, (cell) => cell.start - request.t0), dur: Float32Array.from(cells, (cell) => cell.dur),
    slice: Uint32Array.from(cells, (cell) => cell.slice), name: Uint32Array.from(cells, (cell) => cell.name),
    folded: Uint32Array.from(cells, (cell) => cell.folded),
    coverage: Uint8Array.from(cells, (cell) => (cell.folded === 1 ? 255 : Math.max(1, Math.min(255, (cell.busy / Math.max(1, cell.dur)) * 255)))),
    kinds: Uint8Array.from(cells, (cell) => cell.kind), flags: Uint8Array.from(cells, (cell) => cell.flags),
  };
}

function counterEntry(counter: { lane: number; time: number[]; value: (number | null)[] }, request: FrameRequest): CounterEntry {
  let now = 0;
  const points: [number, number][] = [];
  counter.time.forEach((difference, index) => {
    now += difference;
    if (now < request.t0) points[0] = [now, counter.value[index] ?? NaN];
    else if (now < request.t1) points.push([now, counter.value[index] ?? NaN]);
  });
  const values = Float32Array.from(points, (point) => point[1]);
  return {
    lane: counter.lane, row: 0, kind: "counter", count: points.length, start: Float32Array.from(points, (point) => point[0] - request.t0),
    min: values, max: values, last: values,
  };
}
