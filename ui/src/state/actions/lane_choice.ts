// Which lanes are listed, pinned, unfolded and expanded.
import { none } from "../../api/types.ts";
import type { LaneChoice } from "../lane_list.ts";
import type { Store, TraceView } from "../store.ts";
import { report } from "./say.ts";

export function reveal(view: TraceView, lanes: number[]): void {
  const choice = view.choice.peek();
  const visible = new Set(view.shown.peek().lanes.map((lane) => lane.lane));
  const hidden = lanes.filter((lane) => !visible.has(lane) && view.laneByNumber.has(lane));
  if (hidden.length > 0) view.choice.value = { ...choice, filter: "", revealed: new Set([...choice.revealed, ...hidden]) };
}

const lanesOfPage = 500;

// The next of the lanes that were too many to be listed.
export async function listMoreLanes(store: Store, view: TraceView): Promise<void> {
  try {
    const page = await store.engine.otherLanes(view.index, { offset: view.otherLanesAsked, limit: lanesOfPage });
    view.otherLanesAsked += page.lanes.length;
    view.addLanes(page);
    choose(view, { showAll: true, showQuiet: true });
  } catch (reason) {
    report(store, reason);
  }
}

// Something on a lane that is not listed was asked for.
export async function listLanes(store: Store, view: TraceView, lanes: number[]): Promise<void> {
  const missing = [...new Set(lanes)].filter((lane) => !view.laneByNumber.has(lane) && lane !== none);
  if (missing.length > 0 && (view.meta.lanes_left_out ?? 0) > 0) view.addLanes(await store.engine.otherLanes(view.index, { lanes: missing }));
}

function flip(set: ReadonlySet<number>, item: number): Set<number> {
  const next = new Set(set);
  if (!next.delete(item)) next.add(item);
  return next;
}

export function choose(view: TraceView, change: Partial<LaneChoice>): void {
  view.choice.value = { ...view.choice.peek(), ...change };
}
export const togglePin = (view: TraceView, lane: number) => choose(view, { pinned: flip(view.choice.peek().pinned, lane) });
export const toggleExpanded = (view: TraceView, lane: number) => choose(view, { expanded: flip(view.choice.peek().expanded, lane) });
export const toggleFold = (view: TraceView, lane: number) => choose(view, { folded: flip(view.choice.peek().folded, lane) });
