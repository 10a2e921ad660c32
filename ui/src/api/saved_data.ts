// The data of a page saved as one file (docs/formats/view_api.md, "Saved page"), and the columns that it becomes.
import { none, type EventDetails, type Explanation, type GapsAnswer, type MemoryAnswer, type Meta, type Name, type Step, type TourStop } from "./types.ts";

export interface SavedData {
  saved: 1;
  t0: number;
  t1: number;
  answers: {
    "/api/meta": Meta;
    "/api/steps"?: { steps: Step[] }; // of the range, when the trace has too many for its meta
    "/api/explain?trace=0": Explanation;
    "/api/gaps?trace=0"?: GapsAnswer;
    "/api/tour?trace=0"?: { stops: TourStop[] };
    "/api/memory?trace=0"?: MemoryAnswer;
  };
  names: Name[];
  links: number[]; // launch, work, launch, work, ... (slices)
  // Rows of lanes of idle time name gaps, and rows of steps name steps; neither has names.
  rows: { lane: number; row: number; start: number[]; dur: number[]; slice: number[]; name: number[]; kind: number[] }[];
  counters?: { lane: number; time: number[]; value: (number | null)[] }[]; // null: unknown from then on
  events: Record<string, EventDetails>;
}

// Sorted by lane and row as the file has them, then by start.
export interface SliceColumns {
  count: number;
  lane: Uint16Array;
  row: Uint16Array;
  start: Float64Array;
  dur: Float64Array;
  name: Uint32Array;
  kind: Uint8Array;
  slice: Uint32Array; // row in the trace
  runs: { lane: number; row: number; from: number; to: number }[];
}

export async function unpackSaved(base64: string): Promise<SavedData> {
  const packed = Uint8Array.from(atob(base64.trim()), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

export function columnsOf(data: SavedData): SliceColumns {
  const count = data.rows.reduce((sum, row) => sum + row.start.length, 0);
  const columns: SliceColumns = {
    count,
    lane: new Uint16Array(count), row: new Uint16Array(count), start: new Float64Array(count), dur: new Float64Array(count),
    name: new Uint32Array(count), kind: new Uint8Array(count), slice: new Uint32Array(count), runs: [],
  };
  let at = 0;
  for (const row of data.rows) {
    const to = at + row.start.length;
    columns.lane.fill(row.lane, at, to);
    columns.row.fill(row.row, at, to);
    columns.start.set(summed(row.start), at);
    columns.slice.set(summed(row.slice), at);
    columns.dur.set(row.dur, at);
    if (row.name.length === row.start.length) columns.name.set(row.name, at);
    else columns.name.fill(none, at, to);
    columns.kind.set(row.kind, at);
    columns.runs.push({ lane: row.lane, row: row.row, from: at, to });
    at = to;
  }
  return columns;
}

// The first value, then differences.
function summed(differences: number[]): number[] {
  let sum = 0;
  return differences.map((difference) => (sum += difference));
}
