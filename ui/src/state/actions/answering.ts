// Showing what an answer names: a finding, a part of the wall, gaps, a drawer.
import { type Evidence, type HeadlinePiece, none, type WallPart } from "../../api/types.ts";
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
  const needsGpu = kind === "compute" || kind === "communication" || kind === "copy";
  return kind !== "other" && (!needsGpu || view.meta.lanes.some((lane) => lane.kind === "gpu" || lane.kind === "device"));
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
  lightKinds(store, kindsOf(store, kind), cleanText(part.label), trace);
}

export function lightKinds(store: Store, kinds: number[], label: string, trace = 0): void {
  store.lit.value = { label, trace, kinds: new Set(kinds) };
  say(store, `${label} is highlighted, the rest is dimmed`);
}

export function showGaps(store: Store, cause: string | null, trace = 0): void {
  store.gapCause.value = cause;
  store.panelTrace.value = trace;
  openDrawer(store, "gaps");
  const causes = new Set(store.meta.causes.filter((each) => cause === null || each.key === cause).map((each) => each.cause));
  store.lit.value = { label: cause === null ? "idle GPU" : store.meta.causes.find((each) => each.key === cause)?.title ?? cause, trace, causes };
}
