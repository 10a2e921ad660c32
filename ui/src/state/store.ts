// All state of the page. Panels and the timeline read its signals; they change them through the functions in actions/
import { computed, signal, type ReadonlySignal, type Signal } from "@preact/signals";
import type { Engine } from "../api/engine.ts";
import type { AreaAnswer, CompareAnswer, EventDetails, Explanation, Gap, GapsAnswer, JobAnswer, Lane, LanePage, Meta, Note, SearchHit, TourStop, TraceMeta } from "../api/types.ts";
import { FrameSource } from "./frame_source.ts";
import { chooseLanes, type LaneChoice, type ShownLanes } from "./lane_list.ts";
import { Names } from "./names.ts";
import { Steps } from "./steps.ts";
import { Viewport } from "./viewport.ts";
import type { TimeWindow } from "./window.ts";

export type Selection =
  | { type: "slice"; trace: number; slice: number }
  | { type: "gap"; trace: number; gap: number };

export interface LitSlice { slice: number; lane: number; row: number; start_ns: number; dur_ns: number }

// What is lit while the rest is dimmed: the evidence of an answer, a kind of time, the hits of a search.
export interface Lit {
  label: string;
  trace: number;
  slices?: LitSlice[];
  kinds?: ReadonlySet<number>;
  causes?: ReadonlySet<number>;
  names?: ReadonlySet<number>;
  namesOf?: readonly ReadonlySet<number>[]; // by trace, when two are searched; `trace` does not count then
}

// The hits of a search in all traces of the page.
export interface Found {
  total: number;
  lanes: { trace: number; lane: number; count: number }[];
  hits: (SearchHit & { trace: number })[];
}

export interface Mark { at: number; kept: boolean }
export interface Measure { from: number; to: number | null }
export interface Area { trace: number; t0: number; t1: number }

export type Drawer = "none" | "kernels" | "operators" | "gaps" | "area" | "flame" | "memory" | "search" | "notes" | "compare" | "ranks";
export type Overlay = "none" | "help" | "commands" | "lanes" | "quality";

export class TraceView {
  readonly frames: FrameSource;
  readonly names: Names;
  readonly choice: Signal<LaneChoice>;
  readonly shown: ReadonlySignal<ShownLanes>;
  readonly explanation = signal<Explanation | null>(null);
  readonly gaps = signal<GapsAnswer | null>(null);
  readonly focusLane = signal<number | null>(null); // of the keyboard
  otherLanesAsked = 0; // of those that are not listed at first
  readonly scrollTo = signal<{ lane: number; row: number } | null>(null);
  private readonly metaNow: Signal<TraceMeta>;
  private readonly stepsNow: Signal<Steps>;
  private readonly lanesNow: ReadonlySignal<ReadonlyMap<number, Lane>>;

  // `offset`: this trace's time minus the window's time (two traces are aligned by a step).
  constructor(private readonly engine: () => Engine, readonly index: number, meta: TraceMeta, readonly offset: number) {
    this.metaNow = signal(meta);
    this.stepsNow = signal(new Steps(engine, index, meta));
    this.frames = new FrameSource(engine, index, () => this.metaNow.peek().span_ns);
    this.names = new Names(engine, index);
    this.choice = signal({
      pinned: new Set<number>(), folded: new Set<number>(), expanded: new Set<number>(), revealed: new Set<number>(), showAll: false, showQuiet: false, filter: "",
    });
    this.shown = computed(() => chooseLanes(this.meta.lanes, this.choice.value));
    this.lanesNow = computed(() => new Map(this.meta.lanes.map((lane) => [lane.lane, lane])));
  }

  // Both change when the trace grows; whoever reads them in a component or an effect is called again.
  get meta(): TraceMeta { return this.metaNow.value; }
  get steps(): Steps { return this.stepsNow.value; }
  get laneByNumber(): ReadonlyMap<number, Lane> { return this.lanesNow.value; }
  grow(meta: TraceMeta): void {
    this.metaNow.value = meta;
    this.stepsNow.value = new Steps(this.engine, this.index, meta);
    this.otherLanesAsked = 0;
  }
  // Lanes that were not listed at first take their place in the order.
  addLanes({ lanes, groups }: LanePage): void {
    const { meta } = this;
    const added = lanes.filter((lane) => !this.laneByNumber.has(lane.lane));
    this.metaNow.value = {
      ...meta, lanes: [...meta.lanes, ...added].sort((a, b) => a.lane - b.lane), lanes_left_out: Math.max(0, (meta.lanes_left_out ?? 0) - added.length),
      groups: [...meta.groups, ...groups.filter((group) => !meta.groups.some((each) => each.id === group.id))],
    };
  }

  windowOf(shared: TimeWindow): TimeWindow {
    return { t0: shared.t0 + this.offset, t1: shared.t1 + this.offset };
  }
}

export class Store {
  readonly viewport: Viewport;
  readonly views: TraceView[];
  readonly selection = signal<Selection | null>(null);
  readonly details = signal<EventDetails | null>(null);
  readonly gap = signal<Gap | null>(null);
  readonly lit = signal<Lit | null>(null);
  readonly finding = signal<string | null>(null); // the rule whose evidence is shown
  readonly area = signal<Area | null>(null);
  readonly areaAnswer = signal<AreaAnswer | null>(null);
  readonly measure = signal<Measure | null>(null);
  readonly marks = signal<Mark[]>([]);
  readonly job = signal<JobAnswer | null>(null); // of all ranks
  readonly comparison = signal<CompareAnswer | null>(null); // of two traces
  readonly notes = signal<Note[]>([]);
  readonly searchText = signal("");
  readonly searchAnswer = signal<Found | null>(null);
  readonly searchError = signal<string | null>(null);
  readonly searchAt = signal(-1);
  readonly searchOnly = signal(false); // lanes without hits are hidden
  readonly drawer = signal<Drawer>("none");
  readonly panelTrace = signal(0); // whose tables and answers are shown
  readonly side = signal<"answers" | "details">("answers");
  readonly sideOpen = signal(true);
  readonly overlay = signal<Overlay>("none");
  readonly tour = signal<{ stops: TourStop[]; at: number } | null>(null);
  readonly gapCauses = signal<readonly string[] | null>(null); // keys; null: all
  readonly said = signal(""); // read out by screen readers
  readonly problem = signal<string | null>(null);
  readonly busy = signal<string | null>(null);
  readonly singleKeys = signal(true);
  readonly dark = signal(false);

  // What a key or a click does now, and what is done again when the newer trace is here: say.ts.
  doing: { missed: boolean } | null = null;
  repeat: (() => Promise<unknown> | void) | null = null;

  private readonly metaNow: Signal<Meta>;

  // `rank`: that the page was asked for; nothing: the trace that was opened.
  constructor(public engine: Engine, meta: Meta, readonly reducedMotion: () => boolean, readonly rank?: string) {
    this.metaNow = signal(meta);
    this.viewport = new Viewport(reducedMotion);
    const offsets = alignment(meta);
    // Two traces share the room: counters are shown by the button for more lanes.
    const crowded = meta.traces.length > 1;
    const lanesOf = (trace: TraceMeta) => (crowded ? trace.lanes.map((lane) => (lane.kind === "counter" ? { ...lane, main: false } : lane)) : trace.lanes);
    this.views = meta.traces.map((trace, index) => new TraceView(() => this.engine, index, { ...trace, lanes: lanesOf(trace) }, offsets[index]));
    this.viewport.traceSpan = Math.max(1, ...meta.traces.map((trace, index) => trace.span_ns - offsets[index]));
  }

  get meta(): Meta { return this.metaNow.value; }
  // The trace of the first view has grown.
  grow(engine: Engine, meta: Meta): void {
    this.engine = engine;
    this.metaNow.value = meta;
    this.main.grow(meta.traces[0]);
    this.viewport.traceSpan = Math.max(1, meta.traces[0].span_ns);
  }
  get main(): TraceView { return this.views[0]; }
  view(trace: number): TraceView { return this.views[trace] ?? this.views[0]; }
}

// Two traces lie side by side with their typical steps beginning at the same place.
function alignment(meta: Meta): number[] {
  const begins = meta.traces.map((trace) => {
    const step = trace.typical?.[0] ?? trace.steps[trace.typical_step ?? -1];
    return step === undefined ? 0 : step.start_ns;
  });
  return begins.map((begin) => begin - begins[0]);
}
