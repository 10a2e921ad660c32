// The wheel moves the window: with Ctrl it zooms at the pointer, with Shift or sideways it moves along. Over the lanes the plain wheel
// scrolls their list; over the axis, where nothing scrolls, it zooms.
import type { Store } from "../state/store.ts";
import { panBy, spanOf, zoomAt } from "../state/window.ts";

const zoomPerPixel = 0.003;
const mostPixels = 120; // of one event: wheels with large steps stay under control
const linePixels = 16;

export function moveByWheel(store: Store, event: WheelEvent, surface: HTMLElement, plainZooms: boolean): void {
  const box = surface.getBoundingClientRect();
  const shown = store.viewport.shown.peek();
  const perPixel = spanOf(shown) / Math.max(1, box.width);
  const unit = event.deltaMode === 1 ? linePixels : 1;
  const sideways = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
  if (event.ctrlKey || event.metaKey || (plainZooms && !sideways)) {
    const factor = Math.exp(Math.max(-mostPixels, Math.min(mostPixels, event.deltaY * unit)) * zoomPerPixel);
    store.viewport.go(zoomAt(store.viewport.target, shown.t0 + (event.clientX - box.left) * perPixel, factor, store.viewport.traceSpan), false);
  } else if (sideways) {
    const pixels = (event.shiftKey && event.deltaX === 0 ? event.deltaY : event.deltaX) * unit;
    store.viewport.go(panBy(store.viewport.target, pixels * perPixel, store.viewport.traceSpan), false);
  } else {
    return;
  }
  event.preventDefault();
}
