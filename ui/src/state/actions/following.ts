// From a slice to its launch, its neighbour, its parent; and along the lanes.
import { none } from "../../api/types.ts";
import { formatShare, plural } from "../../base/format.ts";
import { cleanText } from "../../base/text.ts";
import type { Store, TraceView } from "../store.ts";
import { say } from "./say.ts";
import { selectGap, selectSlice, selectStep } from "./selecting.ts";

export async function follow(store: Store, forward: boolean): Promise<void> {
  const selection = store.selection.peek();
  const details = store.details.peek();
  const gap = store.gap.peek();
  if (selection?.type === "gap" && gap !== null) {
    const target = forward ? gap.ends_at : gap.launch ?? gap.blame;
    if (target !== undefined && target !== null && target !== none) await selectSlice(store, selection.trace, target, { move: true });
    return;
  }
  if (selection?.type !== "slice" || details === null) return;
  const arrow = details.arrows.find((each) => (forward ? each.from === details.slice : each.to === details.slice)) ??
    (forward ? details.arrows[0] : undefined);
  const launch = details.chain.find((link) => link.role === "launch");
  const target = forward ? arrow?.to : arrow?.from ?? launch?.slice;
  if (target === undefined || target === details.slice) say(store, forward ? "no arrow starts here" : "no arrow ends here");
  else await selectSlice(store, selection.trace, target, { move: true, keepLit: true });
}

export async function neighbour(store: Store, forward: boolean): Promise<void> {
  const selection = store.selection.peek();
  const details = store.details.peek();
  if (selection?.type === "gap") {
    const all = (await store.engine.gaps(selection.trace, "time", 100_000)).gaps;
    const at = all.findIndex((gap) => gap.index === selection.gap) + (forward ? 1 : -1);
    if (all[at] !== undefined) await selectGap(store, selection.trace, all[at].index, true);
    return;
  }
  if (selection === null || details === null) return openInMiddle(store);
  const target = forward ? details.neighbours?.next : details.neighbours?.previous;
  if (target === undefined || target === null || target === none) say(store, forward ? "this is the last event of the row" : "this is the first event of the row");
  else await selectSlice(store, selection.trace, target, { move: true, keepLit: true });
}

export async function family(store: Store, up: boolean): Promise<void> {
  const selection = store.selection.peek();
  const details = store.details.peek();
  if (selection?.type !== "slice" || details === null) return;
  const at = details.chain.findIndex((link) => link.slice === details.slice);
  if (up && at > 0) await selectSlice(store, selection.trace, details.chain[at - 1].slice, { move: true, keepLit: true });
  else if (up) say(store, "nothing holds this event");
  else {
    const inside = await store.engine.at(selection.trace, details.lane, details.row + 1, details.start_ns, details.start_ns + Math.max(1, details.dur_ns));
    const first = [...inside.longest].sort((a, b) => a.start_ns - b.start_ns)[0];
    if (first !== undefined) await selectSlice(store, selection.trace, first.slice, { move: true, keepLit: true });
    else say(store, "this event holds no other");
  }
}

// The event of the lane with the focus that is nearest to the middle of the window; of those that hold each other there, the innermost.
// Without a focus, a thread of the program: its steps are marked and say little.
export async function openInMiddle(store: Store): Promise<void> {
  const view = store.main;
  const used = view.shown.peek().lanes.filter((each) => each.slice_count > 0);
  const lane = view.focusLane.peek() ?? (used.find((each) => each.kind === "cpu") ?? used[0])?.lane;
  const frame = view.frames.frame.peek();
  if (lane === undefined || frame === null) return;
  const window = view.windowOf(store.viewport.target);
  const middle = (window.t0 + window.t1) / 2;
  let best: { slice: number; distance: number; dur: number } | null = null;
  for (const entry of frame.entries) {
    if (entry.lane !== lane || entry.kind !== "slices") continue;
    for (let index = 0; index < entry.count; index += 1) {
      const start = frame.t0 + entry.start[index];
      const dur = entry.dur[index];
      const distance = Math.max(start - middle, middle - start - dur, 0);
      if (best === null || distance < best.distance || (distance === best.distance && dur < best.dur)) best = { slice: entry.slice[index], distance, dur };
    }
  }
  if (best === null) return;
  view.focusLane.value = lane;
  await openOn(store, view, lane, best.slice);
}

// What a cell of a lane means depends on the lane.
export async function openOn(store: Store, view: TraceView, lane: number, slice: number, move = false): Promise<void> {
  const kind = view.laneByNumber.get(lane)?.kind;
  if (kind === "idle") await selectGap(store, view.index, slice, move);
  else if (kind === "steps") await selectStep(store, view.index, slice);
  else await selectSlice(store, view.index, slice, { move });
}

export function moveFocusLane(store: Store, by: number): void {
  const view = store.main;
  const lanes = view.shown.peek().lanes;
  const at = lanes.findIndex((lane) => lane.lane === view.focusLane.peek());
  const lane = lanes[Math.min(lanes.length - 1, Math.max(0, at + by))];
  if (lane === undefined) return;
  view.focusLane.value = lane.lane;
  view.scrollTo.value = { lane: lane.lane, row: 0 };
  say(store, `lane ${cleanText(lane.title)}, ${plural(lane.slice_count, "event")}, busy ${formatShare(lane.busy_ns / Math.max(1, view.meta.span_ns))}`);
}
