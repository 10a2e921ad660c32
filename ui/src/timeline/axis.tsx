// The row above the lanes: how much time is in view in words, and room for the ticks, which draw_axis.ts draws.
import { useComputed } from "@preact/signals";
import type { Ref } from "preact";
import { formatShare, formatTime } from "../base/format.ts";
import { useStore } from "../state/context.ts";
import { spanOf } from "../state/window.ts";
import { axisHeight } from "./draw_axis.ts";

export function Axis({ width, canvas }: { width: number; canvas: Ref<HTMLCanvasElement> }) {
  const store = useStore();
  // Texts, so that moving along draws nothing anew.
  const inView = useComputed(() => formatTime(spanOf(store.viewport.shown.value)));
  const share = useComputed(() => formatShare(Math.min(1, spanOf(store.viewport.shown.value) / store.viewport.traceSpan)));
  return (
    <div class="axis">
      <div class="axis-corner">
        <span>{inView.value} in view</span>
        <span class="faint">{share.value} of the trace</span>
      </div>
      <div class="axis-ticks" aria-hidden="true">
        <canvas ref={canvas} style={{ width: `${width}px`, height: `${axisHeight}px` }} />
      </div>
    </div>
  );
}
