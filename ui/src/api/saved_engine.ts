// Answers the page's questions from the columns of a saved page, by looking at every slice: at most 100,000 of them. The tests
// compare the binary's answers with these.
import { parseSearch } from "../base/search_query.ts";
import { withSigns } from "../base/text.ts";
import { EngineError, type Engine } from "./engine.ts";
import type { SavedData, SliceColumns } from "./saved_data.ts";
import { savedEvent } from "./saved_event.ts";
import { savedFrame } from "./saved_frame.ts";
import { overlap, SavedSlices } from "./saved_slices.ts";
import { savedArea, savedFlame, savedTable } from "./saved_sums.ts";
import type {
  AreaAnswer, EventDetails, FlameNode, Folded, Frame, FrameRequest, Gap, GapsAnswer, Name, SearchAnswer, Step, StepPage, StepQuestion, TableAnswer, TableRequest,
} from "./types.ts";

export class SavedEngine implements Engine {
  readonly isSaved = true;
  private readonly slices: SavedSlices;

  constructor(private readonly data: SavedData, columns: SliceColumns) {
    this.slices = new SavedSlices(data, columns);
  }

  get range() { return { t0: this.data.t0, t1: this.data.t1 }; }

  otherLanes() { return Promise.resolve({ lanes: [], groups: [] }); }
  of(): SavedEngine { return this; }
  meta() { return Promise.resolve(this.data.answers["/api/meta"]); }
  // Steps outside of the saved range are not there: a page is what there is of it.
  steps(_trace: number, question: StepQuestion): Promise<StepPage> {
    const all = this.slices.steps;
    const last = question.at === undefined ? undefined : all.filter((step) => step.start_ns <= (question.at ?? 0)).pop();
    const found = (question.number === undefined ? last : all.find((step) => step.number === question.number))?.index ?? -1;
    const from = Math.max(0, found >= 0 ? found - (found % question.limit) : question.from ?? 0);
    const page: Step[] = [];
    for (const step of all) if (step.index >= from && step.index < from + question.limit) page.push(step);
    return Promise.resolve({ total: all.length, found, steps: page });
  }
  explain() { return Promise.resolve(withSigns(this.data.answers["/api/explain?trace=0"])); }
  gaps(_trace: number, sort: "cost" | "time", limit: number): Promise<GapsAnswer> {
    const gaps = [...this.slices.gaps].sort((a, b) => (sort === "cost" ? b.dur_ns - a.dur_ns : a.start_ns - b.start_ns));
    const answer = this.data.answers["/api/gaps?trace=0"];
    return Promise.resolve({ total: answer?.total ?? 0, by_cause: answer?.by_cause ?? [], gaps: gaps.slice(0, limit) });
  }
  gap(_trace: number, index: number): Promise<Gap> {
    const gap = this.slices.gaps.find((each) => each.index === index);
    return gap === undefined ? this.refuse("This gap is not in the saved range.") : Promise.resolve(gap);
  }
  tour() { return Promise.resolve(withSigns(this.data.answers["/api/tour?trace=0"]?.stops ?? [])); }
  memory() { return Promise.resolve(this.data.answers["/api/memory?trace=0"] ?? { devices: [] }); }
  job() { return this.refuse("The other ranks are not in a saved page."); }
  fragmentOf() { return ""; }
  compare() { return this.refuse("Two traces are compared by `lanescope view A B`, not in a saved page."); }
  notes() { return Promise.resolve([]); }
  keepNotes() { return Promise.resolve(); }
  save() { return this.refuse("This page is already one file."); }
  perfetto() { return this.refuse("A saved page holds too little of the trace for Perfetto. Open the trace with `lanescope view`."); }
  alive() { return new Promise<never>(() => undefined); }
  private refuse(sentence: string): Promise<never> { return Promise.reject(new EngineError(sentence, 400)); }

  frame(request: FrameRequest): Promise<Frame> { return Promise.resolve(savedFrame(this.slices, request)); }
  event(_trace: number, slice: number): Promise<EventDetails> {
    const details = savedEvent(this.slices, slice);
    return details === null ? this.refuse("This event is not in the saved range.") : Promise.resolve(details);
  }
  area(_trace: number, t0: number, t1: number, lanes: number[]): Promise<AreaAnswer> { return Promise.resolve(savedArea(this.slices, t0, t1, lanes)); }
  table(_trace: number, request: TableRequest): Promise<TableAnswer> { return Promise.resolve(savedTable(this.slices, request)); }
  flame(_trace: number, t0: number, t1: number, lane: number): Promise<FlameNode[]> { return Promise.resolve(savedFlame(this.slices, t0, t1, lane)); }

  names(_trace: number, ids: number[]): Promise<Name[]> {
    return Promise.resolve(ids.map((id) => this.slices.nameAt.get(id) ?? { id, short: "", full: "" }));
  }

  at(_trace: number, lane: number, row: number, t0: number, t1: number): Promise<Folded> {
    const inside = this.slices.overlapping(t0, t1, (index) => this.slices.columns.lane[index] === lane && this.slices.columns.row[index] === row);
    const c = this.slices.columns;
    const longest = [...inside].sort((a, b) => c.dur[b] - c.dur[a]).slice(0, 10);
    return Promise.resolve({
      count: inside.length,
      busy_ns: inside.reduce((sum, index) => sum + overlap(c.start[index], c.start[index] + c.dur[index], t0, t1), 0),
      longest: longest.map((index) => ({ slice: c.slice[index], name: this.slices.nameOf(index).full, short: this.slices.nameOf(index).short, start_ns: c.start[index], dur_ns: c.dur[index] })),
    });
  }

  search(_trace: number, text: string, limit: number): Promise<SearchAnswer> {
    const query = parseSearch(text);
    if (query.error !== null) return this.refuse(query.error);
    const c = this.slices.columns;
    const kinds = new Set(this.data.answers["/api/meta"].kinds.filter((kind) => query.kinds.some((word) => kind.key.startsWith(word))).map((k) => k.kind));
    const fits = new Set<number>();
    for (const name of this.data.names) {
      const both = `${name.full}\n${name.short}`.toLowerCase();
      if (query.words.every((word) => both.includes(word))) fits.add(name.id);
    }
    const hits: number[] = [];
    for (let index = 0; index < c.count; index += 1) {
      if (this.slices.unnamed.has(c.lane[index]) || !fits.has(c.name[index]) || (query.kinds.length > 0 && !kinds.has(c.kind[index]))) continue;
      if (query.leastNs !== null && c.dur[index] <= query.leastNs) continue;
      if (query.mostNs !== null && c.dur[index] >= query.mostNs) continue;
      hits.push(index);
    }
    const lanes = new Map<number, number>();
    for (const index of hits) lanes.set(c.lane[index], (lanes.get(c.lane[index]) ?? 0) + 1);
    hits.sort((a, b) => c.start[a] - c.start[b]);
    return Promise.resolve({
      total: hits.length,
      lanes: [...lanes].map(([lane, count]) => ({ lane, count })),
      hits: hits.slice(0, limit).map((index) => ({
        slice: c.slice[index], lane: c.lane[index], row: c.row[index], start_ns: c.start[index], dur_ns: c.dur[index],
        name: this.slices.nameOf(index).full, short: this.slices.nameOf(index).short,
      })),
      names: [...new Set(hits.map((index) => c.name[index]))].slice(0, 10_000),
    });
  }
}
