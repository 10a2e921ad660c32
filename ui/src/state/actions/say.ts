// What the page says: to a screen reader, and when something fails.
import { EngineError, statusGrown } from "../../api/engine.ts";
import type { Store } from "../store.ts";

export function say(store: Store, text: string): void {
  // The same words twice are read twice only if they differ.
  store.said.value = store.said.peek() === text ? `${text}\u00a0` : text;
}

export function report(store: Store, reason: unknown): void {
  if (reason instanceof EngineError && reason.status === statusGrown) return; // growth.ts shows the newer trace in a moment
  const text = reason instanceof Error ? reason.message : String(reason);
  store.problem.value = text;
  say(store, text);
}
