// What a saved page knows of one slice.
import { median } from "../base/numbers.ts";
import type { SavedSlices } from "./saved_slices.ts";
import { none, type ChainLink, type EventDetails } from "./types.ts";

const roles: Record<number, string> = { 0: "operator", 1: "annotation", 2: "module", 3: "launch" };

// Nothing: the slice is not in the range.
export function savedEvent(slices: SavedSlices, slice: number): EventDetails | null {
  const kept = slices.data.events[String(slice)];
  if (kept !== undefined) return kept;
  const index = slices.rowOfSlice.get(slice);
  if (index === undefined) return null;
  const c = slices.columns;
  const call = slices.launchOf.get(index) ?? (slices.workOf.has(index) ? index : -1);
  const work = call >= 0 ? slices.workOf.get(call) ?? [] : [];
  const kernel = slices.launchOf.has(index) ? index : work[0];
  const chain: ChainLink[] = [];
  const cpuEnd = call >= 0 ? call : slices.isOnDevice(c.lane[index]) ? -1 : index;
  for (let at = cpuEnd; at >= 0; at = slices.parents[at]) chain.unshift(slices.link(at, at === call ? "launch" : roles[c.kind[at]] ?? "operator", index));
  if (kernel !== undefined) chain.push(slices.link(kernel, "kernel", index));
  const like: number[] = [];
  for (let at = 0; at < c.count; at += 1) if (c.name[at] === c.name[index]) like.push(c.dur[at]);
  const name = slices.nameOf(index);
  const neighbour = (step: number) => (c.lane[index + step] === c.lane[index] && c.row[index + step] === c.row[index] ? c.slice[index + step] : none);
  return {
    slice, lane: c.lane[index], row: c.row[index], name: name.full, short: name.short,
    start_ns: c.start[index], dur_ns: c.dur[index], self_ns: slices.self[index], kind: c.kind[index], args: [], chain,
    queue_ns: call >= 0 && kernel !== undefined ? c.start[kernel] - c.start[call] - c.dur[call] : null,
    launched: work.slice(0, 200).map((at) => ({ slice: c.slice[at], short: slices.nameOf(at).short, start_ns: c.start[at], dur_ns: c.dur[at], lane: c.lane[at], row: c.row[at] })),
    launched_count: work.length,
    like: { count: like.length, median_ns: median(like), min_ns: Math.min(...like), max_ns: Math.max(...like) },
    arrows: work.slice(0, 200).map((at) => ({
      from: c.slice[call], to: c.slice[at], from_lane: c.lane[call], to_lane: c.lane[at], from_row: c.row[call], to_row: c.row[at],
      from_ns: c.start[call], from_end_ns: c.start[call] + c.dur[call], to_ns: c.start[at],
    })),
    arrow_count: work.length,
    neighbours: { previous: neighbour(-1), next: neighbour(1) },
    findings: slices.data.answers["/api/explain?trace=0"].findings.filter((finding) => finding.evidence.some((e) => e.slice === slice)).map((f) => f.rule),
  };
}
