// What a person can do, as functions on the store. Keys, buttons, links and the tour all end here.
import { EngineError, statusGrown } from "../api/engine.ts";
import { none, type Evidence, type EventDetails, type Note, type Step, type WallPart } from "../api/types.ts";
import { formatCount, formatShare, formatTime, plural } from "../base/format.ts";
import { cleanText } from "../base/text.ts";
import type { LaneChoice } from "./lane_list.ts";
import type { Drawer, Found, LitSlice, Store, TraceView } from "./store.ts";
import { centre, fit, panBy, sameWindow, spanOf, zoomAt } from "./window.ts";

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

// ---- moving

export function goTo(store: Store, trace: number, t0: number, t1: number, margin = 0.12): void {
  const offset = store.view(trace).offset;
  store.viewport.go(fit(t0 - offset, t1 - offset, store.viewport.traceSpan, margin));
}

export function goWhole(store: Store): void {
  store.viewport.go(fit(0, store.main.meta.span_ns, store.viewport.traceSpan, 0.01));
  say(store, "whole trace");
}

export function zoom(store: Store, factor: number, at?: number): void {
  const goal = store.viewport.target;
  store.viewport.go(zoomAt(goal, at ?? anchor(store), factor, store.viewport.traceSpan), false);
}

export function pan(store: Store, share: number): void {
  store.viewport.go(panBy(store.viewport.target, share * spanOf(store.viewport.target), store.viewport.traceSpan), false);
}

// Zooming by key keeps the selection in place when it is in view.
function anchor(store: Store): number {
  const goal = store.viewport.target;
  const range = selectedRange(store);
  if (range !== null) {
    const middle = (range.t0 + range.t1) / 2 - store.view(range.trace).offset;
    if (middle > goal.t0 && middle < goal.t1) return middle;
  }
  return (goal.t0 + goal.t1) / 2;
}

export function selectedRange(store: Store): { trace: number; t0: number; t1: number } | null {
  const selection = store.selection.peek();
  const details = store.details.peek();
  const gap = store.gap.peek();
  if (selection?.type === "slice" && details !== null) return { trace: selection.trace, t0: details.start_ns, t1: details.start_ns + details.dur_ns };
  if (selection?.type === "gap" && gap !== null) return { trace: selection.trace, t0: gap.start_ns, t1: gap.start_ns + gap.dur_ns };
  const area = store.area.peek();
  return area === null ? null : { trace: area.trace, t0: area.t0, t1: area.t1 };
}

// First to the middle, then fill the window.
export function fitSelection(store: Store): void {
  const range = selectedRange(store);
  if (range === null) return;
  const offset = store.view(range.trace).offset;
  const span = store.viewport.traceSpan;
  const middle = centre(store.viewport.target, range.t0 - offset, range.t1 - offset, span);
  const filled = fit(range.t0 - offset, range.t1 - offset, span);
  store.viewport.go(sameWindow(middle, store.viewport.target) ? filled : middle);
}

// The length that the verdict counts: from the device's end of the step before to its own, on the CPU where there is no device.
export const stepLength = (step: Step) => (step.device_dur_ns !== undefined && step.device_dur_ns > 0 ? step.device_dur_ns : step.dur_ns);

// "step 4, 21.1 ms (6.06 ms on the CPU)": where both differ, since the CPU runs ahead of the device.
export function stepText(step: Step): string {
  const length = stepLength(step);
  const both = Math.abs(length - step.dur_ns) > 0.05 * length ? ` (${formatTime(step.dur_ns)} on the CPU)` : "";
  return `step ${step.number ?? step.index}, ${formatTime(length)}${both}`;
}

export function goToStep(store: Store, step: Step): void {
  const begin = step.start_ns;
  const end = Math.max(begin + step.dur_ns, (step.device_start_ns ?? begin) + (step.device_dur_ns ?? 0));
  goTo(store, 0, begin, end, 0.03);
  say(store, stepText(step));
}

// Of a recording that still runs.
export function goToNewest(store: Store): void {
  const { steps, span_ns: span } = store.main.meta;
  const last = steps[steps.length - 1];
  if (last !== undefined) goToStep(store, last);
  else goTo(store, 0, span - Math.min(span, spanOf(store.viewport.target)), span, 0);
}

export function stepInView(store: Store): number {
  const steps = store.main.meta.steps;
  const middle = (store.viewport.target.t0 + store.viewport.target.t1) / 2;
  let best = -1;
  for (let index = 0; index < steps.length && steps[index].start_ns <= middle; index += 1) best = index;
  return best;
}

export function nextStep(store: Store, by: number): void {
  const steps = store.main.meta.steps;
  if (steps.length === 0) return;
  goToStep(store, steps[Math.min(steps.length - 1, Math.max(0, stepInView(store) + by))]);
}

// ---- selecting

export async function selectSlice(store: Store, trace: number, slice: number, options: { move?: boolean; keepLit?: boolean; side?: boolean } = {}): Promise<EventDetails | null> {
  if (slice === none || slice < 0) return null;
  store.selection.value = { type: "slice", trace, slice };
  store.gap.value = null;
  if (options.keepLit !== true) clearLit(store);
  try {
    const details = await store.engine.event(trace, slice);
    const now = store.selection.peek();
    if (now?.type !== "slice" || now.slice !== slice || now.trace !== trace) return null;
    const view = store.view(trace);
    await listLanes(store, view, [details.lane, ...details.chain.map((link) => link.lane)]);
    store.details.value = details;
    reveal(view, [details.lane, ...details.chain.map((link) => link.lane)]);
    view.focusLane.value = details.lane;
    view.scrollTo.value = { lane: details.lane, row: details.row };
    if (options.move === true) moveTo(store, trace, details);
    if (options.side !== false) showSide(store, "details");
    const measure = store.measure.peek();
    if (measure !== null) measureTo(store, details.start_ns - view.offset);
    say(store, describeSelection(view, details));
    return details;
  } catch (reason) {
    report(store, reason);
    return null;
  }
}

function describeSelection(view: TraceView, details: EventDetails): string {
  const lane = view.laneByNumber.get(details.lane);
  const like = details.like !== undefined && details.like.count > 1 ? `, one of ${formatCount(details.like.count)} of this name` : "";
  return `${cleanText(details.short || details.name)}, ${formatTime(details.dur_ns)}, on ${cleanText(lane?.title ?? "")}${like}`;
}

// An event and the other end of its arrow, both in view if that leaves the event wide enough to see.
function moveTo(store: Store, trace: number, details: EventDetails): void {
  const view = store.view(trace);
  let t0 = details.start_ns;
  let t1 = t0 + details.dur_ns;
  const arrow = details.arrows[0];
  if (arrow !== undefined) {
    const [from, to] = [Math.min(t0, arrow.from_ns), Math.max(t1, arrow.to_ns)];
    if (to - from < 60 * Math.max(details.dur_ns, 2_000)) [t0, t1] = [from, to];
  }
  const window = store.viewport.target;
  const span = spanOf(window);
  const inView = t0 - view.offset > window.t0 && t1 - view.offset < window.t1;
  const wide = details.dur_ns > span / 400;
  if (inView && wide) return;
  const context = Math.max((t1 - t0) * 1.6, details.dur_ns * 30, 4_000);
  const middle = (t0 + t1) / 2;
  if (wide && span < context * 20) store.viewport.go(centre(window, t0 - view.offset, t1 - view.offset, store.viewport.traceSpan));
  else goTo(store, trace, middle - context / 2, middle + context / 2, 0);
}

export async function selectGap(store: Store, trace: number, index: number, move = false): Promise<void> {
  store.selection.value = { type: "gap", trace, gap: index };
  store.details.value = null;
  clearLit(store);
  try {
    const gap = await store.engine.gap(trace, index);
    store.gap.value = gap;
    const view = store.view(trace);
    reveal(view, [gap.lane]);
    view.focusLane.value = gap.lane;
    view.scrollTo.value = { lane: gap.lane, row: 0 };
    if (move) goTo(store, trace, gap.start_ns, gap.start_ns + gap.dur_ns, 0.6);
    showSide(store, "details");
    say(store, `GPU idle for ${formatTime(gap.dur_ns)}: ${cleanText(gap.text)}`);
  } catch (reason) {
    report(store, reason);
  }
}

export function selectStep(store: Store, trace: number, index: number): void {
  const step = store.view(trace).meta.steps[index];
  if (step === undefined) return;
  if (step.slice !== none) void selectSlice(store, trace, step.slice);
  else goToStep(store, step);
}

export function clearLit(store: Store): void {
  store.lit.value = null;
  store.finding.value = null;
}

// Closes or clears the newest thing first.
export function clear(store: Store): void {
  if (store.overlay.peek() !== "none") store.overlay.value = "none";
  else if (store.tour.peek() !== null) endTour(store);
  else if (store.measure.peek() !== null) store.measure.value = null;
  else if (store.lit.peek() !== null) clearLit(store);
  else if (store.selection.peek() !== null || store.area.peek() !== null) {
    store.selection.value = null;
    store.details.value = null;
    store.gap.value = null;
    store.area.value = null;
    store.side.value = "answers";
  } else if (store.drawer.peek() !== "none") store.drawer.value = "none";
}

export function showSide(store: Store, side: "answers" | "details"): void {
  store.side.value = side;
  store.sideOpen.value = true;
}

// ---- lanes

export function reveal(view: TraceView, lanes: number[]): void {
  const choice = view.choice.peek();
  const visible = new Set(view.shown.peek().lanes.map((lane) => lane.lane));
  const hidden = lanes.filter((lane) => !visible.has(lane) && view.laneByNumber.has(lane));
  if (hidden.length > 0) view.choice.value = { ...choice, filter: "", revealed: new Set([...choice.revealed, ...hidden]) };
}

const lanesOfPage = 500;

// The next of the lanes that were too many to be listed.
export async function listMoreLanes(store: Store, view: TraceView): Promise<void> {
  try {
    const page = await store.engine.otherLanes(view.index, { offset: view.otherLanesAsked, limit: lanesOfPage });
    view.otherLanesAsked += page.lanes.length;
    view.addLanes(page);
    choose(view, { showAll: true, showQuiet: true });
  } catch (reason) {
    report(store, reason);
  }
}

// Something on a lane that is not listed was asked for.
async function listLanes(store: Store, view: TraceView, lanes: number[]): Promise<void> {
  const missing = [...new Set(lanes)].filter((lane) => !view.laneByNumber.has(lane) && lane !== none);
  if (missing.length > 0 && (view.meta.lanes_left_out ?? 0) > 0) view.addLanes(await store.engine.otherLanes(view.index, { lanes: missing }));
}

function flip(set: ReadonlySet<number>, item: number): Set<number> {
  const next = new Set(set);
  if (!next.delete(item)) next.add(item);
  return next;
}

export function choose(view: TraceView, change: Partial<LaneChoice>): void {
  view.choice.value = { ...view.choice.peek(), ...change };
}
export const togglePin = (view: TraceView, lane: number) => choose(view, { pinned: flip(view.choice.peek().pinned, lane) });
export const toggleExpanded = (view: TraceView, lane: number) => choose(view, { expanded: flip(view.choice.peek().expanded, lane) });
export const toggleFold = (view: TraceView, lane: number) => choose(view, { folded: flip(view.choice.peek().folded, lane) });

// ---- answers

export function evidenceSlices(evidence: Evidence[]): LitSlice[] {
  return evidence.flatMap((item) =>
    item.slice !== none && item.lane !== undefined && item.start_ns !== undefined
      ? [{ slice: item.slice, lane: item.lane, row: item.row ?? 0, start_ns: item.start_ns, dur_ns: item.dur_ns ?? 0 }]
      : []);
}

export const hasSlice = (evidence: Evidence) => evidence.slice !== undefined && evidence.slice !== none;

// Lights the evidence of a finding, dims the rest and goes to the first piece of it.
export async function showFinding(store: Store, rule: string, trace = 0, at = 0): Promise<void> {
  const explanation = store.view(trace).explanation.peek();
  const finding = explanation?.findings.find((each) => each.rule === rule);
  if (finding === undefined) return;
  store.finding.value = rule;
  const all = [...(explanation?.do_first.find((each) => each.rule === rule)?.evidence ?? []), ...finding.evidence].filter(hasSlice);
  if (all.length === 0) {
    clearLit(store);
    store.finding.value = rule;
    showSide(store, "answers"); // its card says what there is
    say(store, cleanText(finding.brief || finding.text));
    return;
  }
  const evidence = all[Math.min(at, all.length - 1)];
  store.lit.value = { label: cleanText(finding.brief || finding.text), trace, slices: evidenceSlices(all) };
  await selectSlice(store, trace, evidence.slice, { move: true, keepLit: true });
}

export type PartKind = "compute" | "communication" | "copy" | "idle" | "operator" | "other";

// What a part of the wall is made of: from its key, else from its label.
export function kindOfPart(part: WallPart): PartKind {
  const text = (part.part ?? part.label).toLowerCase();
  if (/idle|wait|late|gap/.test(text)) return "idle";
  if (/communication|collective/.test(text)) return "communication"; // "collectives, no compute"
  if (text.includes("cop") || text.includes("memset")) return "copy"; // "copies, no compute"
  if (text.includes("comput")) return "compute";
  return text.includes("operator") && !text.startsWith("outside") ? "operator" : "other";
}

// Has the part of a wall events that can be lit?
export function canShowPart(view: TraceView, part: WallPart): boolean {
  const kind = kindOfPart(part);
  if (kind === "idle") return view.meta.lanes.some((lane) => lane.kind === "idle");
  // What other accelerators ran is recorded as events of threads, which do not say what kind of work they are.
  const needsGpu = kind === "compute" || kind === "communication" || kind === "copy";
  return kind !== "other" && (!needsGpu || view.meta.lanes.some((lane) => lane.kind === "gpu"));
}

// A part of the wall's bar is a link: kinds of time are lit, idle time opens the gaps of that cause.
export function showWallPart(store: Store, part: WallPart, trace = 0): void {
  const kind = kindOfPart(part);
  if (kind === "idle") {
    const words = part.label.toLowerCase();
    const cause = store.meta.causes.find((each) => each.cause === part.cause) ??
      store.meta.causes.find((each) => words.includes(each.title.toLowerCase()) || words.includes(each.key.replaceAll("_", " ")));
    showGaps(store, cause?.key ?? null, trace);
    return;
  }
  lightKind(store, store.meta.kinds.find((each) => each.key === kind)?.kind ?? -1, cleanText(part.label), trace);
}

export function lightKind(store: Store, kind: number, label: string, trace = 0): void {
  store.lit.value = { label, trace, kinds: new Set([kind]) };
  say(store, `${label} is lit, the rest is dimmed`);
}

export function showGaps(store: Store, cause: string | null, trace = 0): void {
  store.gapCause.value = cause;
  store.panelTrace.value = trace;
  openDrawer(store, "gaps");
  const causes = new Set(store.meta.causes.filter((each) => cause === null || each.key === cause).map((each) => each.cause));
  store.lit.value = { label: cause === null ? "idle GPU" : store.meta.causes.find((each) => each.key === cause)?.title ?? cause, trace, causes };
}

export function openDrawer(store: Store, drawer: Drawer): void {
  store.drawer.value = drawer;
  if (drawer !== "none") say(store, `${drawer} below the timeline`);
}

// ---- search

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

// ---- following, stepping

export async function follow(store: Store, forward: boolean): Promise<void> {
  const selection = store.selection.peek();
  const details = store.details.peek();
  const gap = store.gap.peek();
  if (selection?.type === "gap" && gap !== null) {
    const target = forward ? gap.ends_at : gap.launch ?? gap.blame;
    if (target !== undefined && target !== null && target !== none) await selectSlice(store, selection.trace, target, { move: true });
    return;
  }
  if (selection?.type !== "slice" || details === null) return;
  const arrow = details.arrows.find((each) => (forward ? each.from === details.slice : each.to === details.slice)) ??
    (forward ? details.arrows[0] : undefined);
  const launch = details.chain.find((link) => link.role === "launch");
  const target = forward ? arrow?.to : arrow?.from ?? launch?.slice;
  if (target === undefined || target === details.slice) say(store, forward ? "no arrow starts here" : "no arrow ends here");
  else await selectSlice(store, selection.trace, target, { move: true, keepLit: true });
}

export async function neighbour(store: Store, forward: boolean): Promise<void> {
  const selection = store.selection.peek();
  const details = store.details.peek();
  if (selection?.type === "gap") {
    const all = (await store.engine.gaps(selection.trace, "time", 100_000)).gaps;
    const at = all.findIndex((gap) => gap.index === selection.gap) + (forward ? 1 : -1);
    if (all[at] !== undefined) await selectGap(store, selection.trace, all[at].index, true);
    return;
  }
  if (selection === null || details === null) return void openInMiddle(store);
  const target = forward ? details.neighbours?.next : details.neighbours?.previous;
  if (target === undefined || target === none) say(store, forward ? "this is the last event of the row" : "this is the first event of the row");
  else await selectSlice(store, selection.trace, target, { move: true, keepLit: true });
}

export async function family(store: Store, up: boolean): Promise<void> {
  const selection = store.selection.peek();
  const details = store.details.peek();
  if (selection?.type !== "slice" || details === null) return;
  const at = details.chain.findIndex((link) => link.slice === details.slice);
  if (up && at > 0) await selectSlice(store, selection.trace, details.chain[at - 1].slice, { move: true, keepLit: true });
  else if (up) say(store, "nothing holds this event");
  else {
    const inside = await store.engine.at(selection.trace, details.lane, details.row + 1, details.start_ns, details.start_ns + Math.max(1, details.dur_ns));
    const first = [...inside.longest].sort((a, b) => a.start_ns - b.start_ns)[0];
    if (first !== undefined) await selectSlice(store, selection.trace, first.slice, { move: true, keepLit: true });
    else say(store, "this event holds no other");
  }
}

// The event of the lane with the focus that is nearest to the middle of the window.
export function openInMiddle(store: Store): void {
  const view = store.main;
  const lane = view.focusLane.peek() ?? view.shown.peek().lanes.find((each) => each.slice_count > 0)?.lane;
  const frame = view.frames.frame.peek();
  if (lane === undefined || frame === null) return;
  const window = view.windowOf(store.viewport.target);
  const middle = (window.t0 + window.t1) / 2;
  let best: { slice: number; distance: number } | null = null;
  for (const entry of frame.entries) {
    if (entry.lane !== lane || entry.kind !== "slices" || entry.row !== 0) continue;
    for (let index = 0; index < entry.count; index += 1) {
      const start = frame.t0 + entry.start[index];
      const distance = Math.max(start - middle, middle - start - entry.dur[index], 0);
      if (best === null || distance < best.distance) best = { slice: entry.slice[index], distance };
    }
  }
  if (best === null) return;
  view.focusLane.value = lane;
  openOn(store, view, lane, best.slice);
}

// What a cell of a lane stands for depends on the lane.
export function openOn(store: Store, view: TraceView, lane: number, slice: number, move = false): void {
  const kind = view.laneByNumber.get(lane)?.kind;
  if (kind === "idle") void selectGap(store, view.index, slice, move);
  else if (kind === "steps") selectStep(store, view.index, slice);
  else void selectSlice(store, view.index, slice, { move });
}

export function moveFocusLane(store: Store, by: number): void {
  const view = store.main;
  const lanes = view.shown.peek().lanes;
  const at = lanes.findIndex((lane) => lane.lane === view.focusLane.peek());
  const lane = lanes[Math.min(lanes.length - 1, Math.max(0, at + by))];
  if (lane === undefined) return;
  view.focusLane.value = lane.lane;
  view.scrollTo.value = { lane: lane.lane, row: 0 };
  say(store, `lane ${cleanText(lane.title)}, ${plural(lane.slice_count, "event")}, busy ${formatShare(lane.busy_ns / Math.max(1, view.meta.span_ns))}`);
}

// ---- areas, measuring, marks, notes

export async function selectArea(store: Store, trace: number, t0: number, t1: number, again = false): Promise<void> {
  const view = store.view(trace);
  const area = { trace, t0: Math.max(0, Math.floor(Math.min(t0, t1))), t1: Math.min(view.meta.span_ns, Math.ceil(Math.max(t0, t1))) };
  if (area.t1 <= area.t0) return;
  store.area.value = area;
  if (!again) {
    store.areaAnswer.value = null;
    openDrawer(store, "area");
  }
  try {
    const answer = await store.engine.area(trace, area.t0, area.t1, view.shown.peek().lanes.filter((lane) => lane.kind !== "counter").map((lane) => lane.lane));
    if (store.area.peek() === area) store.areaAnswer.value = answer;
    if (!again) say(store, `area of ${formatTime(area.t1 - area.t0)}`);
  } catch (reason) {
    report(store, reason);
  }
}

export function areaOfSelection(store: Store): void {
  const range = selectedRange(store);
  const view = store.viewport.target;
  if (range !== null) void selectArea(store, range.trace, range.t0, range.t1);
  else void selectArea(store, 0, view.t0, view.t1);
}

export function startMeasure(store: Store): void {
  const range = selectedRange(store);
  if (range === null) return void say(store, "select an event first, then measure from it");
  const offset = store.view(range.trace).offset;
  store.measure.value = { from: range.t0 - offset, to: range.t1 - offset };
  say(store, `measuring from here; ${formatTime(range.t1 - range.t0)}`);
}

export function measureTo(store: Store, to: number): void {
  const measure = store.measure.peek();
  if (measure === null) return;
  store.measure.value = { from: measure.from, to };
  say(store, `measured ${formatTime(Math.abs(to - measure.from))}`);
}

export function mark(store: Store, keep: boolean): void {
  const range = selectedRange(store);
  const window = store.viewport.target;
  const at = range === null ? (window.t0 + window.t1) / 2 : range.t0 - store.view(range.trace).offset;
  store.marks.value = [...store.marks.peek().filter((each) => each.kept && each.at !== at), { at, kept: keep }];
  say(store, keep ? "mark kept" : "marked");
}

export async function keepNotes(store: Store, notes: Note[]): Promise<void> {
  store.notes.value = notes;
  try {
    await store.engine.keepNotes(notes);
  } catch (reason) {
    report(store, reason);
  }
}

// ---- the tour

export async function startTour(store: Store): Promise<void> {
  try {
    const stops = await store.engine.tour(0);
    if (stops.length === 0) return void report(store, "This trace has nothing that a tour could show.");
    store.tour.value = { stops, at: 0 };
    await tourTo(store, 0);
  } catch (reason) {
    report(store, reason);
  }
}

export async function tourTo(store: Store, at: number): Promise<void> {
  const tour = store.tour.peek();
  const stop = tour?.stops[at];
  if (tour === null || stop === undefined) return;
  store.tour.value = { ...tour, at };
  reveal(store.main, stop.lanes ?? []);
  if (stop.lanes?.[0] !== undefined) store.main.scrollTo.value = { lane: stop.lanes[0], row: 0 };
  goTo(store, 0, stop.t0, stop.t1, 0);
  clearLit(store);
  if (stop.slice !== undefined && stop.slice !== none) {
    const details = await selectSlice(store, 0, stop.slice, { keepLit: true, side: false });
    if (details !== null && store.tour.peek()?.at === at) {
      const lit = [details, ...details.chain.filter((link) => link.role === "launch" || link.role === "kernel")];
      store.lit.value = { label: cleanText(stop.title), trace: 0, slices: lit.map(({ slice, lane, row, start_ns, dur_ns }) => ({ slice, lane, row, start_ns, dur_ns })) };
    }
  } else {
    store.selection.value = null;
    store.details.value = null;
  }
  const finding = store.main.explanation.peek()?.findings.find((each) => each.rule === stop.rule);
  const evidence = evidenceSlices(finding?.evidence ?? []);
  if (evidence.length > 0 && store.tour.peek()?.at === at) {
    store.lit.value = { label: cleanText(stop.title), trace: 0, slices: [...(store.lit.peek()?.slices ?? []), ...evidence] };
  }
  say(store, `${cleanText(stop.title)}. ${cleanText(stop.text, 2000)}`);
}

export function endTour(store: Store): void {
  store.tour.value = null;
  clearLit(store);
}
