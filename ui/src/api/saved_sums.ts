// Sums over the slices of a saved page: an area, tables, a flame graph.
import { overlap, type SavedSlices } from "./saved_slices.ts";
import type { AreaAnswer, FlameNode, TableAnswer, TableRequest } from "./types.ts";

export function savedArea(slices: SavedSlices, t0: number, t1: number, lanes: number[]): AreaAnswer {
  const c = slices.columns;
  const wanted = new Set(lanes);
  const byLane = new Map<number, { lane: number; count: number; busy_ns: number }>();
  const byKind = new Map<number, { kind: number; count: number; total_ns: number }>();
  const inside = slices.overlapping(t0, t1, (index) => wanted.has(c.lane[index]));
  for (const index of inside) {
    const part = overlap(c.start[index], c.start[index] + c.dur[index], t0, t1);
    const lane = byLane.get(c.lane[index]) ?? { lane: c.lane[index], count: 0, busy_ns: 0 };
    byLane.set(lane.lane, { ...lane, count: lane.count + 1, busy_ns: lane.busy_ns + (c.row[index] === 0 ? part : 0) });
    const kind = byKind.get(c.kind[index]) ?? { kind: c.kind[index], count: 0, total_ns: 0 };
    byKind.set(kind.kind, { ...kind, count: kind.count + 1, total_ns: kind.total_ns + part });
  }
  const causes = new Map<string | number, { cause: string | number; count: number; ns: number }>();
  for (const gap of slices.gaps) {
    const part = overlap(gap.start_ns, gap.start_ns + gap.dur_ns, t0, t1);
    if (part <= 0) continue;
    const cause = causes.get(gap.cause) ?? { cause: gap.cause, count: 0, ns: 0 };
    causes.set(gap.cause, { ...cause, count: cause.count + 1, ns: cause.ns + part });
  }
  const names = slices.sums(inside, t0, t1);
  return {
    lanes: [...byLane.values()],
    kinds: [...byKind.values()].sort((a, b) => b.total_ns - a.total_ns),
    names: names.slice(0, 500).map((sum) => ({
      name: slices.nameAt.get(sum.name)?.full ?? "", short: slices.nameAt.get(sum.name)?.short ?? "", kind: sum.kind, count: sum.count,
      total_ns: sum.total, self_ns: sum.self, longest: c.slice[sum.longest],
    })),
    names_total: names.length,
    gaps: [...causes.values()].sort((a, b) => b.ns - a.ns),
  };
}

export function savedTable(slices: SavedSlices, request: TableRequest): TableAnswer {
  const c = slices.columns;
  const gpu = request.table === "kernels";
  const [t0, t1] = [request.t0 ?? slices.data.t0, request.t1 ?? slices.data.t1];
  const inside = slices.overlapping(t0, t1, (index) => {
    const lane = slices.lanes.get(c.lane[index])?.kind;
    return gpu ? lane === "gpu" : lane === "cpu" && c.kind[index] === 0;
  });
  const wanted = request.filter.toLowerCase();
  const sums = slices.sums(inside);
  const all = sums.reduce((sum, each) => sum + each.total, 0);
  const rows = sums
    .filter((sum) => (slices.nameAt.get(sum.name)?.full ?? "").toLowerCase().includes(wanted))
    .map((sum) => ({
      name: slices.nameAt.get(sum.name)?.short ?? "", total_ns: sum.total, self_ns: sum.self, share: sum.total / all, count: sum.count,
      mean_ns: sum.total / sum.count, slice: c.slice[sum.longest],
    }));
  const key = request.sort as keyof (typeof rows)[0];
  if (rows.length > 0 && key in rows[0]) rows.sort((a, b) => compareValues(a[key], b[key]) * (request.descending ? -1 : 1));
  return {
    columns: [
      { key: "name", title: gpu ? "Kernel" : "Operator", unit: "text" },
      { key: "total_ns", title: "Total", unit: "ns" },
      ...(gpu ? [] : [{ key: "self_ns", title: "Self", unit: "ns" } as const]),
      { key: "share", title: "Share", unit: "ratio" },
      { key: "count", title: "Calls", unit: "count" },
      { key: "mean_ns", title: "Mean", unit: "ns" },
    ],
    rows: rows.slice(request.offset, request.offset + request.limit),
    total: rows.length,
  };
}

export function savedFlame(slices: SavedSlices, t0: number, t1: number, lane: number): FlameNode[] {
  const c = slices.columns;
  const nodes: FlameNode[] = [];
  const known = new Map<string, number>();
  const nodeOf = new Map<number, number>();
  const inside = slices.overlapping(t0, t1, (index) => c.lane[index] === lane).sort((a, b) => c.row[a] - c.row[b] || c.start[a] - c.start[b]);
  for (const index of inside) {
    const parent = nodeOf.get(slices.parents[index]) ?? -1;
    const key = `${parent}/${c.name[index]}`;
    let node = known.get(key);
    if (node === undefined) {
      node = nodes.length;
      known.set(key, node);
      nodes.push({ name: slices.nameOf(index).full, short: slices.nameOf(index).short, parent, total_ns: 0, self_ns: 0, count: 0, longest: c.slice[index], kind: c.kind[index] });
    }
    const part = overlap(c.start[index], c.start[index] + c.dur[index], t0, t1);
    nodes[node].total_ns += part;
    nodes[node].self_ns += part;
    if (parent >= 0) nodes[parent].self_ns -= part;
    nodes[node].count += 1;
    nodeOf.set(index, node);
  }
  return nodes;
}

function compareValues(a: number | string, b: number | string): number {
  return typeof a === "string" && typeof b === "string" ? a.localeCompare(b) : Number(a) - Number(b);
}
