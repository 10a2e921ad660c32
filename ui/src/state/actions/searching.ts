// Searching the whole trace, and going from hit to hit.
import { plural } from "../../base/format.ts";
import { cleanText } from "../../base/text.ts";
import type { Found, Store } from "../store.ts";
import { listLanes } from "./lane_choice.ts";
import { isGrown, say } from "./say.ts";
import { clearLit, selectSlice } from "./selecting.ts";

// `again`: the trace has grown; nothing is said.
export async function search(store: Store, text: string, again = false): Promise<void> {
  store.searchText.value = text;
  store.searchAt.value = -1;
  if (text.trim() === "") {
    store.searchAnswer.value = null;
    store.searchError.value = null;
    store.searchOnly.value = false;
    clearLit(store);
    return;
  }
  try {
    const answers = await Promise.all(store.views.map((view) => store.engine.search(view.index, text, 1000)));
    if (store.searchText.peek() !== text) return;
    // Lanes with most hits; the panel names no more.
    await Promise.all(answers.map((answer, trace) => listLanes(store, store.view(trace), [...answer.lanes].sort((a, b) => b.count - a.count).slice(0, 50).map((lane) => lane.lane))));
    const found: Found = {
      total: answers.reduce((sum, answer) => sum + answer.total, 0),
      lanes: answers.flatMap((answer, trace) => answer.lanes.map((lane) => ({ ...lane, trace }))),
      hits: answers.flatMap((answer, trace) => answer.hits.map((hit) => ({ ...hit, trace }))),
    };
    store.searchAnswer.value = found;
    store.searchError.value = null;
    if (found.total > 0) store.lit.value = { label: `“${cleanText(text, 60)}”`, trace: 0, namesOf: answers.map((answer) => new Set(answer.names)) };
    if (!again) say(store, plural(found.total, "hit"));
  } catch (reason) {
    if (isGrown(reason)) return; // growth.ts searches again
    store.searchAnswer.value = null;
    store.searchError.value = reason instanceof Error ? reason.message : String(reason);
  }
}

export async function nextHit(store: Store, by: number): Promise<void> {
  const answer = store.searchAnswer.peek();
  if (answer === null || answer.hits.length === 0) return;
  const count = answer.hits.length;
  const from = store.searchAt.peek();
  let at = (from + by + count) % count;
  if (from < 0) {
    // The first hit in view, else the first of all.
    const seen = answer.hits.findIndex((hit) => hit.start_ns - store.view(hit.trace).offset >= store.viewport.target.t0);
    at = by > 0 ? Math.max(0, seen) : count - 1;
  }
  store.searchAt.value = at;
  await selectSlice(store, answer.hits[at].trace, answer.hits[at].slice, { move: true, keepLit: true });
}
