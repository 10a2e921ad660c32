// What the page says: to a screen reader, and when something fails.
import { EngineError, statusGrown } from "../../api/engine.ts";
import type { Store } from "../store.ts";

export const isGrown = (reason: unknown) => reason instanceof EngineError && reason.status === statusGrown;

// Does what a key or a click asks for. A trace that has grown meanwhile answers no question about the older one, so it is done again on
// the newer one; `act` therefore names no event by its number.
export async function attempt(store: Store, act: () => Promise<unknown> | void): Promise<void> {
  const doing = { missed: false };
  const { generation } = store.meta;
  store.doing = doing;
  await act();
  if (store.doing === doing) store.doing = null;
  if (!doing.missed) return;
  if (store.meta.generation === generation) store.repeat = act; // followGrowth does it
  else await attempt(store, act);
}

export function say(store: Store, text: string): void {
  // The same words twice are read twice only if they differ.
  store.said.value = store.said.peek() === text ? `${text}\u00a0` : text;
}

export function report(store: Store, reason: unknown): void {
  if (isGrown(reason)) { // growth.ts shows the newer trace in a moment
    if (store.doing !== null) store.doing.missed = true;
    return;
  }
  const text = reason instanceof Error ? reason.message : String(reason);
  store.problem.value = text;
  say(store, text);
}
