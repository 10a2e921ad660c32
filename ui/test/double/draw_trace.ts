// Makes the data of a saved page from a Chrome trace, by brute force. For tests only: the binary does this for users.
import fs from "node:fs";
import zlib from "node:zlib";
import { formatTime } from "../../src/base/format.ts";
import type { SavedData } from "../../src/api/saved_data.ts";
import type { Gap, Lane } from "../../src/api/types.ts";

interface ChromeEvent {
  ph: string; cat?: string; name?: string; pid: number | string; tid: number | string; ts: number; dur?: number; args?: Record<string, unknown>;
}

interface Slice {
  row: number; lane: number; level: number; start: number; dur: number; name: number; kind: number; launch: Slice | null;
  correlation: number; isCall: boolean;
}

const kinds = ["operator", "annotation", "python", "call", "compute", "communication", "copy", "wait", "other"];

function kindOf(event: ChromeEvent): number {
  const cat = event.cat ?? "";
  if (cat === "kernel") return /nccl/i.test(event.name ?? "") ? 5 : 4;
  if (cat.startsWith("gpu_mem")) return 6;
  if (cat.startsWith("cuda_")) return /Synchronize/.test(event.name ?? "") ? 7 : 3;
  if (cat === "python_function") return 2;
  if (cat.includes("annotation")) return 1;
  return cat === "cpu_op" ? 0 : 8;
}

export function readChromeTrace(path: string): { traceEvents: ChromeEvent[] } {
  const bytes = fs.readFileSync(path);
  return JSON.parse((path.endsWith(".gz") ? zlib.gunzipSync(bytes) : bytes).toString("utf8"));
}

export function savedFromEvents(events: ChromeEvent[], title: string): SavedData {
  const work = events.filter((event) => event.ph === "X" && event.cat !== "Trace" && event.cat !== "gpu_user_annotation");
  const origin = Math.min(...work.map((event) => Math.round(event.ts * 1000)));
  const lanes = new Map<string, Lane>();
  const names = new Map<string, number>();
  const slices: Slice[] = [];
  work.forEach((event, index) => {
    const gpu = event.cat === "kernel" || (event.cat ?? "").startsWith("gpu_mem");
    const key = `${gpu ? 0 : 1}/${event.pid}/${event.tid}`;
    const lane = lanes.get(key) ?? {
      lane: lanes.size, group: gpu ? 0 : 1, kind: gpu ? "gpu" : "cpu", title: gpu ? `stream ${event.tid}` : `thread ${event.tid}`,
      rows: 0, slice_count: 0, busy_ns: 0, quiet: false,
    } as Lane;
    lanes.set(key, lane);
    const text = event.name ?? "";
    if (!names.has(text)) names.set(text, names.size);
    slices.push({
      row: index, lane: lane.lane, level: 0, start: Math.round(event.ts * 1000) - origin, dur: Math.round((event.dur ?? 0) * 1000),
      name: names.get(text) ?? 0, kind: kindOf(event), launch: null, correlation: Number(event.args?.correlation ?? -1), isCall: (event.cat ?? "").startsWith("cuda_"),
    });
  });
  const calls = new Map(slices.filter((slice) => slice.isCall && slice.correlation > 0).map((slice) => [slice.correlation, slice]));
  const laneList = [...lanes.values()];
  for (const lane of laneList) layOut(slices.filter((slice) => slice.lane === lane.lane), lane);
  for (const slice of slices) if (laneList[slice.lane].kind === "gpu") slice.launch = calls.get(slice.correlation) ?? null;
  slices.sort((a, b) => a.lane - b.lane || a.level - b.level || a.start - b.start);
  const span = Math.max(...slices.map((slice) => slice.start + slice.dur));

  const gpuLanes = laneList.filter((lane) => lane.kind === "gpu");
  const gaps = gpuLanes.length === 0 ? [] : findGaps(slices.filter((slice) => laneList[slice.lane].kind === "gpu"), lanes.size);
  if (gpuLanes.length > 0) {
    laneList.unshift({
      lane: lanes.size, group: 0, kind: "idle", title: "GPU 0 idle", rows: 1, slice_count: gaps.length,
      busy_ns: gaps.reduce((sum, gap) => sum + gap.dur_ns, 0), quiet: false,
    });
  }
  const stepEvents = slices.filter((slice) => /^ProfilerStep/.test([...names.keys()][slice.name]));
  const idle = gaps.reduce((sum, gap) => sum + gap.dur_ns, 0);
  const busy = span - idle;
  const longest = [...slices].sort((a, b) => b.dur - a.dur)[0];
  const rows: SavedData["rows"] = [];
  for (const slice of slices) {
    let row = rows[rows.length - 1];
    if (row === undefined || row.lane !== slice.lane || row.row !== slice.level) {
      row = { lane: slice.lane, row: slice.level, start: [], dur: [], slice: [], name: [], kind: [] };
      rows.push(row);
    }
    row.start.push(slice.start);
    row.dur.push(slice.dur);
    row.slice.push(slice.row);
    row.name.push(slice.name);
    row.kind.push(slice.kind);
  }
  const differences = (values: number[]) => values.map((value, at) => value - (values[at - 1] ?? 0));
  for (const row of rows) Object.assign(row, { start: differences(row.start), slice: differences(row.slice) });
  const byCause = ["host_late", "between_queued"].map((cause) => {
    const those = gaps.filter((gap) => gap.cause === cause);
    return { cause, count: those.length, ns: those.reduce((sum, gap) => sum + gap.dur_ns, 0) };
  });
  return {
    saved: 1, t0: 0, t1: span,
    answers: {
      "/api/meta": {
        api: 1, generation: 1, version: "double",
        kinds: kinds.map((key, kind) => ({ kind, key, title: key })),
        causes: [
          { cause: 0, key: "host_late", title: "launched late", text: "The CPU launched the next work too late." },
          { cause: 1, key: "between_queued", title: "between queued work", text: "The next work was queued; the GPU changed over to it." },
        ],
        traces: [{
          path: title, title, writer: "test double", origin_ns: String(origin), base_time_ns: "0", span_ns: span, slice_count: slices.length,
          groups: [{ id: 0, title: "GPU 0", kind: "gpu" }, { id: 1, title: "Process", kind: "cpu" }], lanes: laneList,
          steps: stepEvents.map((slice, at) => ({ index: at, number: at, slice: slice.row, start_ns: slice.start, dur_ns: slice.dur, steady: true })),
          typical_step: stepEvents.length > 0 ? 0 : null,
          quality: [{ text: "drawn by the test double", count: 1, severity: "note" }],
        }],
      },
      "/api/explain?trace=0": {
        headline: `The GPU worked ${formatTime(busy)} of ${formatTime(span)}.`,
        headline_pieces: [{ text: "The GPU worked " }, { text: formatTime(busy), shows: "busy" }, { text: " of " }, { text: formatTime(span), shows: "step" }, { text: "." }],
        wall_ns: span, subject: "trace",
        wall: [{ shows: "compute", label: "compute", ns: busy, share: busy / span }, { shows: "idle", label: "idle", ns: idle, share: idle / span }],
        do_first: [{ rule: "longest", verdict: "One event takes the longest", action: "Look at it first", gain_ns: longest.dur, gain_text: `up to ${formatTime(longest.dur)}`, gain_ratio: longest.dur / span }],
        findings: [{ rule: "longest", text: "The longest event of the trace.", at_stake_ns: longest.dur, evidence: [{ slice: longest.row, label: "the longest event" }] }],
        full_command: `lanescope explain ${title}`,
      },
      "/api/gaps?trace=0": { total: gaps.length, by_cause: byCause, gaps },
      "/api/tour?trace=0": { stops: [{ title: "The longest event", text: "This event takes the longest.", slice: longest.row, t0: longest.start, t1: longest.start + longest.dur }] },
    },
    names: [...names.keys()].map((full, id) => ({ id, full, short: full.replace(/^void /, "").replace(/<.*$/, "") || full })),
    links: slices.flatMap((slice) => (slice.launch === null ? [] : [slice.launch.row, slice.row])),
    rows, events: {},
  };
}

// CPU: nesting. GPU: the first row that is free.
function layOut(slices: Slice[], lane: Lane): void {
  slices.sort((a, b) => a.start - b.start || b.dur - a.dur);
  const ends: number[] = [];
  const open: Slice[] = [];
  let busyTo = 0;
  for (const slice of slices) {
    if (lane.kind === "gpu") {
      let level = ends.findIndex((end) => end <= slice.start);
      if (level < 0) level = ends.length;
      ends[level] = slice.start + slice.dur;
      slice.level = level;
    } else {
      while (open.length > 0 && open[open.length - 1].start + open[open.length - 1].dur <= slice.start) open.pop();
      slice.level = open.length;
      while ((ends[slice.level] ?? 0) > slice.start) slice.level += 1;
      ends[slice.level] = slice.start + slice.dur;
      open.push(slice);
    }
    lane.rows = Math.max(lane.rows, slice.level + 1);
    lane.slice_count += 1;
    lane.busy_ns += Math.max(0, slice.start + slice.dur - Math.max(busyTo, slice.start));
    busyTo = Math.max(busyTo, slice.start + slice.dur);
  }
}

function findGaps(work: Slice[], lane: number): Gap[] {
  const gaps: Gap[] = [];
  let end = -1;
  for (const slice of [...work].sort((a, b) => a.start - b.start)) {
    if (end >= 0 && slice.start > end) {
      const late = slice.launch !== null && slice.launch.start + slice.launch.dur > end;
      gaps.push({
        index: gaps.length, device: 0, lane, start_ns: end, dur_ns: slice.start - end, cause: late ? "host_late" : "between_queued",
        text: late ? "The CPU launched the next work too late." : "The next work was queued; the GPU changed over to it.", ends_at: slice.row,
      });
    }
    end = Math.max(end, slice.start + slice.dur);
  }
  return gaps;
}
