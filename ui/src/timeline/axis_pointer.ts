// The mouse, or a finger, on the axis: drag moves the picture, the wheel zooms at the pointer, double click shows the whole trace. All of it
// has a key as well (state/keys.ts).
import { goWhole } from "../state/actions/moving.ts";
import type { Store } from "../state/store.ts";
import { panBy, spanOf, type TimeWindow } from "../state/window.ts";
import { moveByWheel } from "./wheel.ts";

export function listenOnAxis(store: Store, axis: HTMLElement): () => void {
  let from: { x: number; window: TimeWindow } | null = null;
  const down = (event: PointerEvent) => {
    if (event.button !== 0) return;
    from = { x: event.clientX, window: store.viewport.target };
    axis.setPointerCapture(event.pointerId);
  };
  const move = (event: PointerEvent) => {
    if (from === null) return;
    const perPixel = spanOf(from.window) / Math.max(1, axis.clientWidth);
    store.viewport.jump(panBy(from.window, (from.x - event.clientX) * perPixel, store.viewport.traceSpan));
  };
  const up = () => { from = null; };
  const wheel = (event: WheelEvent) => moveByWheel(store, event, axis, true);
  const double = () => goWhole(store);
  axis.addEventListener("pointerdown", down);
  axis.addEventListener("pointermove", move);
  axis.addEventListener("pointerup", up);
  axis.addEventListener("pointercancel", up);
  axis.addEventListener("wheel", wheel, { passive: false });
  axis.addEventListener("dblclick", double);
  return () => {
    axis.removeEventListener("pointerdown", down);
    axis.removeEventListener("pointermove", move);
    axis.removeEventListener("pointerup", up);
    axis.removeEventListener("pointercancel", up);
    axis.removeEventListener("wheel", wheel);
    axis.removeEventListener("dblclick", double);
  };
}
