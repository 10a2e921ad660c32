// Where each lane lies: pixels from the top of the list.
import type { Lane, LaneKind } from "../api/types.ts";

export interface LaneBox {
  lane: Lane;
  y: number;
  height: number;
  rowHeight: number;
  rows: number; // drawn; a folded lane has one
  folded: boolean;
  squeezed: boolean; // so deep that its rows were made thin
}

export interface Layout { boxes: LaneBox[]; height: number }

const rowHeights: Record<LaneKind, number> = {
  steps: 20, annotation: 18, cpu: 18, python: 16, gpu: 22, sync: 16, idle: 22, counter: 44, async: 16, device: 22,
};
export const laneGap = 9;
const leastLaneHeight = 34; // room for two lines of a label

export interface LayoutChoice { folded: ReadonlySet<number>; expanded: ReadonlySet<number> }

// A lane of many rows, such as one with Python's stack, may take this much of the room before its rows become thin: the lanes
// of the GPU stay in view.
const deepShare = 0.3;
const leastDeepHeight = 116;
const leastRowHeight = 4;
// In a small window the shape of the stack must do.
const smallRoom = 420;
const leastDeepHeightSmall = 64; // of Python; a thread keeps room for its labels
const leastThreadHeightSmall = 96;
const leastRowHeightSmall = 2;

// With room to spare (pixels of height), rows grow by up to a third.
export function layOut(lanes: readonly Lane[], choice: LayoutChoice, room = 0): Layout {
  const layout = layOutRows(lanes, choice, room, 1);
  const scale = Math.min(1.34, Math.max(1, (room * 0.92) / Math.max(1, layout.height)));
  return scale < 1.05 ? layout : layOutRows(lanes, choice, room, scale);
}

function layOutRows(lanes: readonly Lane[], choice: LayoutChoice, room: number, scale: number): Layout {
  const isSmall = room > 0 && room < smallRoom;
  const mostOf = (lane: Lane) => {
    if (room === 0) return Number.POSITIVE_INFINITY;
    return isSmall ? (lane.kind === "python" ? leastDeepHeightSmall : leastThreadHeightSmall) : Math.max(leastDeepHeight, room * deepShare);
  };
  const boxes: LaneBox[] = [];
  let y = 4;
  for (const lane of lanes) {
    const folded = choice.folded.has(lane.lane);
    const rows = folded ? 1 : Math.max(1, lane.rows);
    let rowHeight = Math.round((rowHeights[lane.kind] ?? 18) * scale);
    const most = mostOf(lane);
    const squeezed = rows > 1 && rows * rowHeight > most * 1.15 && !choice.expanded.has(lane.lane);
    if (squeezed) rowHeight = Math.max(isSmall ? leastRowHeightSmall : leastRowHeight, Math.floor(most / rows));
    const oneLine = folded || lane.kind === "steps" || (lane.kind === "idle" && scale === 1);
    const height = Math.max(rows * rowHeight, oneLine ? 22 : leastLaneHeight);
    boxes.push({ lane, y, height, rowHeight, rows, folded, squeezed });
    y += height + laneGap;
  }
  return { boxes, height: y };
}

export function boxAt(layout: Layout, y: number): LaneBox | null {
  return layout.boxes.find((box) => y >= box.y - laneGap / 2 && y < box.y + box.height + laneGap / 2) ?? null;
}

export function rowAt(box: LaneBox, y: number): number {
  return Math.min(box.rows - 1, Math.max(0, Math.floor((y - box.y) / box.rowHeight)));
}

export function visibleBoxes(layout: Layout, top: number, height: number, margin = 0): LaneBox[] {
  return layout.boxes.filter((box) => box.y + box.height >= top - margin && box.y <= top + height + margin);
}
