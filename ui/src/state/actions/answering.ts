// Showing what an answer names: a finding, a part of the wall, gaps, a drawer.
import { type Evidence, type Finding, type HeadlinePiece, none, type WallPart } from "../../api/types.ts";
import { cleanText } from "../../base/text.ts";
import type { LitSlice, Store, TraceView } from "../store.ts";
import { goToStep, goWhole } from "./moving.ts";
import { openDrawer, showSide } from "./panels.ts";
import { say } from "./say.ts";
import { clearLit, selectSlice } from "./selecting.ts";

export function evidenceSlices(evidence: Evidence[]): LitSlice[] {
  return evidence.flatMap((item) =>
    item.slice !== none && item.lane !== undefined && item.start_ns !== undefined
      ? [{ slice: item.slice, lane: item.lane, row: item.row ?? 0, start_ns: item.start_ns, dur_ns: item.dur_ns ?? 0 }]
      : []);
}

// What is lit may be a part of what a finding is about: ten copies can have one as their evidence.
export const evidenceLabel = (finding: Pick<Finding, "brief" | "text">) => `evidence of “${cleanText(finding.brief || finding.text)}”`;

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
  store.lit.value = { label: evidenceLabel(finding), trace, slices: evidenceSlices(all) };
  await selectSlice(store, trace, evidence.slice, { move: true, keepLit: true });
}

// What "do first" proposes, together.
export function showAllFindings(store: Store): void {
  const evidence = store.main.explanation.peek()?.do_first.flatMap((each) => each.evidence ?? []).filter(hasSlice) ?? [];
  const label = "the evidence of all";
  store.finding.value = null;
  store.lit.value = { label, trace: 0, slices: evidenceSlices(evidence) };
  say(store, `${label} is highlighted, the rest is dimmed`);
}

// What each number of the headline counts: its events are lit, its gaps are listed.
export function showPiece(store: Store, piece: HeadlinePiece): void {
  const { shows = "", slice, text } = piece;
  if (slice !== undefined && slice !== none) return void selectSlice(store, 0, slice, { move: true });
  if (shows === "step") {
    const { typical } = store.main.steps;
    return typical === undefined ? goWhole(store) : goToStep(store, typical);
  }
  if (shows === "idle") return showGaps(store, null);
  const kinds = kindsOf(store, shows);
  if (kinds.length > 0) return lightKinds(store, kinds, cleanText(text));
  void showFinding(store, shows);
}

// Is there something to show? A headline may count what no lane has.
export function canShowPiece(store: Store, piece: HeadlinePiece): boolean {
  const { shows = "", slice } = piece;
  if (shows === "") return slice !== undefined && slice !== none;
  if (shows === "step") return true;
  if (shows === "idle") return store.main.meta.lanes.some((lane) => lane.kind === "idle");
  return kindsOf(store, shows).length > 0 || store.main.explanation.value?.findings.some((each) => each.rule === shows) === true;
}

const kindsOfWord: Record<string, string[]> = { busy: ["compute", "communication", "copy"], moves: ["communication", "copy"] };
const kindsOf = (store: Store, word: string) => store.meta.kinds.filter((each) => (kindsOfWord[word] ?? [word]).includes(each.key)).map((each) => each.kind);

// Has the part of a wall events that can be lit?
export function canShowPart(view: TraceView, { shows }: WallPart): boolean {
  if (shows === undefined) return false;
  if (shows === "idle") return view.meta.lanes.some((lane) => lane.kind === "idle");
  return shows === "operator" || view.meta.lanes.some((lane) => lane.kind === "gpu" || lane.kind === "device");
}

// A part of the wall's bar is a link: kinds of time are lit, idle time opens the gaps of its cause. A part may be less than all events of its
// kind, such as communication while nothing computes: what is lit is named, not the part.
export function showWallPart(store: Store, { shows = "", causes }: WallPart, trace = 0): void {
  if (shows === "idle") return showGaps(store, causes ?? null, trace);
  const kinds = kindsOf(store, shows);
  if (kinds.length > 0) lightKinds(store, kinds, store.meta.kinds.find((each) => each.kind === kinds[0])?.title ?? shows, trace);
}

export function lightKinds(store: Store, kinds: number[], label: string, trace = 0): void {
  store.lit.value = { label, trace, kinds: new Set(kinds) };
  say(store, `${label} is highlighted, the rest is dimmed`);
}

// `keys` of causes; null: all.
export function showGaps(store: Store, keys: readonly string[] | null, trace = 0): void {
  store.gapCauses.value = keys;
  store.panelTrace.value = trace;
  openDrawer(store, "gaps");
  const causes = store.meta.causes.filter((each) => keys === null || keys.includes(each.key));
  const label = keys === null ? "idle GPU" : causes.length === 1 ? `idle GPU: ${causes[0].title}` : `idle GPU, ${causes.length} causes`;
  store.lit.value = { label, trace, causes: new Set(causes.map((each) => each.cause)) };
}
