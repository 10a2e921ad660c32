// The time above the lanes: ticks, and how much of the trace is in view.
import { formatShare, formatTick, formatTime, leastTickPixels, tickStep } from "../base/format.ts";
import { useStore } from "../state/context.ts";
import { spanOf } from "../state/window.ts";

// Of the ticks' text, in pixels. The last tick keeps its line where its text would be cut.
const widestDigit = 7;

export function Axis({ width, offset }: { width: number; offset: number }) {
  const store = useStore();
  const window = store.viewport.shown.value;
  const step = tickStep(spanOf(window), Math.max(1, width / leastTickPixels));
  const from = window.t0 + offset;
  const ticks: { number: number; at: number; text: string }[] = [];
  // Before the first event there is no time of the trace.
  for (let tick = Math.max(0, Math.ceil(from / step) * step); tick <= from + spanOf(window) && ticks.length < 60; tick += step) {
    const at = ((tick - from) / spanOf(window)) * 100;
    const text = formatTick(tick, step);
    ticks.push({ number: Math.round(tick / step), at, text: width * (1 - at / 100) > text.length * widestDigit ? text : "" });
  }
  const total = store.viewport.traceSpan;
  const left = Math.max(0, Math.min(100, (window.t0 / total) * 100));
  const share = Math.max(0.4, Math.min(100 - left, (Math.min(total, window.t1) / total) * 100 - left));
  return (
    <div class="axis">
      <div class="axis-corner">
        <span>{formatTime(spanOf(window))} in view</span>
        <span class="faint">{formatShare(Math.min(1, spanOf(window) / total))} of the trace</span>
      </div>
      <div class="axis-ticks" aria-hidden="true">
        <div class="axis-extent"><div class="axis-extent-now" style={{ left: `${left}%`, width: `${share}%` }} /></div>
        {ticks.map((tick) => (
          <span key={tick.number} class="tick" style={{ left: `${tick.at}%` }}>{tick.text}</span>
        ))}
      </div>
    </div>
  );
}
