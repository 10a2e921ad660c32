// The ranks of one run: each is a page of its own.
import type { Store } from "../store.ts";
import { stepInView } from "./moving.ts";

export const allRanks = "all";

export const rankText = (rank: string) => (rank === allRanks ? "all ranks" : `rank ${rank}`);

// The same step in another rank. Clocks, lanes and numbers of events are others there, so the page starts anew.
export function openRank(store: Store, rank: string): void {
  if (store.meta.ranks?.shown === rank) return;
  const step = store.main.steps.at(stepInView(store))?.number;
  location.hash = store.engine.fragmentOf(rank) + (step === undefined || step === null ? "" : `&step=${step}`);
  location.reload();
}
