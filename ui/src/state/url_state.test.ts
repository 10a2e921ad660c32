import assert from "node:assert/strict";
import { test } from "node:test";
import { readLink, writeLink } from "./url_state.ts";

test("what is written is read", () => {
  const state = { t0: -12, t1: 3_000_000, trace: 1, slice: 42, panel: "gaps", side: "details", finding: "host-bound", search: "kind:copy >100us & ü", all: true };
  const back = readLink(`#${writeLink(state)}`);
  for (const [key, value] of Object.entries(state)) assert.deepEqual(back[key as keyof typeof back], value, key);
});

test("an area is a range", () => {
  assert.deepEqual(readLink(writeLink({ area: [5, 90] })).area, [5, 90]);
});

test("what is not understood is left out", () => {
  const state = readLink("#v=9..1&slice=-4&panel=<img>&finding=../x&area=1..2..3&gap=1e9");
  assert.deepEqual([state.t0, state.slice, state.panel, state.finding, state.area, state.gap], [undefined, undefined, undefined, undefined, undefined, undefined]);
});
