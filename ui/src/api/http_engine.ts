// Asks the lanescope binary that serves this page. The token came in the URL's fragment; every question carries it.
import { withSigns } from "../base/text.ts";
import { EngineError, type Engine } from "./engine.ts";
import { decodeFrame } from "./frame.ts";
import type { CompareAnswer, Explanation, FrameRequest, Gap, GapsAnswer, JobAnswer, LanePage, MemoryAnswer, Meta, Name, Note, StepPage, StepQuestion, TableRequest, TourStop } from "./types.ts";

const silence = "lanescope does not answer. It may have ended: start `lanescope view` again and open the page that it names.";

export class HttpEngine implements Engine {
  readonly isSaved = false;
  readonly range = null;
  // `rank`: which rank of the run's, or "all"; null: the one that was opened.
  constructor(private readonly token: string, private readonly rank: string | null = null, private readonly generation: number | null = null) {}

  of(generation: number): HttpEngine { return new HttpEngine(this.token, this.rank, generation); }
  fragmentOf(rank: string) { return `t=${this.token}&rank=${rank}`; }

  meta() { return this.get<Meta>("/api/meta"); }
  async frame(request: FrameRequest, abort?: AbortSignal) {
    const response = await this.post("/api/frame", request, abort);
    return decodeFrame(await response.arrayBuffer(), request.t1);
  }
  otherLanes(trace: number, which: object) { return this.ask<LanePage>("/api/lanes", { trace, ...which }); }
  steps(trace: number, question: StepQuestion) { return this.ask<StepPage>("/api/steps", { trace, ...question }); }
  async names(trace: number, ids: number[]) { return (await this.ask<{ names: Name[] }>("/api/names", { trace, names: ids })).names; }
  event(trace: number, slice: number) { return this.ask<never>("/api/event", { trace, slice }); }
  at(trace: number, lane: number, row: number, t0: number, t1: number) { return this.ask<never>("/api/at", { trace, lane, row, t0, t1 }); }
  area(trace: number, t0: number, t1: number, lanes: number[]) { return this.ask<never>("/api/area", { trace, t0, t1, lanes }); }
  search(trace: number, text: string, limit: number) { return this.ask<never>("/api/search", { trace, text, limit }); }
  async explain(trace: number) { return withSigns(await this.get<Explanation>(`/api/explain?trace=${trace}`)); }
  async gaps(trace: number, sort: string, limit: number) { return withSigns(await this.get<GapsAnswer>(`/api/gaps?trace=${trace}&sort=${sort}&limit=${limit}`)); }
  async gap(trace: number, index: number) {
    const { gaps, pending } = withSigns(await this.ask<{ gaps: Gap[]; pending?: boolean }>("/api/gap", { trace, index }));
    if (gaps[0] === undefined) throw new EngineError("This gap is not in the trace.", 404);
    return pending === true ? { ...gaps[0], pending } : gaps[0];
  }
  async tour(trace: number) { return withSigns((await this.get<{ stops: TourStop[] }>(`/api/tour?trace=${trace}`)).stops); }
  table(trace: number, request: TableRequest) { return this.ask<never>("/api/table", { trace, ...request }); }
  async flame(trace: number, t0: number, t1: number, lane: number) {
    return (await this.ask<{ nodes: never[] }>("/api/flame", { trace, t0, t1, lane })).nodes;
  }
  memory(trace: number) { return this.get<MemoryAnswer>(`/api/memory?trace=${trace}`); }
  async compare() { return withSigns(await this.get<CompareAnswer>("/api/compare")); }
  async job() { return withSigns(await this.get<JobAnswer>("/api/ranks")); }
  async notes() { return (await this.get<{ notes: Note[] }>("/api/notes")).notes; }
  async keepNotes(notes: Note[]) { await this.post("/api/notes", { notes }); }
  async save(trace: number, t0: number, t1: number) { return (await this.post("/api/save", { trace, t0, t1 })).blob(); }
  async perfetto(trace: number, t0: number, t1: number) { return (await this.post("/api/perfetto", { trace, t0, t1 })).arrayBuffer(); }
  async alive(generation: number) { return (await this.get<{ generation: number }>(`/api/alive?gen=${generation}`)).generation; }

  private async ask<T>(path: string, question: unknown): Promise<T> { return (await this.post(path, question)).json(); }
  private async get<T>(path: string): Promise<T> { return (await this.send(path, {})).json(); }
  private post(path: string, question: unknown, abort?: AbortSignal) {
    return this.send(path, { method: "POST", body: JSON.stringify(question), signal: abort ?? null });
  }

  private async send(path: string, options: RequestInit): Promise<Response> {
    let response: Response;
    const headers: Record<string, string> = { "X-Token": this.token, "Content-Type": "application/json" };
    if (this.rank !== null) headers["X-Rank"] = this.rank;
    if (this.generation !== null) headers["X-Generation"] = String(this.generation);
    try {
      response = await fetch(path, { ...options, headers });
    } catch (reason) {
      if (reason instanceof DOMException && reason.name === "AbortError") throw reason;
      throw new EngineError(silence, 0);
    }
    if (response.ok) return response;
    let message = `The engine answered ${response.status} to ${path}.`;
    try {
      const body: unknown = await response.json();
      if (typeof body === "object" && body !== null && "error" in body && typeof body.error === "string") message = body.error;
    } catch {
      // Not JSON: the status says enough.
    }
    throw new EngineError(message, response.status);
  }
}
