// Areas, measuring, marks and notes.
import type { Note } from "../../api/types.ts";
import { formatTime } from "../../base/format.ts";
import type { Store } from "../store.ts";
import { selectedRange } from "./moving.ts";
import { openDrawer } from "./panels.ts";
import { report, say } from "./say.ts";

export async function selectArea(store: Store, trace: number, t0: number, t1: number, again = false): Promise<void> {
  const view = store.view(trace);
  const area = { trace, t0: Math.max(0, Math.floor(Math.min(t0, t1))), t1: Math.min(view.meta.span_ns, Math.ceil(Math.max(t0, t1))) };
  if (area.t1 <= area.t0) return;
  store.area.value = area;
  if (!again) {
    store.areaAnswer.value = null;
    openDrawer(store, "area");
  }
  try {
    const answer = await store.engine.area(trace, area.t0, area.t1, view.shown.peek().lanes.filter((lane) => lane.kind !== "counter").map((lane) => lane.lane));
    if (store.area.peek() === area) store.areaAnswer.value = answer;
    if (!again) say(store, `area of ${formatTime(area.t1 - area.t0)}`);
  } catch (reason) {
    report(store, reason);
  }
}

export async function areaOfSelection(store: Store): Promise<void> {
  const range = selectedRange(store);
  const view = store.viewport.target;
  if (range !== null) await selectArea(store, range.trace, range.t0, range.t1);
  else await selectArea(store, 0, view.t0, view.t1);
}

export function startMeasure(store: Store): void {
  const range = selectedRange(store);
  if (range === null) return void say(store, "select an event first, then measure from it");
  const offset = store.view(range.trace).offset;
  store.measure.value = { from: range.t0 - offset, to: range.t1 - offset };
  say(store, `measuring from here; ${formatTime(range.t1 - range.t0)}`);
}

export function measureTo(store: Store, to: number): void {
  const measure = store.measure.peek();
  if (measure === null) return;
  store.measure.value = { from: measure.from, to };
  say(store, `measured ${formatTime(Math.abs(to - measure.from))}`);
}

export function mark(store: Store, keep: boolean): void {
  const range = selectedRange(store);
  const window = store.viewport.target;
  const at = range === null ? (window.t0 + window.t1) / 2 : range.t0 - store.view(range.trace).offset;
  store.marks.value = [...store.marks.peek().filter((each) => each.kept && each.at !== at), { at, kept: keep }];
  say(store, keep ? "mark kept" : "marked");
}

export async function keepNotes(store: Store, notes: Note[]): Promise<void> {
  store.notes.value = notes;
  try {
    await store.engine.keepNotes(notes);
  } catch (reason) {
    report(store, reason);
  }
}
