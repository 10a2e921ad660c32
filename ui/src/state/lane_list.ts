// Which lanes are shown, in which order: pinned ones first, quiet ones folded into one line with their number, others filtered
// by a text. Nothing is hidden without a visible count.
import type { Lane } from "../api/types.ts";

export interface LaneChoice {
  pinned: ReadonlySet<number>;
  folded: ReadonlySet<number>; // drawn as one row
  expanded: ReadonlySet<number>; // deep lanes at their full height
  revealed: ReadonlySet<number>; // something in them was asked for
  showAll: boolean; // also lanes that are not among those that matter
  showQuiet: boolean;
  filter: string;
}

export interface ShownLanes {
  lanes: Lane[];
  pinnedCount: number;
  moreCount: number; // not among those that matter
  quietCount: number;
  filteredCount: number;
}

export function chooseLanes(all: readonly Lane[], choice: LaneChoice): ShownLanes {
  const words = choice.filter.toLowerCase().split(/\s+/).filter((word) => word !== "");
  const matches = (lane: Lane) => {
    const text = `${lane.title} ${lane.subtitle ?? ""} ${lane.kind}`.toLowerCase();
    return words.every((word) => text.includes(word));
  };
  const pinned = all.filter((lane) => choice.pinned.has(lane.lane));
  const others = all.filter((lane) => !choice.pinned.has(lane.lane));
  if (words.length > 0) {
    const found = others.filter(matches);
    return { lanes: [...pinned, ...found], pinnedCount: pinned.length, moreCount: 0, quietCount: 0, filteredCount: others.length - found.length };
  }
  const someMatter = all.some((lane) => lane.main === true);
  const matters = (lane: Lane) => lane.main === true || choice.revealed.has(lane.lane) || (!someMatter && !lane.quiet);
  const loud = others.filter((lane) => matters(lane) || (choice.showAll && !lane.quiet));
  const quiet = others.filter((lane) => lane.quiet && !matters(lane));
  const hidden = others.filter((lane) => !matters(lane) && !lane.quiet && !choice.showAll);
  const lanes = [...pinned, ...loud, ...(choice.showQuiet ? quiet : [])];
  return { lanes, pinnedCount: pinned.length, moreCount: hidden.length, quietCount: choice.showQuiet ? 0 : quiet.length, filteredCount: 0 };
}
