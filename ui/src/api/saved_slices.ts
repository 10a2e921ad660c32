// The slices of a saved page, with what every answer looks up: their names, lanes, parents, launches.
import type { SavedData, SliceColumns } from "./saved_data.ts";
import type { ChainLink, Gap, Lane, Name } from "./types.ts";

// The slices of one name. `longest` is an index into the columns.
export interface Sum { name: number; count: number; total: number; self: number; longest: number; kind: number }

export class SavedSlices {
  readonly rowOfSlice = new Map<number, number>();
  readonly launchOf = new Map<number, number>(); // GPU work -> the call that launched it
  readonly workOf = new Map<number, number[]>(); // call -> the GPU work that it launched
  readonly nameAt: Map<number, Name>;
  readonly lanes: Map<number, Lane>;
  readonly unnamed: Set<number>; // lanes whose cells are gaps or steps, and not slices of the trace
  readonly parents: Int32Array;
  readonly self: Float64Array;

  constructor(readonly data: SavedData, readonly columns: SliceColumns) {
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

  get steps() { return this.data.answers["/api/steps"]?.steps ?? this.trace.steps; }
  get trace() { return this.data.answers["/api/meta"].traces[0]; }
  get gaps(): Gap[] { return this.data.answers["/api/gaps?trace=0"]?.gaps ?? []; }
  isOnDevice(lane: number): boolean { return ["gpu", "device"].includes(this.lanes.get(lane)?.kind ?? ""); }
  nameOf(index: number): Name { return this.nameAt.get(this.columns.name[index]) ?? { id: 0, short: "", full: "" }; }

  link(index: number, role: string, self: number): ChainLink {
    const c = this.columns;
    const name = this.nameOf(index);
    return {
      role, slice: c.slice[index], name: name.full, short: name.short, start_ns: c.start[index], dur_ns: c.dur[index],
      lane: c.lane[index], row: c.row[index], self: index === self,
    };
  }

  // With a range, times are those inside of it.
  sums(inside: number[], t0 = Number.NEGATIVE_INFINITY, t1 = Number.POSITIVE_INFINITY): Sum[] {
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
  overlapping(t0: number, t1: number, keep: (index: number) => boolean): number[] {
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

  // The slice one row up that holds this one. On lanes of a device rows are overlaps and not nesting.
  private findParents(): Int32Array {
    const c = this.columns;
    const parents = new Int32Array(c.count).fill(-1);
    for (const run of c.runs) {
      const above = c.runs.find((other) => other.lane === run.lane && other.row === run.row - 1);
      if (above === undefined || this.isOnDevice(run.lane) || this.unnamed.has(run.lane)) continue;
      for (let index = run.from, at = above.from; index < run.to; index += 1) {
        while (at + 1 < above.to && c.start[at + 1] <= c.start[index]) at += 1;
        if (c.start[at] <= c.start[index] && c.start[index] + c.dur[index] <= c.start[at] + c.dur[at]) parents[index] = at;
      }
    }
    return parents;
  }
}

export function overlap(a0: number, a1: number, b0: number, b1: number): number {
  return Math.max(0, Math.min(a1, b1) - Math.max(a0, b0));
}
