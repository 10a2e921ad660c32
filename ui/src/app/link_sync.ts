// Keeps the URL's fragment equal to what is shown, and shows what the fragment of a link says.
import { effect } from "@preact/signals";
import { showFinding } from "../state/actions/answering.ts";
import { selectArea } from "../state/actions/areas.ts";
import { choose } from "../state/actions/lane_choice.ts";
import { goToStep } from "../state/actions/moving.ts";
import { openDrawer } from "../state/actions/panels.ts";
import { search } from "../state/actions/searching.ts";
import { selectGap, selectSlice } from "../state/actions/selecting.ts";
import type { Drawer, Store } from "../state/store.ts";
import { readLink, writeLink, type LinkState } from "../state/url_state.ts";

const drawers: Drawer[] = ["kernels", "operators", "gaps", "area", "flame", "memory", "search", "notes", "compare", "ranks"];

function stateOf(store: Store): LinkState {
  const window = store.viewport.shown.value;
  const selection = store.selection.value;
  const area = store.area.value;
  const drawer = store.drawer.value;
  return {
    t0: window.t0, t1: window.t1,
    trace: selection?.trace,
    slice: selection?.type === "slice" ? selection.slice : undefined,
    gap: selection?.type === "gap" ? selection.gap : undefined,
    area: area === null ? undefined : [area.t0, area.t1],
    panel: drawer === "none" ? undefined : drawer,
    side: store.side.value,
    finding: store.finding.value ?? undefined,
    search: store.searchText.value,
    all: store.main.choice.value.showAll,
    rank: store.rank,
  };
}

// Writes at most every 300 ms: browsers refuse faster changes.
export function keepLink(store: Store): () => void {
  let timer = 0;
  const stop = effect(() => {
    const state = stateOf(store);
    clearTimeout(timer);
    timer = window.setTimeout(() => history.replaceState(null, "", `#${writeLink(state)}`), 300);
  });
  return () => {
    clearTimeout(timer);
    stop();
  };
}

// `explained`: when the findings are known, which only a link to a finding waits for. Its evidence comes first, so that the window and the
// selection of the link win.
export async function followLink(store: Store, fragment: string, explained: Promise<void>): Promise<boolean> {
  const link = readLink(fragment);
  if (link.all === true) choose(store.main, { showAll: true });
  if (link.panel !== undefined && drawers.includes(link.panel as Drawer)) openDrawer(store, link.panel as Drawer);
  if (link.search !== undefined && link.search !== "") await search(store, link.search);
  if (link.finding !== undefined) await explained;
  if (link.finding !== undefined) await showFinding(store, link.finding);
  if (link.area !== undefined) await selectArea(store, link.trace ?? 0, ...link.area);
  if (link.slice !== undefined) await selectSlice(store, link.trace ?? 0, link.slice, { keepLit: link.finding !== undefined || link.search !== undefined, side: false });
  else if (link.gap !== undefined) await selectGap(store, link.trace ?? 0, link.gap);
  if (link.side === "answers" || link.side === "details") store.side.value = link.side;
  const step = link.step === undefined ? undefined : await store.main.steps.ofNumber(link.step);
  if (step !== undefined) goToStep(store, step);
  if (link.t0 === undefined || link.t1 === undefined) return false;
  store.viewport.jump({ t0: link.t0, t1: link.t1 });
  return true;
}
