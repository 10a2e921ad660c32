import assert from "node:assert/strict";
import { test } from "node:test";
import { EngineError, statusGrown } from "../../api/engine.ts";
import type { Store } from "../store.ts";
import { attempt, report } from "./say.ts";

// As much of a store as attempt() and report() read.
const storeOf = () => ({ meta: { generation: 1 }, doing: null, repeat: null, problem: { value: null }, said: { value: "", peek: () => "" } }) as unknown as Store;
const grown = () => new EngineError("the trace has grown", statusGrown);

test("what fails because the trace has grown is kept, to be done on the newer one", async () => {
  const store = storeOf();
  let done = 0;
  const act = async () => { done += 1; report(store, grown()); };
  await attempt(store, act);
  assert.equal(done, 1);
  assert.equal(store.repeat, act);
  assert.equal(store.problem.value, null);
});

test("it is done again at once when the newer trace is here already", async () => {
  const store = storeOf();
  let done = 0;
  await attempt(store, async () => {
    done += 1;
    if (done > 1) return;
    (store.meta as { generation: number }).generation = 2;
    report(store, grown());
  });
  assert.equal(done, 2);
  assert.equal(store.repeat, null);
});

test("what was done is not done again when another question fails later", async () => {
  const store = storeOf();
  await attempt(store, async () => undefined);
  report(store, grown());
  assert.equal(store.repeat, null);
});
