// Moving the window of time: to a range, a step, the selection.
import type { Step } from "../../api/types.ts";
import { formatTime } from "../../base/format.ts";
import type { Store } from "../store.ts";
import { centre, fit, panBy, sameWindow, spanOf, zoomAt } from "../window.ts";
import { report, say } from "./say.ts";

export function goTo(store: Store, trace: number, t0: number, t1: number, margin = 0.12): void {
  const offset = store.view(trace).offset;
  store.viewport.go(fit(t0 - offset, t1 - offset, store.viewport.traceSpan, margin));
}

export function goWhole(store: Store): void {
  store.viewport.go(fit(0, store.main.meta.span_ns, store.viewport.traceSpan, 0.01));
  say(store, "whole trace");
}

export function zoom(store: Store, factor: number, at?: number): void {
  const goal = store.viewport.target;
  store.viewport.go(zoomAt(goal, at ?? anchor(store), factor, store.viewport.traceSpan), false);
}

export function pan(store: Store, share: number): void {
  store.viewport.go(panBy(store.viewport.target, share * spanOf(store.viewport.target), store.viewport.traceSpan), false);
}

// Zooming by key keeps the selection in place when it is in view.
function anchor(store: Store): number {
  const goal = store.viewport.target;
  const range = selectedRange(store);
  if (range !== null) {
    const middle = (range.t0 + range.t1) / 2 - store.view(range.trace).offset;
    if (middle > goal.t0 && middle < goal.t1) return middle;
  }
  return (goal.t0 + goal.t1) / 2;
}

export function selectedRange(store: Store): { trace: number; t0: number; t1: number } | null {
  const selection = store.selection.peek();
  const details = store.details.peek();
  const gap = store.gap.peek();
  if (selection?.type === "slice" && details !== null) return { trace: selection.trace, t0: details.start_ns, t1: details.start_ns + details.dur_ns };
  if (selection?.type === "gap" && gap !== null) return { trace: selection.trace, t0: gap.start_ns, t1: gap.start_ns + gap.dur_ns };
  const area = store.area.peek();
  return area === null ? null : { trace: area.trace, t0: area.t0, t1: area.t1 };
}

// First to the middle, then fill the window.
export function fitSelection(store: Store): void {
  const range = selectedRange(store);
  if (range === null) return;
  const offset = store.view(range.trace).offset;
  const span = store.viewport.traceSpan;
  const middle = centre(store.viewport.target, range.t0 - offset, range.t1 - offset, span);
  const filled = fit(range.t0 - offset, range.t1 - offset, span);
  store.viewport.go(sameWindow(middle, store.viewport.target) ? filled : middle);
}

// The length that the verdict counts: from the device's end of the step before to its own, on the CPU where there is no device.
export const stepLength = (step: Step) => (step.device_dur_ns !== undefined && step.device_dur_ns > 0 ? step.device_dur_ns : step.dur_ns);

// "step 4, 21.1 ms (6.06 ms on the CPU)": where both differ, since the CPU runs ahead of the device.
export function stepText(step: Step): string {
  const length = stepLength(step);
  const both = Math.abs(length - step.dur_ns) > 0.05 * length ? ` (${formatTime(step.dur_ns)} on the CPU)` : "";
  return `step ${step.number ?? step.index}, ${formatTime(length)}${both}`;
}

export function goToStep(store: Store, step: Step): void {
  const begin = step.start_ns;
  const end = Math.max(begin + step.dur_ns, (step.device_start_ns ?? begin) + (step.device_dur_ns ?? 0));
  goTo(store, 0, begin, end, 0.03);
  say(store, stepText(step));
}

async function goToStepAt(store: Store, index: number): Promise<void> {
  const { steps } = store.main;
  try {
    const step = await steps.get(Math.min(steps.count - 1, Math.max(0, index)));
    if (step !== undefined) goToStep(store, step);
  } catch (reason) {
    report(store, reason);
  }
}

// Of a recording that still runs.
export function goToNewest(store: Store): void {
  const { steps, meta: { span_ns: span } } = store.main;
  if (steps.count > 0) void goToStepAt(store, steps.count - 1);
  else goTo(store, 0, span - Math.min(span, spanOf(store.viewport.target)), span, 0);
}

export function stepInView(store: Store): number {
  return store.main.steps.indexAt(middleOf(store));
}
const middleOf = (store: Store) => (store.viewport.target.t0 + store.viewport.target.t1) / 2;

export function nextStep(store: Store, by: number): void {
  const { steps } = store.main;
  if (steps.areListed) {
    const step = steps.at(Math.min(steps.count - 1, Math.max(0, stepInView(store) + by)));
    if (step !== undefined) goToStep(store, step);
  } else {
    steps.find(middleOf(store)).then((index) => goToStepAt(store, index + by), (reason) => report(store, reason));
  }
}
