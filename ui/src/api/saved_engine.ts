// Answers the page's questions from the columns of a saved page, by looking at every slice: at most 100,000 of them. The tests
// compare the binary's answers with these.
import { lowerBound, median } from "../base/numbers.ts";
import { parseSearch } from "../base/search_query.ts";
import { withSigns } from "../base/text.ts";
import { EngineError, type Engine } from "./engine.ts";
import type { SavedData, SliceColumns } from "./saved_data.ts";
import {
  flagClipped, flagOverlap, flagZeroLength, none,
  type AreaAnswer, type ChainLink, type CounterEntry, type EventDetails, type FlameNode, type Folded, type Frame, type FrameEntry, type FrameRequest,
  type Gap, type GapsAnswer, type Lane, type Name, type SearchAnswer, type TableAnswer, type TableRequest,
} from "./types.ts";

interface Sum { name: number; count: number; total: number; self: number; longest: number; kind: number }

export class SavedEngine implements Engine {
  readonly isSaved = true;
  private readonly rowOfSlice = new Map<number, number>();
  private readonly launchOf = new Map<number, number>(); // GPU work -> the call that launched it
  private readonly workOf = new Map<number, number[]>(); // call -> the GPU work that it launched
  private readonly nameAt: Map<number, Name>;
  private readonly lanes: Map<number, Lane>;
  private readonly unnamed: Set<number>; // lanes whose cells are gaps or steps, and not slices of the trace
  private readonly parents: Int32Array;
  private readonly self: Float64Array;

  constructor(private readonly data: SavedData, private readonly columns: SliceColumns) {
    this.nameAt = new Map(data.names.map((name) => [name.id, name]));
    this.lanes = new Map(this.trace.lanes.map((lane) => [lane.lane, lane]));
    this.unnamed = new Set(this.trace.lanes.filter((lane) => lane.kind === "idle" || lane.kind === "steps").map((lane) => lane.lane));
    for (let index = 0; index < columns.count; index += 1) {
      if (!this.unnamed.has(columns.lane[index])) this.rowOfSlice.set(columns.slice[index], index);
    }
    for (let at = 0; at + 1 < data.links.length; at += 2) {
      const [call, work] = [this.rowOfSlice.get(data.links[at]), this.rowOfSlice.get(data.links[at + 1])];
      if (call === undefined || work === undefined) continue;
      this.launchOf.set(work, call);
      const list = this.workOf.get(call);
      if (list === undefined) this.workOf.set(call, [work]);
      else list.push(work);
    }
    this.parents = this.findParents();
    this.self = Float64Array.from(columns.dur);
    for (let index = 0; index < columns.count; index += 1) {
      if (this.parents[index] >= 0) this.self[this.parents[index]] -= columns.dur[index];
    }
  }

  get range() { return { t0: this.data.t0, t1: this.data.t1 }; }
  private get trace() { return this.data.answers["/api/meta"].traces[0]; }
  private get savedGaps(): Gap[] { return this.data.answers["/api/gaps?trace=0"]?.gaps ?? []; }

  otherLanes() { return Promise.resolve({ lanes: [], groups: [] }); }
  of(): SavedEngine { return this; }
  meta() { return Promise.resolve(this.data.answers["/api/meta"]); }
  explain() { return Promise.resolve(withSigns(this.data.answers["/api/explain?trace=0"])); }
  gaps(_trace: number, sort: "cost" | "time", limit: number): Promise<GapsAnswer> {
    const gaps = [...this.savedGaps].sort((a, b) => (sort === "cost" ? b.dur_ns - a.dur_ns : a.start_ns - b.start_ns));
    const answer = this.data.answers["/api/gaps?trace=0"];
    return Promise.resolve({ total: answer?.total ?? 0, by_cause: answer?.by_cause ?? [], gaps: gaps.slice(0, limit) });
  }
  gap(_trace: number, index: number): Promise<Gap> {
    const gap = this.savedGaps.find((each) => each.index === index);
    return gap === undefined ? this.refuse("This gap is not in the saved range.") : Promise.resolve(gap);
  }
  tour() { return Promise.resolve(withSigns(this.data.answers["/api/tour?trace=0"]?.stops ?? [])); }
  memory() { return Promise.resolve(this.data.answers["/api/memory?trace=0"] ?? { devices: [] }); }
  compare() { return this.refuse("Two traces are compared by `lanescope view A B`, not in a saved page."); }
  notes() { return Promise.resolve([]); }
  keepNotes() { return Promise.resolve(); }
  save() { return this.refuse("This page is already one file."); }
  perfetto() { return this.refuse("A saved page holds too little of the trace for Perfetto. Open the trace with `lanescope view`."); }
  alive() { return new Promise<never>(() => undefined); }
  private refuse(sentence: string): Promise<never> { return Promise.reject(new EngineError(sentence, 400)); }

  frame(request: FrameRequest): Promise<Frame> {
    const step = 2 ** Math.floor(Math.log2(Math.max(1, request.step)));
    const frame: Frame = { gen: request.gen, t0: request.t0, t1: request.t1, step, entries: [] };
    const wanted = new Set(request.lanes);
    for (const run of this.columns.runs) {
      if (wanted.has(run.lane)) frame.entries.push(this.frameEntry(run, request, step));
    }
    for (const counter of this.data.counters ?? []) {
      if (wanted.has(counter.lane)) frame.entries.push(counterEntry(counter, request));
    }
    for (const lane of this.lanes.values()) {
      if (!wanted.has(lane.lane) || this.columns.runs.some((run) => run.lane === lane.lane)) continue;
      if (lane.kind === "idle") frame.entries.push(this.gapEntry(lane.lane, request));
      if (lane.kind === "steps") frame.entries.push(this.stepEntry(lane.lane, request));
    }
    return Promise.resolve(frame);
  }

  names(_trace: number, ids: number[]): Promise<Name[]> {
    return Promise.resolve(ids.map((id) => this.nameAt.get(id) ?? { id, short: "", full: "" }));
  }

  event(_trace: number, slice: number): Promise<EventDetails> {
    const kept = this.data.events[String(slice)];
    if (kept !== undefined) return Promise.resolve(kept);
    const index = this.rowOfSlice.get(slice);
    if (index === undefined) return this.refuse("This event is not in the saved range.");
    const c = this.columns;
    const call = this.launchOf.get(index) ?? (this.workOf.has(index) ? index : -1);
    const work = call >= 0 ? this.workOf.get(call) ?? [] : [];
    const kernel = this.launchOf.has(index) ? index : work[0];
    const chain: ChainLink[] = [];
    const cpuEnd = call >= 0 ? call : this.lanes.get(c.lane[index])?.kind === "gpu" ? -1 : index;
    for (let at = cpuEnd; at >= 0; at = this.parents[at]) chain.unshift(this.link(at, at === call ? "launch" : roles[c.kind[at]] ?? "operator", index));
    if (kernel !== undefined) chain.push(this.link(kernel, "kernel", index));
    const like: number[] = [];
    for (let at = 0; at < c.count; at += 1) if (c.name[at] === c.name[index]) like.push(c.dur[at]);
    const name = this.nameOf(index);
    const beside = (step: number) => (c.lane[index + step] === c.lane[index] && c.row[index + step] === c.row[index] ? c.slice[index + step] : none);
    return Promise.resolve({
      slice, lane: c.lane[index], row: c.row[index], name: name.full, short: name.short,
      start_ns: c.start[index], dur_ns: c.dur[index], self_ns: this.self[index], kind: c.kind[index], args: [], chain,
      queue_ns: call >= 0 && kernel !== undefined ? c.start[kernel] - c.start[call] - c.dur[call] : null,
      launched: work.slice(0, 200).map((at) => ({ slice: c.slice[at], short: this.nameOf(at).short, start_ns: c.start[at], dur_ns: c.dur[at], lane: c.lane[at], row: c.row[at] })),
      launched_count: work.length,
      like: { count: like.length, median_ns: median(like), min_ns: Math.min(...like), max_ns: Math.max(...like) },
      arrows: work.slice(0, 200).map((at) => ({
        from: c.slice[call], to: c.slice[at], from_lane: c.lane[call], to_lane: c.lane[at], from_row: c.row[call], to_row: c.row[at],
        from_ns: c.start[call], from_end_ns: c.start[call] + c.dur[call], to_ns: c.start[at],
      })),
      arrow_count: work.length,
      neighbours: { previous: beside(-1), next: beside(1) },
      findings: this.data.answers["/api/explain?trace=0"].findings.filter((finding) => finding.evidence.some((e) => e.slice === slice)).map((f) => f.rule),
    });
  }

  at(_trace: number, lane: number, row: number, t0: number, t1: number): Promise<Folded> {
    const inside = this.overlapping(t0, t1, (index) => this.columns.lane[index] === lane && this.columns.row[index] === row);
    const c = this.columns;
    const longest = [...inside].sort((a, b) => c.dur[b] - c.dur[a]).slice(0, 10);
    return Promise.resolve({
      count: inside.length,
      busy_ns: inside.reduce((sum, index) => sum + overlap(c.start[index], c.start[index] + c.dur[index], t0, t1), 0),
      longest: longest.map((index) => ({ slice: c.slice[index], name: this.nameOf(index).full, short: this.nameOf(index).short, start_ns: c.start[index], dur_ns: c.dur[index] })),
    });
  }

  area(_trace: number, t0: number, t1: number, lanes: number[]): Promise<AreaAnswer> {
    const c = this.columns;
    const wanted = new Set(lanes);
    const byLane = new Map<number, { lane: number; count: number; busy_ns: number }>();
    const byKind = new Map<number, { kind: number; count: number; total_ns: number }>();
    const inside = this.overlapping(t0, t1, (index) => wanted.has(c.lane[index]));
    for (const index of inside) {
      const part = overlap(c.start[index], c.start[index] + c.dur[index], t0, t1);
      const lane = byLane.get(c.lane[index]) ?? { lane: c.lane[index], count: 0, busy_ns: 0 };
      byLane.set(lane.lane, { ...lane, count: lane.count + 1, busy_ns: lane.busy_ns + (c.row[index] === 0 ? part : 0) });
      const kind = byKind.get(c.kind[index]) ?? { kind: c.kind[index], count: 0, total_ns: 0 };
      byKind.set(kind.kind, { ...kind, count: kind.count + 1, total_ns: kind.total_ns + part });
    }
    const causes = new Map<string | number, { cause: string | number; count: number; ns: number }>();
    for (const gap of this.savedGaps) {
      const part = overlap(gap.start_ns, gap.start_ns + gap.dur_ns, t0, t1);
      if (part <= 0) continue;
      const cause = causes.get(gap.cause) ?? { cause: gap.cause, count: 0, ns: 0 };
      causes.set(gap.cause, { ...cause, count: cause.count + 1, ns: cause.ns + part });
    }
    const names = this.sums(inside, t0, t1);
    return Promise.resolve({
      lanes: [...byLane.values()],
      kinds: [...byKind.values()].sort((a, b) => b.total_ns - a.total_ns),
      names: names.slice(0, 500).map((sum) => ({
        name: this.nameAt.get(sum.name)?.full ?? "", short: this.nameAt.get(sum.name)?.short ?? "", kind: sum.kind, count: sum.count,
        total_ns: sum.total, self_ns: sum.self, longest: c.slice[sum.longest],
      })),
      names_total: names.length,
      gaps: [...causes.values()].sort((a, b) => b.ns - a.ns),
    });
  }

  search(_trace: number, text: string, limit: number): Promise<SearchAnswer> {
    const query = parseSearch(text);
    if (query.error !== null) return this.refuse(query.error);
    const c = this.columns;
    const kinds = new Set(this.data.answers["/api/meta"].kinds.filter((kind) => query.kinds.some((word) => kind.key.startsWith(word))).map((k) => k.kind));
    const fits = new Set<number>();
    for (const name of this.data.names) {
      const both = `${name.full}\n${name.short}`.toLowerCase();
      if (query.words.every((word) => both.includes(word))) fits.add(name.id);
    }
    const hits: number[] = [];
    for (let index = 0; index < c.count; index += 1) {
      if (this.unnamed.has(c.lane[index]) || !fits.has(c.name[index]) || (query.kinds.length > 0 && !kinds.has(c.kind[index]))) continue;
      if (query.leastNs !== null && c.dur[index] <= query.leastNs) continue;
      if (query.mostNs !== null && c.dur[index] >= query.mostNs) continue;
      hits.push(index);
    }
    const lanes = new Map<number, number>();
    for (const index of hits) lanes.set(c.lane[index], (lanes.get(c.lane[index]) ?? 0) + 1);
    hits.sort((a, b) => c.start[a] - c.start[b]);
    return Promise.resolve({
      total: hits.length,
      lanes: [...lanes].map(([lane, count]) => ({ lane, count })),
      hits: hits.slice(0, limit).map((index) => ({
        slice: c.slice[index], lane: c.lane[index], row: c.row[index], start_ns: c.start[index], dur_ns: c.dur[index],
        name: this.nameOf(index).full, short: this.nameOf(index).short,
      })),
      names: [...new Set(hits.map((index) => c.name[index]))].slice(0, 10_000),
    });
  }

  table(_trace: number, request: TableRequest): Promise<TableAnswer> {
    const c = this.columns;
    const gpu = request.table === "kernels";
    const [t0, t1] = [request.t0 ?? this.data.t0, request.t1 ?? this.data.t1];
    const inside = this.overlapping(t0, t1, (index) => {
      const lane = this.lanes.get(c.lane[index])?.kind;
      return gpu ? lane === "gpu" : lane === "cpu" && c.kind[index] === 0;
    });
    const wanted = request.filter.toLowerCase();
    const sums = this.sums(inside);
    const all = sums.reduce((sum, each) => sum + each.total, 0);
    const rows = sums
      .filter((sum) => (this.nameAt.get(sum.name)?.full ?? "").toLowerCase().includes(wanted))
      .map((sum) => ({
        name: this.nameAt.get(sum.name)?.short ?? "", total_ns: sum.total, self_ns: sum.self, share: sum.total / all, count: sum.count,
        mean_ns: sum.total / sum.count, slice: c.slice[sum.longest],
      }));
    const key = request.sort as keyof (typeof rows)[0];
    if (rows.length > 0 && key in rows[0]) rows.sort((a, b) => compareValues(a[key], b[key]) * (request.descending ? -1 : 1));
    return Promise.resolve({
      columns: [
        { key: "name", title: gpu ? "Kernel" : "Operator", unit: "text" },
        { key: "total_ns", title: "Total", unit: "ns" },
        ...(gpu ? [] : [{ key: "self_ns", title: "Self", unit: "ns" } as const]),
        { key: "share", title: "Share", unit: "ratio" },
        { key: "count", title: "Count", unit: "count" },
        { key: "mean_ns", title: "Mean", unit: "ns" },
      ],
      rows: rows.slice(request.offset, request.offset + request.limit),
      total: rows.length,
    });
  }

  flame(_trace: number, t0: number, t1: number, lane: number): Promise<FlameNode[]> {
    const c = this.columns;
    const nodes: FlameNode[] = [];
    const known = new Map<string, number>();
    const nodeOf = new Map<number, number>();
    const inside = this.overlapping(t0, t1, (index) => c.lane[index] === lane).sort((a, b) => c.row[a] - c.row[b] || c.start[a] - c.start[b]);
    for (const index of inside) {
      const parent = nodeOf.get(this.parents[index]) ?? -1;
      const key = `${parent}/${c.name[index]}`;
      let node = known.get(key);
      if (node === undefined) {
        node = nodes.length;
        known.set(key, node);
        nodes.push({ name: this.nameOf(index).full, short: this.nameOf(index).short, parent, total_ns: 0, self_ns: 0, count: 0, longest: c.slice[index], kind: c.kind[index] });
      }
      const part = overlap(c.start[index], c.start[index] + c.dur[index], t0, t1);
      nodes[node].total_ns += part;
      nodes[node].self_ns += part;
      if (parent >= 0) nodes[parent].self_ns -= part;
      nodes[node].count += 1;
      nodeOf.set(index, node);
    }
    return Promise.resolve(nodes);
  }

  private nameOf(index: number): Name { return this.nameAt.get(this.columns.name[index]) ?? { id: 0, short: "", full: "" }; }

  private link(index: number, role: string, self: number): ChainLink {
    const c = this.columns;
    const name = this.nameOf(index);
    return {
      role, slice: c.slice[index], name: name.full, short: name.short, start_ns: c.start[index], dur_ns: c.dur[index],
      lane: c.lane[index], row: c.row[index], self: index === self,
    };
  }

  // With a range, times are those inside of it.
  private sums(inside: number[], t0 = Number.NEGATIVE_INFINITY, t1 = Number.POSITIVE_INFINITY): Sum[] {
    const c = this.columns;
    const sums = new Map<number, Sum>();
    const part = (index: number) => overlap(c.start[index], c.start[index] + c.dur[index], t0, t1);
    const ofChildren = new Map<number, number>();
    for (const index of inside) {
      const parent = this.parents[index];
      if (parent >= 0) ofChildren.set(parent, (ofChildren.get(parent) ?? 0) + part(index));
    }
    for (const index of inside) {
      const sum = sums.get(c.name[index]) ?? { name: c.name[index], count: 0, total: 0, self: 0, longest: index, kind: c.kind[index] };
      sum.count += 1;
      sum.total += part(index);
      sum.self += part(index) - (ofChildren.get(index) ?? 0);
      if (c.dur[index] > c.dur[sum.longest]) sum.longest = index;
      sums.set(sum.name, sum);
    }
    return [...sums.values()].sort((a, b) => b.self - a.self);
  }

  // Half open: a slice of no length counts where it starts.
  private overlapping(t0: number, t1: number, keep: (index: number) => boolean): number[] {
    const c = this.columns;
    const found: number[] = [];
    for (let index = 0; index < c.count; index += 1) {
      const end = c.start[index] + c.dur[index];
      if (this.unnamed.has(c.lane[index])) continue;
      const inside = c.start[index] < t1 && (end > t0 || (c.dur[index] === 0 && c.start[index] >= t0));
      if (inside && keep(index)) found.push(index);
    }
    return found;
  }

  // The slice one row up that holds this one. On GPU lanes rows are overlaps and not nesting.
  private findParents(): Int32Array {
    const c = this.columns;
    const parents = new Int32Array(c.count).fill(-1);
    const gpu = new Set(this.trace.lanes.filter((lane) => lane.kind === "gpu").map((lane) => lane.lane));
    for (const run of c.runs) {
      const above = c.runs.find((other) => other.lane === run.lane && other.row === run.row - 1);
      if (above === undefined || gpu.has(run.lane) || this.unnamed.has(run.lane)) continue;
      for (let index = run.from, at = above.from; index < run.to; index += 1) {
        while (at + 1 < above.to && c.start[at + 1] <= c.start[index]) at += 1;
        if (c.start[at] <= c.start[index] && c.start[index] + c.dur[index] <= c.start[at] + c.dur[at]) parents[index] = at;
      }
    }
    return parents;
  }

  private gapEntry(lane: number, request: FrameRequest): FrameEntry {
    const causes = this.data.answers["/api/meta"].causes;
    const gaps = this.savedGaps
      .filter((gap) => gap.lane === lane && gap.start_ns < request.t1 && gap.start_ns + gap.dur_ns > request.t0)
      .sort((a, b) => a.start_ns - b.start_ns);
    return makeEntry(lane, 0, gaps.map((gap) => ({
      start: gap.start_ns, dur: gap.dur_ns, slice: gap.index, name: none, folded: 1, busy: gap.dur_ns, flags: 0,
      kind: causes.find((cause) => cause.key === gap.cause || cause.cause === gap.cause)?.cause ?? 0,
    })), request);
  }

  private stepEntry(lane: number, request: FrameRequest): FrameEntry {
    const steps = this.trace.steps.filter((step) => step.start_ns < request.t1 && step.start_ns + step.dur_ns > request.t0);
    return makeEntry(lane, 0, steps.map((step) => ({
      start: step.start_ns, dur: step.dur_ns, slice: step.index, name: none, folded: 1, busy: step.dur_ns, flags: 0, kind: 1,
    })), request);
  }

  private frameEntry(run: { lane: number; row: number; from: number; to: number }, request: FrameRequest, step: number): FrameEntry {
    const c = this.columns;
    const overlapFlag = run.row > 0 && this.lanes.get(run.lane)?.kind === "gpu" ? flagOverlap : 0;
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
}

interface Cell { start: number; dur: number; slice: number; name: number; folded: number; busy: number; kind: number; flags: number }

const roles: Record<number, string> = { 0: "operator", 1: "annotation", 2: "module", 3: "launch" };

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

function counterEntry(counter: { lane: number; time: number[]; value: number[] }, request: FrameRequest): CounterEntry {
  let now = 0;
  const points: [number, number][] = [];
  counter.time.forEach((difference, index) => {
    now += difference;
    if (now < request.t0) points[0] = [now, counter.value[index]];
    else if (now < request.t1) points.push([now, counter.value[index]]);
  });
  const values = Float32Array.from(points, (point) => point[1]);
  return {
    lane: counter.lane, row: 0, kind: "counter", count: points.length, start: Float32Array.from(points, (point) => point[0] - request.t0),
    min: values, max: values, last: values,
  };
}

function overlap(a0: number, a1: number, b0: number, b1: number): number {
  return Math.max(0, Math.min(a1, b1) - Math.max(a0, b0));
}

function compareValues(a: number | string, b: number | string): number {
  return typeof a === "string" && typeof b === "string" ? a.localeCompare(b) : Number(a) - Number(b);
}
