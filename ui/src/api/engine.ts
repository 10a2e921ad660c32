// The questions that the page asks. HttpEngine asks the binary; SavedEngine answers from the data in a saved page.
import type {
  AreaAnswer, CompareAnswer, EventDetails, Explanation, FlameNode, Folded, Frame, FrameRequest, Gap, GapsAnswer, JobAnswer, LanePage, MemoryAnswer, Meta, Name,
  Note, SearchAnswer, StepPage, StepQuestion, TableAnswer, TableRequest, TourStop,
} from "./types.ts";

export interface Engine {
  // A saved page cannot save itself again, hand a range to Perfetto or keep notes.
  readonly isSaved: boolean;
  // The part of the trace that is there; null: all of it.
  readonly range: { t0: number; t1: number } | null;
  meta(): Promise<Meta>;
  // The same for the trace as that answer of meta() described it. A trace that has grown since is not asked: status 409.
  of(generation: number): Engine;
  // Lanes that meta() leaves out: those with these numbers, or a page of all of them.
  otherLanes(trace: number, which: { lanes: number[] } | { offset: number; limit: number }): Promise<LanePage>;
  // A page of the steps: from an index, or the page of the step at a time or with a number.
  steps(trace: number, question: StepQuestion): Promise<StepPage>;
  frame(request: FrameRequest, abort?: AbortSignal): Promise<Frame>;
  names(trace: number, ids: number[]): Promise<Name[]>;
  event(trace: number, slice: number): Promise<EventDetails>;
  at(trace: number, lane: number, row: number, t0: number, t1: number): Promise<Folded>;
  area(trace: number, t0: number, t1: number, lanes: number[]): Promise<AreaAnswer>;
  search(trace: number, text: string, limit: number): Promise<SearchAnswer>;
  explain(trace: number): Promise<Explanation>;
  gaps(trace: number, sort: "cost" | "time", limit: number): Promise<GapsAnswer>;
  gap(trace: number, index: number): Promise<Gap>;
  tour(trace: number): Promise<TourStop[]>;
  table(trace: number, request: TableRequest): Promise<TableAnswer>;
  flame(trace: number, t0: number, t1: number, lane: number): Promise<FlameNode[]>;
  memory(trace: number): Promise<MemoryAnswer>;
  compare(): Promise<CompareAnswer>;
  // Of the run that meta() names ranks of: what holds it up.
  job(): Promise<JobAnswer>;
  // The fragment of a page that shows another rank, or "all" ranks, with everything that it needs to be let in.
  fragmentOf(rank: string): string;
  notes(): Promise<Note[]>;
  keepNotes(notes: Note[]): Promise<void>;
  save(trace: number, t0: number, t1: number): Promise<Blob>;
  perfetto(trace: number, t0: number, t1: number): Promise<ArrayBuffer>;
  // Answers with the generation when the trace has grown, or after a while; the server counts open pages with it.
  alive(generation: number): Promise<number>;
}

export const statusGrown = 409;

// What went wrong, in a sentence for the reader.
export class EngineError extends Error {
  constructor(message: string, readonly status: number) {
    super(message);
  }
}
