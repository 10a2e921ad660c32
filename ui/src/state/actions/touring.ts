// The guided tour.
import { none } from "../../api/types.ts";
import { cleanText } from "../../base/text.ts";
import type { Store } from "../store.ts";
import { evidenceSlices } from "./answering.ts";
import { reveal } from "./lane_choice.ts";
import { goTo } from "./moving.ts";
import { report, say } from "./say.ts";
import { clearLit, selectSlice } from "./selecting.ts";

export async function startTour(store: Store): Promise<void> {
  try {
    // The tour shows findings, and the rules take seconds for millions of events.
    if (store.main.explanation.peek() === null) store.busy.value = "The tour is on its way";
    const stops = await store.engine.tour(0).finally(() => { store.busy.value = null; });
    if (stops.length === 0) return void report(store, "This trace has nothing that a tour could show.");
    store.tour.value = { stops, at: 0 };
    await tourTo(store, 0);
  } catch (reason) {
    report(store, reason);
  }
}

export async function tourTo(store: Store, at: number): Promise<void> {
  const tour = store.tour.peek();
  const stop = tour?.stops[at];
  if (tour === null || stop === undefined) return;
  store.tour.value = { ...tour, at };
  reveal(store.main, stop.lanes ?? []);
  if (stop.lanes?.[0] !== undefined) store.main.scrollTo.value = { lane: stop.lanes[0], row: 0 };
  goTo(store, 0, stop.t0, stop.t1, 0);
  clearLit(store);
  if (stop.slice !== undefined && stop.slice !== none) {
    const details = await selectSlice(store, 0, stop.slice, { keepLit: true, side: false });
    if (details !== null && store.tour.peek()?.at === at) {
      const lit = [details, ...details.chain.filter((link) => link.role === "launch" || link.role === "kernel")];
      store.lit.value = { label: cleanText(stop.title), trace: 0, slices: lit.map(({ slice, lane, row, start_ns, dur_ns }) => ({ slice, lane, row, start_ns, dur_ns })) };
    }
  } else {
    store.selection.value = null;
    store.details.value = null;
  }
  const finding = store.main.explanation.peek()?.findings.find((each) => each.rule === stop.rule);
  const evidence = evidenceSlices(finding?.evidence ?? []);
  if (evidence.length > 0 && store.tour.peek()?.at === at) {
    store.lit.value = { label: cleanText(stop.title), trace: 0, slices: [...(store.lit.peek()?.slices ?? []), ...evidence] };
  }
  say(store, `${cleanText(stop.title)}. ${cleanText(stop.text, 2000)}`);
}

export function endTour(store: Store): void {
  store.tour.value = null;
  clearLit(store);
}
