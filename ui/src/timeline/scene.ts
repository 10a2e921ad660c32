// Gathers what the picture of one trace depends on, from the store's signals.
import { none, type EventDetails } from "../api/types.ts";
import { stepText } from "../state/actions/moving.ts";
import type { Lit, LitSlice, Store, TraceView } from "../state/store.ts";
import type { Scene } from "./picture.ts";
import { layOut, type Layout } from "./layout.ts";

export function layoutOf(view: TraceView, store: Store, room: number): Layout {
  const answer = store.searchAnswer.value;
  let lanes = view.shown.value.lanes;
  if (store.searchOnly.value && answer !== null) {
    const hits = new Set(answer.lanes.filter((lane) => lane.trace === view.index).map((lane) => lane.lane));
    lanes = lanes.filter((lane) => hits.has(lane.lane));
  }
  return layOut(lanes, view.choice.value, room);
}

export function gatherScene(store: Store, view: TraceView, layout: Layout, size: { width: number; height: number; ratio: number; scrollTop: number }, hover: LitSlice | null): Scene {
  const here = <T extends { trace: number }>(value: T | null): T | null => (value !== null && value.trace === view.index ? value : null);
  const selection = here(store.selection.value);
  const details = selection?.type === "slice" ? store.details.value : null;
  const gap = selection?.type === "gap" ? store.gap.value : null;
  const area = here(store.area.value);
  const measure = store.measure.value;
  const { steps } = view;
  void steps.version.value;
  void view.names.version.value;
  return {
    ...size,
    window: view.windowOf(store.viewport.shown.value),
    layout,
    frame: view.frames.frame.value,
    nameOf: (id) => (id === none ? "" : view.names.short(id)),
    stepTitle: (index) => {
      const step = steps.at(index);
      if (step === undefined) return "";
      return `${stepText(step)}${step.steady === false ? ", not steady" : ""}`;
    },
    causeTitle: (cause) => store.meta.causes.find((each) => each.cause === cause)?.title ?? "unknown cause",
    lit: litIn(store.lit.value, view.index),
    selected: details !== null ? litOf(details) : gap !== null ? { slice: gap.index, lane: gap.lane, row: 0, start_ns: gap.start_ns, dur_ns: gap.dur_ns } : null,
    chain: details === null ? [] : details.chain.filter((link) => link.slice !== details.slice).map(litOf),
    arrows: details?.arrows ?? [],
    queueNs: details === null ? null : queueOf(details),
    hover,
    focusLane: view.focusLane.value,
    area: area === null ? null : { t0: area.t0, t1: area.t1 },
    marks: [
      ...store.marks.value.map((mark) => ({ ...mark, at: mark.at + view.offset })),
      ...(view.index === 0 ? store.notes.value.map((note) => ({ at: note.t_ns, kept: true })) : []),
    ],
    measure: measure === null ? null : { from: measure.from + view.offset, to: measure.to === null ? null : measure.to + view.offset },
    traceSpan: view.meta.span_ns,
  };
}

function litIn(lit: Lit | null, trace: number): Lit | null {
  if (lit?.namesOf !== undefined) return { ...lit, trace, names: lit.namesOf[trace] };
  return lit?.trace === trace ? lit : null;
}

// From the end of the launch call to the start of the work; of a call, that of the first work it launched.
export function queueOf(details: EventDetails): number | null {
  if (details.queue_ns !== undefined && details.queue_ns !== null) return details.queue_ns;
  const arrow = details.arrows[0];
  return arrow === undefined ? null : arrow.to_ns - (arrow.from_end_ns ?? arrow.from_ns);
}

const litOf = (item: Pick<EventDetails, "slice" | "lane" | "row" | "start_ns" | "dur_ns">): LitSlice =>
  ({ slice: item.slice, lane: item.lane, row: item.row, start_ns: item.start_ns, dur_ns: item.dur_ns });
