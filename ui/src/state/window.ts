// The window of time that is on screen, and how it moves. Pure; the animation is in viewport.ts.
import { clamp } from "../base/numbers.ts";

export interface TimeWindow { t0: number; t1: number }

export const leastSpanNs = 40;

export const spanOf = (window: TimeWindow) => window.t1 - window.t0;

// Keeps some of the trace in view: the window may leave it by half of its own width.
export function limitWindow(window: TimeWindow, traceSpan: number): TimeWindow {
  const span = clamp(spanOf(window), leastSpanNs, Math.max(leastSpanNs, traceSpan * 1.2));
  const middle = clamp((window.t0 + window.t1) / 2, 0, traceSpan);
  return { t0: middle - span / 2, t1: middle + span / 2 };
}

// `factor` below 1 zooms in; the time `at` stays where it is on screen.
export function zoomAt(window: TimeWindow, at: number, factor: number, traceSpan: number): TimeWindow {
  const span = clamp(spanOf(window) * factor, leastSpanNs, Math.max(leastSpanNs, traceSpan * 1.2));
  const share = clamp((at - window.t0) / spanOf(window), 0, 1);
  return limitWindow({ t0: at - share * span, t1: at + (1 - share) * span }, traceSpan);
}

export function panBy(window: TimeWindow, ns: number, traceSpan: number): TimeWindow {
  return limitWindow({ t0: window.t0 + ns, t1: window.t1 + ns }, traceSpan);
}

// A period with a margin, so that its edges and its neighbours are in view.
export function fit(t0: number, t1: number, traceSpan: number, margin = 0.12): TimeWindow {
  const span = Math.max(t1 - t0, leastSpanNs);
  return limitWindow({ t0: t0 - span * margin, t1: t0 + span * (1 + margin) }, traceSpan);
}

// Same zoom, the period in the middle.
export function centre(window: TimeWindow, t0: number, t1: number, traceSpan: number): TimeWindow {
  const half = spanOf(window) / 2;
  const middle = (t0 + t1) / 2;
  return limitWindow({ t0: middle - half, t1: middle + half }, traceSpan);
}

export const sameWindow = (a: TimeWindow, b: TimeWindow) =>
  Math.abs(a.t0 - b.t0) + Math.abs(a.t1 - b.t1) < spanOf(b) * 1e-4;

// One frame of easing: 40 % of the way.
export function ease(from: TimeWindow, to: TimeWindow): TimeWindow {
  const next = { t0: from.t0 + (to.t0 - from.t0) * 0.4, t1: from.t1 + (to.t1 - from.t1) * 0.4 };
  return sameWindow(next, to) ? to : next;
}
