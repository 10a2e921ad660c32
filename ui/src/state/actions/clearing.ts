// Escape: takes away the last thing that was opened or selected.
import type { Store } from "../store.ts";
import { clearLit } from "./selecting.ts";
import { endTour } from "./touring.ts";

// Closes or clears the newest thing first.
export function clear(store: Store): void {
  if (store.overlay.peek() !== "none") store.overlay.value = "none";
  else if (store.tour.peek() !== null) endTour(store);
  else if (store.measure.peek() !== null) store.measure.value = null;
  else if (store.lit.peek() !== null) clearLit(store);
  else if (store.selection.peek() !== null || store.area.peek() !== null) {
    store.selection.value = null;
    store.details.value = null;
    store.gap.value = null;
    store.area.value = null;
    store.side.value = "answers";
  } else if (store.drawer.peek() !== "none") store.drawer.value = "none";
}
