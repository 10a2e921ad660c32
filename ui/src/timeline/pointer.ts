// The mouse on the lanes: click selects, drag makes an area, Shift or the middle button drags the picture, Ctrl and the wheel
// zoom at the pointer. Everything here has a key as well (state/keys.ts).
import { selectArea } from "../state/actions/areas.ts";
import { openOn } from "../state/actions/following.ts";
import { choose } from "../state/actions/lane_choice.ts";
import { goTo } from "../state/actions/moving.ts";
import { attempt } from "../state/actions/say.ts";
import type { LitSlice, Store, TraceView } from "../state/store.ts";
import { panBy, spanOf, zoomAt } from "../state/window.ts";
import { hitTest, snap, type Hit } from "./hit.ts";
import type { Layout } from "./layout.ts";
import { moveByWheel } from "./wheel.ts";

export interface Surface {
  canvas: HTMLCanvasElement;
  layout: () => Layout;
  scrollTop: () => number;
  hover: (hit: Hit | null, x: number, y: number) => void;
}

const clickPixels = 4;
const snapPixels = 8;

export function listen(store: Store, view: TraceView, surface: Surface): () => void {
  const { canvas } = surface;
  let drag: { x: number; at: number; moves: boolean; t0: number; moved: boolean } | null = null;

  const perPixel = () => spanOf(store.viewport.shown.peek()) / Math.max(1, canvas.clientWidth);
  const timeAt = (x: number) => view.windowOf(store.viewport.shown.peek()).t0 + x * perPixel();
  const hitOf = (x: number, y: number) => hitTest(surface.layout(), view.frames.frame.peek(), timeAt(x), y + surface.scrollTop(), perPixel());
  const place = (event: MouseEvent) => {
    const box = canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };
  const snapped = (x: number, y: number) => snap(hitOf(x, y), timeAt(x), snapPixels * perPixel()) ?? timeAt(x);

  // What lies there now: the first time what was hit, after the trace has grown the same event by its new number.
  const openAt = async (time: number, y: number) => {
    const hit = hitTest(surface.layout(), view.frames.frame.peek(), time, y + surface.scrollTop(), perPixel());
    if (hit !== null) await openOn(store, view, hit.box.lane.lane, hit.entry.slice[hit.index]);
  };

  const down = (event: PointerEvent) => {
    const { x, y } = place(event);
    if (event.button > 1) return;
    drag = { x, at: snapped(x, y), moves: event.button === 1 || event.shiftKey, t0: store.viewport.target.t0, moved: false };
    canvas.setPointerCapture(event.pointerId);
    if (event.button === 1) event.preventDefault();
  };
  const move = (event: PointerEvent) => {
    const { x, y } = place(event);
    if (drag === null) return surface.hover(hitOf(x, y), x, y);
    if (Math.abs(x - drag.x) > clickPixels) drag.moved = true;
    if (!drag.moved) return;
    surface.hover(null, x, y);
    if (drag.moves) {
      const span = spanOf(store.viewport.target);
      const t0 = drag.t0 - (x - drag.x) * perPixel();
      store.viewport.jump(panBy({ t0, t1: t0 + span }, 0, store.viewport.traceSpan));
    } else {
      const to = snapped(x, y);
      store.area.value = { trace: view.index, t0: Math.min(drag.at, to), t1: Math.max(drag.at, to) };
    }
  };
  const up = (event: PointerEvent) => {
    const from = drag;
    drag = null;
    const { x, y } = place(event);
    if (from === null) return;
    if (from.moved) {
      if (!from.moves) void selectArea(store, view.index, from.at, snapped(x, y));
      return;
    }
    const hit = hitOf(x, y);
    if (store.measure.peek() !== null) {
      store.measure.value = { from: store.measure.peek()?.from ?? 0, to: snapped(x, y) - view.offset };
      return;
    }
    if (hit === null) {
      store.area.value = null;
      return;
    }
    view.focusLane.value = hit.box.lane.lane;
    if (hit.box.folded) choose(view, { folded: new Set([...view.choice.peek().folded].filter((lane) => lane !== hit.box.lane.lane)) });
    // Many in one pixel: closer, so that the one that was meant can be seen.
    if (hit.entry.folded[hit.index] > 1 && hit.dur < 3 * perPixel()) {
      const at = timeAt(x);
      store.viewport.go(zoomAt(store.viewport.target, at - view.offset, 0.12, store.viewport.traceSpan));
    }
    const at = timeAt(x);
    void attempt(store, () => openAt(at, y));
  };
  const double = (event: MouseEvent) => {
    const { x, y } = place(event);
    const hit = hitOf(x, y);
    if (hit !== null) goTo(store, view.index, hit.start, hit.start + hit.dur);
  };
  const wheel = (event: WheelEvent) => moveByWheel(store, event, canvas, false);
  const leave = () => surface.hover(null, 0, 0);

  canvas.addEventListener("pointerdown", down);
  canvas.addEventListener("pointermove", move);
  canvas.addEventListener("pointerup", up);
  canvas.addEventListener("pointerleave", leave);
  canvas.addEventListener("dblclick", double);
  canvas.addEventListener("wheel", wheel, { passive: false });
  return () => {
    canvas.removeEventListener("pointerdown", down);
    canvas.removeEventListener("pointermove", move);
    canvas.removeEventListener("pointerup", up);
    canvas.removeEventListener("pointerleave", leave);
    canvas.removeEventListener("dblclick", double);
    canvas.removeEventListener("wheel", wheel);
  };
}

export function litOfHit(hit: Hit): LitSlice {
  return { slice: hit.entry.slice[hit.index], lane: hit.box.lane.lane, row: hit.row, start_ns: hit.start, dur_ns: hit.dur };
}
