import assert from "node:assert/strict";
import { test } from "node:test";
import type { WallPart } from "../../api/types.ts";
import type { Store, TraceView } from "../store.ts";
import { canShowPart, showWallPart } from "./answering.ts";

const part = (shows?: string, causes?: string[]): WallPart => ({ label: "idle: waiting", ns: 1, share: 0.1, shows, causes });
const viewWith = (...kinds: string[]) => ({ meta: { lanes: kinds.map((kind) => ({ kind })) } }) as unknown as TraceView;

// As much of a store as showing a part reads.
const storeOf = () => ({
  meta: {
    kinds: [{ kind: 0, key: "operator", title: "operators" }, { kind: 5, key: "communication", title: "communication" }],
    causes: [{ cause: 3, key: "between_queued", title: "between queued work" }, { cause: 5, key: "profiler", title: "the profiler's own work" }],
  },
  lit: { value: null as { label: string; kinds?: Set<number>; causes?: Set<number> } | null }, said: { value: "", peek: () => "" },
  gapCauses: { value: null }, panelTrace: { value: 0 }, drawer: { value: "none" },
});
const shown = (which: WallPart) => {
  const store = storeOf();
  showWallPart(store as unknown as Store, which);
  return store;
};

test("a part is a link if the trace has lanes of what it shows", () => {
  assert.equal(canShowPart(viewWith("cpu", "gpu"), part("compute")), true);
  assert.equal(canShowPart(viewWith("cpu"), part("compute")), false);
  assert.equal(canShowPart(viewWith("cpu"), part("operator")), true);
  assert.equal(canShowPart(viewWith("gpu", "idle"), part("idle")), true);
  assert.equal(canShowPart(viewWith("gpu"), part("idle")), false);
  assert.equal(canShowPart(viewWith("cpu", "gpu", "idle"), part()), false);
});

test("a part lights its kind, and says that of what is lit", () => {
  const { lit } = shown(part("communication"));
  assert.deepEqual([lit.value?.label, ...lit.value?.kinds ?? []], ["communication", 5]);
});

test("idle time opens the list of its gaps, whatever its label says", () => {
  const some = shown(part("idle", ["profiler"]));
  assert.deepEqual([some.drawer.value, some.gapCauses.value, ...some.lit.value?.causes ?? []], ["gaps", ["profiler"], 5]);
  assert.equal(some.lit.value?.label, "idle GPU: the profiler's own work");
  const all = shown(part("idle"));
  assert.deepEqual([all.drawer.value, all.gapCauses.value, ...all.lit.value?.causes ?? []], ["gaps", null, 3, 5]);
});

test("what is of several kinds lights nothing", () => {
  assert.equal(shown(part()).lit.value, null);
});
