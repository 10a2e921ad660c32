import assert from "node:assert/strict";
import { test } from "node:test";
import { none } from "../../api/types.ts";
import type { Store } from "../store.ts";
import { neighbour } from "./following.ts";

test("the last event of a row has none after it, as the server says it and as a saved page does", async () => {
  for (const next of [null, none, undefined]) {
    const said = { value: "", peek: () => "" };
    const store = { selection: { peek: () => ({ type: "slice", trace: 0 }) }, details: { peek: () => ({ neighbours: { previous: 4, next } }) }, said };
    await neighbour(store as unknown as Store, true);
    assert.equal(said.value, "this is the last event of the row");
  }
});
