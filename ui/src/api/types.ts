// What the engine answers: docs/formats/view_api.md. Times are nanoseconds since the start of the trace; a slice is named by
// its row in the trace.

export type LaneKind = "steps" | "annotation" | "cpu" | "python" | "gpu" | "sync" | "idle" | "counter" | "async" | "device";

// Means "no slice", "no name".
export const none = 0xffffffff;

// `found`: the index that was asked for by time or number; -1: there is none.
export interface StepPage { total: number; found: number; steps: Step[] }
export type StepQuestion = { from?: number; at?: number; number?: number; limit: number };

export interface Lane {
  lane: number;
  group: number;
  kind: LaneKind;
  title: string;
  subtitle?: string;
  rows: number;
  slice_count: number;
  busy_ns: number;
  quiet: boolean;
  main?: boolean;
  device?: number;
  counter?: { min: number; max: number; unit: string };
}

export interface Step {
  index: number;
  number: number | null;
  slice: number;
  start_ns: number;
  dur_ns: number;
  steady?: boolean;
  device_start_ns?: number;
  device_dur_ns?: number;
}

export interface LaneGroup { id: number; title: string; kind?: string }
export interface LanePage { lanes: Lane[]; groups: LaneGroup[] }

export interface TraceMeta {
  path: string;
  title: string;
  writer?: string;
  origin_ns: string | number;
  base_time_ns?: string | number;
  span_ns: number;
  first_view?: { t0: number; t1: number }; // without steps: the part to show first
  slice_count: number;
  main_device?: number | null;
  groups: LaneGroup[];
  lanes: Lane[];
  lanes_left_out?: number;
  steps: Step[]; // all of them, or none if they are more than 2,000: then engine.steps() has them in pages
  step_count?: number;
  typical_step?: number | null;
  typical?: Step[]; // that step
  steps_per_bar?: number; // of many steps: `bars` stand for so many each
  bars?: { first_start_ns: number; longest: Step[] }[];
  quality: { text: string; count: number; severity?: "lost" | "repaired" | "note" }[];
}

// `shown`: a rank's number, or "all": one trace of all of them, clocks aligned.
export interface Ranks { together: boolean; shown?: string; list: { rank: number; title: string }[] }

// What a rank does in a step, means in nanoseconds: step = own + transfer + wait; own = compute + idle + copies.
export interface RankRow {
  rank: number; step_ns: number; own_ns: number; compute_ns: number; idle_ns: number; copy_ns: number; transfer_ns: number; wait_ns: number; hidden_ns: number;
}
export interface JobAnswer { sentences: string[]; remarks: string[]; late: number[]; rows: RankRow[]; command: string }

export interface Meta {
  api: number;
  generation: number;
  live?: boolean;
  version?: string;
  traces: TraceMeta[];
  ranks?: Ranks; // of the run in the folder that was opened
  kinds: { kind: number; key: string; title: string }[];
  causes: { cause: number; key: string; title: string; text: string }[];
}

// One (lane, row) of a frame. `start` counts from the frame's t0. A cell with `folded` above 1 is that many slices,
// all shorter than a step; `slice` and `name` are those of the longest.
export interface FrameEntry {
  lane: number;
  row: number;
  kind: "slices";
  count: number;
  start: Float32Array;
  dur: Float32Array;
  slice: Uint32Array;
  name: Uint32Array;
  folded: Uint32Array;
  coverage: Uint8Array;
  kinds: Uint8Array;
  flags: Uint8Array;
}

export interface CounterEntry {
  lane: number;
  row: number;
  kind: "counter";
  count: number;
  start: Float32Array;
  min: Float32Array;
  max: Float32Array;
  last: Float32Array;
}

export interface Frame {
  gen: number;
  t0: number;
  t1: number;
  step: number;
  entries: (FrameEntry | CounterEntry)[];
}

export const flagOverlap = 1;
export const flagClipped = 2;
export const flagZeroLength = 4;

export interface FrameRequest {
  trace: number;
  t0: number;
  t1: number;
  step: number;
  lanes: number[];
  gen: number;
}

export interface Name {
  id: number;
  short: string;
  full: string;
}

export interface ChainLink {
  role: string;
  slice: number;
  name: string;
  short?: string;
  start_ns: number;
  dur_ns: number;
  lane: number;
  row: number;
  self?: boolean;
}

export interface Arrow {
  from: number;
  to: number;
  from_lane: number;
  from_row: number;
  to_lane: number;
  to_row: number;
  from_ns: number; // start of the call
  from_end_ns?: number;
  to_ns: number;
}

export interface Described {
  kind?: string;
  text?: string;
  what?: string;
  cpu_waits?: string | boolean;
  gpu_work?: string | boolean;
  note?: string;
  rule?: string;
}

export interface EventDetails {
  slice: number;
  lane: number;
  row: number;
  name: string;
  short: string;
  start_ns: number;
  dur_ns: number;
  self_ns?: number;
  kind: number;
  category?: string;
  thread?: { title: string };
  args: { key: string; value: unknown }[];
  describe?: Described;
  chain: ChainLink[];
  queue_ns?: number | null;
  launched?: { slice: number; short: string; start_ns: number; dur_ns: number; lane: number; row: number }[];
  launched_count?: number;
  like?: { count: number; median_ns: number; min_ns: number; max_ns: number; total_ns?: number; previous?: number; next?: number };
  occupancy?: { blocks?: number; block_threads?: number; percent?: number; limiter?: string; waves?: number };
  shapes?: unknown;
  stack?: string[] | string;
  code?: string; // the place in the program
  forward?: number; // of a backward operator: the forward one
  arrows: Arrow[];
  arrow_count?: number;
  findings?: string[];
  pending?: boolean; // the rules still run: findings and `forward` are not known yet
  neighbours?: { previous: number | null; next: number | null }; // null from the server, `none` from a saved page: there is none
  command?: string;
}

export interface Folded {
  count: number;
  busy_ns: number;
  longest: { slice: number; name: string; short?: string; start_ns: number; dur_ns: number }[];
}

export interface AreaAnswer {
  t0?: number;
  t1?: number;
  lanes: { lane: number; count: number; busy_ns: number }[];
  names: { name: string; short?: string; kind: number; count: number; total_ns: number; self_ns?: number; longest?: number }[];
  names_total?: number;
  kinds: { kind: number; count: number; total_ns: number }[];
  gaps: { device?: number; cause: number | string; count: number; ns: number }[];
  launch_delay?: { count: number; median_ns: number; min_ns: number; max_ns: number };
}

export interface SearchHit {
  slice: number;
  lane: number;
  row: number;
  start_ns: number;
  dur_ns: number;
  name: string;
  short?: string;
}

export interface SearchAnswer {
  total: number;
  lanes: { lane: number; count: number }[];
  hits: SearchHit[];
  names?: number[];
}

export interface Evidence {
  slice: number;
  label: string;
  lane?: number;
  row?: number;
  start_ns?: number;
  dur_ns?: number;
}

export interface WallPart {
  shows?: string; // "idle", or the key of a kind; none: it is of several kinds, or has no events
  causes?: string[]; // of idle time: keys in Meta.causes; the gaps of these hold it
  label: string;
  ns: number;
  share: number;
}

export interface Suggestion {
  rule: string;
  verdict: string;
  action: string;
  place?: string;
  gain_ns: number;
  gain_text?: string;
  gain_ratio: number;
  evidence?: Evidence[];
}

export interface Finding {
  rule: string;
  kind?: string;
  title?: string;
  question?: string;
  brief?: string;
  action?: string;
  text: string;
  arithmetic?: string[];
  try_next?: string[];
  gain_text?: string; // what acting on it gains, as do_first says it; empty: no cost
  at_stake_ns?: number;
  at_stake_ratio?: number;
  confidence?: string;
  evidence: Evidence[];
}

// A piece of the headline. What it shows: a kind of time, "step", "busy", "moves", "idle", or the id of a rule; or an event.
export interface HeadlinePiece {
  text: string;
  shows?: string;
  slice?: number;
}

export interface Explanation {
  headline: string;
  headline_pieces?: HeadlinePiece[];
  subject?: string;
  wall_ns?: number;
  wall: WallPart[];
  basis?: string;
  do_first: Suggestion[];
  together?: string;
  base?: string;
  findings: Finding[];
  questions?: { id: string; question: string; state: string }[];
  nothing?: { remark: string; takers: { text: string; ns: number; ratio: number; slice?: number }[]; next?: string } | null;
  notes?: string[];
  damage?: string[];
  full_command?: string;
}

export interface Gap {
  index: number;
  device: number;
  lane: number;
  start_ns: number;
  dur_ns: number;
  cause: string | number;
  text: string;
  ends_at?: number | null;
  launch?: number | null;
  blame?: number | null;
  cpu?: string | null; // what the CPU did meanwhile
  cpu_slice?: number | null;
  finding?: string | null;
  pending?: boolean; // the rules still run: what the CPU did and the finding are not known yet
}

export interface GapsAnswer {
  total: number;
  by_cause: { cause: string | number; count: number; ns: number }[];
  gaps: Gap[];
  pending?: boolean;
}

export interface TourStop {
  title: string;
  text: string;
  slice?: number;
  t0: number;
  t1: number;
  lanes?: number[];
  arrow?: { from: number; to: number };
  word?: string;
  rule?: string; // a finding that the stop is about
}

export interface TableColumn {
  key: string;
  title: string;
  unit: "ns" | "count" | "ratio" | "text" | "bytes";
}

export interface TableAnswer {
  columns: TableColumn[];
  rows: ({ slice?: number } & Record<string, unknown>)[];
  total: number;
}

export interface TableRequest {
  table: "kernels" | "operators" | "names";
  t0?: number;
  t1?: number;
  sort: string;
  descending: boolean;
  filter: string;
  offset: number;
  limit: number;
}

export interface FlameNode {
  name: string;
  short?: string;
  parent: number;
  kind: number;
  total_ns: number;
  self_ns: number;
  count: number;
  longest?: number;
}

export interface MemoryAnswer {
  records_end_ns?: number; // later levels are unknown
  devices: {
    title: string;
    lane?: number;
    peak_bytes: number;
    peak_ns: number;
    holders?: { text: string; bytes: number; blocks: number }[]; // absent: the records have no addresses
    never_freed?: { text: string; bytes: number; blocks: number }[];
    steps?: unknown[];
  }[];
}

export interface CompareAnswer {
  brief?: { verdict: string; caution: string; parts: { delta_ns: number; text: string }[] };
  steps?: { a: number; b: number };
  [key: string]: unknown;
}

export interface Note {
  t_ns: number;
  text: string;
  lane?: number;
  slice?: number;
}
