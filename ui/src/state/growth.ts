// A trace that still grows. The engine reads it anew and numbers lanes, events and names anew; here the page moves on to it, and
// keeps what the reader sees: window, selection, marks, chosen lanes, search.
import { batch } from "@preact/signals";
import { EngineError, statusGrown, type Engine } from "../api/engine.ts";
import { none, type EventDetails, type Frame, type Gap, type Meta, type Name, type TraceMeta } from "../api/types.ts";
import { evidenceLabel, evidenceSlices } from "./actions/answering.ts";
import { selectArea } from "./actions/areas.ts";
import { attempt } from "./actions/say.ts";
import { search } from "./actions/searching.ts";
import { renewDetails } from "./actions/selecting.ts";
import type { LaneChoice } from "./lane_list.ts";
import type { Selection, Store } from "./store.ts";
import { fit, type TimeWindow } from "./window.ts";

const mostNames = 2000;

// The new number of each lane by its old one. A lane is found again by process, kind and title. Lanes with the same three keep their order.
export function lanesByOldNumber(before: TraceMeta, after: TraceMeta): Map<number, number> {
  const keyed = (meta: TraceMeta) => {
    const seen = new Map<string, number>();
    return meta.lanes.map((lane) => {
      const group = meta.groups.find((each) => each.id === lane.group)?.title ?? "";
      const key = [group, lane.kind, lane.title, lane.device ?? ""].join("\n");
      const count = seen.get(key) ?? 0;
      seen.set(key, count + 1);
      return [`${key}\n${count}`, lane.lane] as const;
    });
  };
  const now = new Map(keyed(after));
  return new Map(keyed(before).flatMap(([key, lane]) => (now.has(key) ? [[lane, now.get(key) ?? lane] as const] : [])));
}

// Times count from the earliest event: an earlier one that comes late shifts all others.
export function shiftOf(before: TraceMeta, after: TraceMeta): number {
  return Number(BigInt(before.origin_ns) - BigInt(after.origin_ns));
}

// Whoever sees the whole trace goes on seeing all of it.
export function windowAfter(window: TimeWindow, before: number, after: number, shift: number): TimeWindow {
  const isWhole = window.t0 <= 0 && window.t1 >= before && before > 0;
  return isWhole ? fit(0, after, after, 0.01) : { t0: window.t0 + shift, t1: window.t1 + shift };
}

function choiceAfter(choice: LaneChoice, lanes: ReadonlyMap<number, number>): LaneChoice {
  const moved = (set: ReadonlySet<number>) => new Set([...set].flatMap((lane) => lanes.get(lane) ?? []));
  return { ...choice, pinned: moved(choice.pinned), folded: moved(choice.folded), expanded: moved(choice.expanded), revealed: moved(choice.revealed) };
}

// The event that was selected, in the newer trace. One that was still open is longer now.
async function eventAfter(engine: Engine, before: EventDetails, lane: number, rows: number, shift: number): Promise<EventDetails | null> {
  const start = before.start_ns + shift;
  const order = [before.row, ...Array.from({ length: rows }, (_, row) => row).filter((row) => row !== before.row)];
  for (const row of order) {
    if (row >= rows) continue;
    const { longest } = await engine.at(0, lane, row, start, start + 1);
    const found = longest.find((each) => each.start_ns === start && each.name === before.name);
    if (found !== undefined) return engine.event(0, found.slice);
  }
  return null;
}

async function gapAfter(engine: Engine, before: Gap, shift: number): Promise<Gap | null> {
  const { gaps } = await engine.gaps(0, "time", 10_000);
  return gaps.find((gap) => gap.device === before.device && gap.start_ns === before.start_ns + shift) ?? null;
}

// Names of what the picture shows, so that no label blinks.
async function namesOf(engine: Engine, frame: Frame | undefined): Promise<Name[]> {
  const ids = new Set<number>();
  for (const entry of frame?.entries ?? []) {
    if (entry.kind !== "slices") continue;
    for (let index = 0; index < entry.count && ids.size < mostNames; index += 1) if (entry.name[index] !== none) ids.add(entry.name[index]);
  }
  return ids.size === 0 ? [] : engine.names(0, [...ids]);
}

// The generation that is shown then.
export async function followGrowth(store: Store): Promise<number> {
  for (;;) {
    const meta = await store.engine.meta();
    try {
      await moveOnTo(store, meta);
      const again = store.repeat;
      store.repeat = null;
      if (again !== null) await attempt(store, again);
      return meta.generation;
    } catch (reason) {
      if (!(reason instanceof EngineError) || reason.status !== statusGrown) throw reason; // else: it has grown again
    }
  }
}

async function moveOnTo(store: Store, meta: Meta): Promise<void> {
  const view = store.main;
  const [before, after] = [view.meta, meta.traces[0]];
  const engine = store.engine.of(meta.generation);
  const lanes = lanesByOldNumber(before, after);
  const shift = shiftOf(before, after);
  const details = store.details.peek();
  const gap = store.gap.peek();
  const lane = details === null ? undefined : lanes.get(details.lane);
  const rows = after.lanes.find((each) => each.lane === lane)?.rows ?? 0;
  const [renewed, event, idle] = await Promise.all([
    view.frames.renew(engine, lanes, shift, after.span_ns),
    details !== null && lane !== undefined ? eventAfter(engine, details, lane, rows, shift) : null,
    gap !== null ? gapAfter(engine, gap, shift) : null,
  ]);
  const names = await namesOf(engine, renewed?.frame);
  // The reader chose another event meanwhile, by its old number: find that one.
  if (store.details.peek() !== details || store.gap.peek() !== gap) return moveOnTo(store, meta);
  const area = store.area.peek();
  batch(() => {
    store.grow(engine, meta);
    view.frames.show(renewed);
    view.names.replace(names);
    view.choice.value = choiceAfter(view.choice.peek(), lanes);
    const focus = view.focusLane.peek();
    view.focusLane.value = focus === null ? null : lanes.get(focus) ?? null;
    store.details.value = event;
    store.gap.value = idle;
    store.selection.value = selectionOf(event, idle);
    store.marks.value = store.marks.peek().map((mark) => ({ ...mark, at: mark.at + shift }));
    const measure = store.measure.peek();
    if (measure !== null) store.measure.value = { from: measure.from + shift, to: measure.to === null ? null : measure.to + shift };
    if (area !== null) store.area.value = { ...area, t0: area.t0 + shift, t1: area.t1 + shift };
    if (store.lit.peek()?.slices !== undefined || store.lit.peek()?.namesOf !== undefined) store.lit.value = null; // named by old numbers
    store.viewport.follow(windowAfter(store.viewport.target, before.span_ns, after.span_ns, shift), shift);
  });
  await askAgain(store);
}

function selectionOf(event: EventDetails | null, gap: Gap | null): Selection | null {
  if (event !== null) return { type: "slice", trace: 0, slice: event.slice };
  return gap === null ? null : { type: "gap", trace: 0, gap: gap.index };
}

// Answers that are on screen.
async function askAgain(store: Store): Promise<void> {
  store.main.explanation.value = await store.engine.explain(0);
  await renewDetails(store);
  if (store.searchText.peek().trim() !== "") await search(store, store.searchText.peek(), true);
  const finding = store.main.explanation.peek()?.findings.find((each) => each.rule === store.finding.peek());
  if (finding !== undefined) store.lit.value = { label: evidenceLabel(finding), trace: 0, slices: evidenceSlices(finding.evidence) };
  const area = store.area.peek();
  if (area !== null) await selectArea(store, 0, area.t0, area.t1, true);
  const tour = store.tour.peek();
  if (tour !== null) {
    const stops = await store.engine.tour(0);
    const same = stops.findIndex((stop) => stop.title === tour.stops[tour.at]?.title);
    store.tour.value = stops.length === 0 ? null : { stops, at: same >= 0 ? same : Math.min(tour.at, stops.length - 1) };
  }
}
