// One listener for all keys: state/keys.ts says what a key means, this does it.
import { cleanText } from "../base/text.ts";
import { areaOfSelection, mark, startMeasure } from "../state/actions/areas.ts";
import { clear } from "../state/actions/clearing.ts";
import { family, follow, moveFocusLane, neighbour, openInMiddle } from "../state/actions/following.ts";
import { toggleFold, togglePin } from "../state/actions/lane_choice.ts";
import { fitSelection, goWhole, nextStep, pan, zoom } from "../state/actions/moving.ts";
import { openDrawer, showSide } from "../state/actions/panels.ts";
import { attempt, say } from "../state/actions/say.ts";
import { startTour } from "../state/actions/touring.ts";
import { actionOf, type Action } from "../state/keys.ts";
import type { Drawer, Store } from "../state/store.ts";

// Held keys speed up, as in Perfetto: a tap moves a little.
const firstZoom = 0.8;
const heldZoom = 0.68;
const firstPan = 0.08;
const heldPan = 0.16;
const longestName = 20_000;

export function runAction(store: Store, action: Action, held = false): void {
  void attempt(store, () => act(store, action, held));
}

function act(store: Store, action: Action, held: boolean): Promise<unknown> | void {
  const lane = store.main.focusLane.peek();
  switch (action) {
    case "zoom-in": return zoom(store, held ? heldZoom : firstZoom);
    case "zoom-out": return zoom(store, 1 / (held ? heldZoom : firstZoom));
    case "pan-left": return pan(store, -(held ? heldPan : firstPan));
    case "pan-right": return pan(store, held ? heldPan : firstPan);
    case "fit": return fitSelection(store);
    case "mark": return mark(store, false);
    case "keep-mark": return mark(store, true);
    case "area": return areaOfSelection(store);
    case "measure": return startMeasure(store);
    case "next": return neighbour(store, true);
    case "previous": return neighbour(store, false);
    case "parent": return family(store, true);
    case "child": return family(store, false);
    case "follow-back": return follow(store, false);
    case "follow-forward": return follow(store, true);
    case "search": return document.getElementById("search")?.focus();
    case "lanes": store.overlay.value = "lanes"; return;
    case "commands": store.overlay.value = "commands"; return;
    case "drawer": return toggleDrawer(store);
    case "help": store.overlay.value = "help"; return;
    case "clear": return clear(store);
    case "whole": return goWhole(store);
    case "undo": return store.viewport.back();
    case "explain": return toggleAnswers(store);
    case "lane-up": return moveFocusLane(store, -1);
    case "lane-down": return moveFocusLane(store, 1);
    case "next-step": return nextStep(store, 1);
    case "previous-step": return nextStep(store, -1);
    case "open": return openInMiddle(store);
    case "tour": return startTour(store);
    case "pin": if (lane !== null) togglePin(store.main, lane); return;
    case "fold": if (lane !== null) toggleFold(store.main, lane); return;
  }
}

function toggleDrawer(store: Store): void {
  const hasGpu = store.main.meta.lanes.some((lane) => lane.kind === "gpu");
  const first: Drawer = hasGpu ? "kernels" : "operators";
  openDrawer(store, store.drawer.peek() === "none" ? first : "none");
}

function toggleAnswers(store: Store): void {
  if (store.sideOpen.peek() && store.side.peek() === "answers") store.sideOpen.value = false;
  else showSide(store, "answers");
}

// Widgets that use keys themselves keep them.
function usesKey(target: EventTarget | null, key: string): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target.closest("dialog") !== null) return key !== "Escape";
  if (target.matches("input, textarea, select") || target.isContentEditable) return true;
  if (target.matches("button, summary, a") && (key === "Enter" || key === " ")) return true;
  return target.matches('[role="tab"]') && key.startsWith("Arrow");
}

export function listenToKeys(store: Store): () => void {
  const onKey = (event: KeyboardEvent) => {
    if (event.defaultPrevented) return;
    const inText = usesKey(event.target, event.key);
    const action = actionOf({
      key: event.key, code: event.code, ctrl: event.ctrlKey || event.metaKey, shift: event.shiftKey, alt: event.altKey, inText, singleKeys: store.singleKeys.peek(),
    });
    if (action === null) return;
    if (action === "clear" && event.target instanceof HTMLElement && event.target.matches("input")) event.target.blur();
    event.preventDefault();
    runAction(store, action, event.repeat);
  };
  // With no text selected, the name of the selected event: on a canvas there is nothing else to copy.
  const onCopy = (event: ClipboardEvent) => {
    const name = store.selection.peek()?.type === "slice" ? store.details.peek()?.name : undefined;
    if (name === undefined || usesKey(event.target, "c") || document.getSelection()?.toString() !== "") return;
    event.clipboardData?.setData("text/plain", cleanText(name, longestName));
    event.preventDefault();
    say(store, "The name of the selected event is copied");
  };
  document.addEventListener("keydown", onKey);
  document.addEventListener("copy", onCopy);
  return () => {
    document.removeEventListener("keydown", onKey);
    document.removeEventListener("copy", onCopy);
  };
}

