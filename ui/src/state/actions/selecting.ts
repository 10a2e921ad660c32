// Selecting a slice, a gap or a step, and taking the selection away.
import { type EventDetails, none } from "../../api/types.ts";
import { formatCount, formatTime } from "../../base/format.ts";
import { cleanText } from "../../base/text.ts";
import type { Selection, Store, TraceView } from "../store.ts";
import { centre, spanOf } from "../window.ts";
import { measureTo } from "./areas.ts";
import { listLanes, reveal } from "./lane_choice.ts";
import { goTo, goToStep } from "./moving.ts";
import { showSide } from "./panels.ts";
import { isGrown, report, say } from "./say.ts";

export async function selectSlice(store: Store, trace: number, slice: number, options: { move?: boolean; keepLit?: boolean; side?: boolean } = {}): Promise<EventDetails | null> {
  if (slice === none || slice < 0) return null;
  const before = store.selection.peek();
  const wanted: Selection = { type: "slice", trace, slice };
  store.selection.value = wanted;
  if (options.keepLit !== true) clearLit(store);
  try {
    const details = await store.engine.event(trace, slice);
    const now = store.selection.peek();
    if (now?.type !== "slice" || now.slice !== slice || now.trace !== trace) return null;
    const view = store.view(trace);
    await listLanes(store, view, [details.lane, ...details.chain.map((link) => link.lane)]);
    store.details.value = details;
    store.gap.value = null;
    reveal(view, [details.lane, ...details.chain.map((link) => link.lane)]);
    view.focusLane.value = details.lane;
    view.scrollTo.value = { lane: details.lane, row: details.row };
    if (options.move === true) moveTo(store, trace, details);
    if (options.side !== false) showSide(store, "details");
    const measure = store.measure.peek();
    if (measure !== null) measureTo(store, details.start_ns - view.offset);
    say(store, describeSelection(view, details));
    return details;
  } catch (reason) {
    if (isGrown(reason) && store.selection.peek() === wanted) store.selection.value = before;
    report(store, reason);
    return null;
  }
}

// The rules were still running when the event or the gap was selected; now their findings are there.
export async function renewDetails(store: Store): Promise<void> {
  const gap = store.gap.peek();
  const idle = store.selection.peek();
  if (gap?.pending === true && idle?.type === "gap") {
    const whole = await store.engine.gap(idle.trace, gap.index);
    if (store.gap.peek() === gap) store.gap.value = whole;
    return;
  }
  const before = store.details.peek();
  const selection = store.selection.peek();
  if (before?.pending !== true || selection?.type !== "slice") return;
  const details = await store.engine.event(selection.trace, before.slice);
  if (store.details.peek() === before) store.details.value = details;
}

function describeSelection(view: TraceView, details: EventDetails): string {
  const lane = view.laneByNumber.get(details.lane);
  const like = details.like !== undefined && details.like.count > 1 ? `, one of ${formatCount(details.like.count)} of this name` : "";
  return `${cleanText(details.short || details.name)}, ${formatTime(details.dur_ns)}, on ${cleanText(lane?.title ?? "")}${like}`;
}

// An event and the other end of its arrow, both in view if that leaves the event wide enough to see.
function moveTo(store: Store, trace: number, details: EventDetails): void {
  const view = store.view(trace);
  let t0 = details.start_ns;
  let t1 = t0 + details.dur_ns;
  const arrow = details.arrows[0];
  if (arrow !== undefined) {
    const [from, to] = [Math.min(t0, arrow.from_ns), Math.max(t1, arrow.to_ns)];
    if (to - from < 60 * Math.max(details.dur_ns, 2_000)) [t0, t1] = [from, to];
  }
  const window = store.viewport.target;
  const span = spanOf(window);
  const inView = t0 - view.offset > window.t0 && t1 - view.offset < window.t1;
  const wide = details.dur_ns > span / 400;
  if (inView && wide) return;
  const context = Math.max((t1 - t0) * 1.6, details.dur_ns * 30, 4_000);
  const middle = (t0 + t1) / 2;
  // The middle of what is longer than the window shows neither of its ends.
  if (wide && t1 - t0 < span && span < context * 20) store.viewport.go(centre(window, t0 - view.offset, t1 - view.offset, store.viewport.traceSpan));
  else goTo(store, trace, middle - context / 2, middle + context / 2, 0);
}

export async function selectGap(store: Store, trace: number, index: number, move = false): Promise<void> {
  const before = store.selection.peek();
  const wanted: Selection = { type: "gap", trace, gap: index };
  store.selection.value = wanted;
  clearLit(store);
  try {
    const gap = await store.engine.gap(trace, index);
    if (store.selection.peek() !== wanted) return;
    store.gap.value = gap;
    store.details.value = null;
    const view = store.view(trace);
    reveal(view, [gap.lane]);
    view.focusLane.value = gap.lane;
    view.scrollTo.value = { lane: gap.lane, row: 0 };
    if (move) goTo(store, trace, gap.start_ns, gap.start_ns + gap.dur_ns, 0.6);
    showSide(store, "details");
    say(store, `GPU idle for ${formatTime(gap.dur_ns)}: ${cleanText(gap.text)}`);
  } catch (reason) {
    if (isGrown(reason) && store.selection.peek() === wanted) store.selection.value = before;
    report(store, reason);
  }
}

export async function selectStep(store: Store, trace: number, index: number): Promise<void> {
  const step = await store.view(trace).steps.get(index);
  if (step === undefined) return;
  if (step.slice !== none) await selectSlice(store, trace, step.slice);
  else goToStep(store, step);
}

export function clearLit(store: Store): void {
  store.lit.value = null;
  store.finding.value = null;
}
