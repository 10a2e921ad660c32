// The steps of a trace. When there are few, the answer to meta() has them all. Of many it has one for each bar of the ribbon, and the
// others are asked for in pages when they are shown.
import { signal } from "@preact/signals";
import type { Engine } from "../api/engine.ts";
import type { Step, StepPage, TraceMeta } from "../api/types.ts";

const pageLength = 500;
const mostPages = 100; // the oldest go

export class Steps {
  // Counts the answers: whoever shows steps reads it, and so shows them when they come.
  readonly version = signal(0);
  readonly count: number;
  readonly typical: Step | undefined;
  private readonly listed: readonly Step[]; // all, or none
  private readonly pages = new Map<number, readonly Step[]>();
  private asking: Promise<number> | null = null;

  constructor(private readonly engine: () => Engine, private readonly trace: number, meta: TraceMeta) {
    this.count = meta.step_count ?? meta.steps.length;
    this.listed = meta.steps;
    this.typical = meta.typical?.[0] ?? meta.steps[meta.typical_step ?? -1];
  }

  get areListed(): boolean { return this.listed.length === this.count; }

  // Nothing: there is no such step, or it is not known yet; then it is asked for.
  at(index: number): Step | undefined {
    const known = this.known(index);
    if (known === undefined && index >= 0 && index < this.count && this.asking === null) void this.get(index).catch(() => undefined);
    return known;
  }
  async get(index: number): Promise<Step | undefined> {
    if (index < 0 || index >= this.count) return undefined;
    while (this.known(index) === undefined && this.asking !== null) await this.asking.catch(() => undefined); // it may be what is asked for
    if (this.known(index) === undefined) await this.ask({ from: index - (index % pageLength) });
    return this.known(index);
  }
  async ofNumber(number: number): Promise<Step | undefined> {
    if (this.areListed) return this.listed.find((step) => step.number === number);
    for (const page of this.pages.values()) for (const step of page) if (step.number === number) return step;
    return this.known(await this.ask({ number }));
  }

  // The last step that began by then; -1: none, or it is not known yet; then it is asked for.
  indexAt(time: number): number {
    if (this.areListed) return lastBegun(this.listed, time);
    const known = this.knownAt(time);
    if (known < 0 && this.asking === null && this.count > 0) void this.find(time).catch(() => undefined);
    return known;
  }
  async find(time: number): Promise<number> {
    if (this.areListed) return lastBegun(this.listed, time);
    const known = this.knownAt(time);
    return known >= 0 ? known : this.ask({ at: time });
  }

  private known(index: number): Step | undefined {
    if (this.areListed) return this.listed[index];
    const page = this.pages.get(Math.floor(index / pageLength));
    return page?.[index - page[0].index]; // a saved page begins where its range does
  }
  private knownAt(time: number): number {
    for (const [number, page] of this.pages) {
      const last = page[page.length - 1];
      const isLastPage = (number + 1) * pageLength >= this.count;
      if (page[0].start_ns <= time && (isLastPage || time < last.start_ns + last.dur_ns)) return page[lastBegun(page, time)].index;
    }
    return -1;
  }

  // The index that was found. One question at a time.
  private async ask(which: { from: number } | { at: number } | { number: number }): Promise<number> {
    while (this.asking !== null) await this.asking.catch(() => undefined);
    this.asking = this.engine().steps(this.trace, { ...which, limit: pageLength }).then((page: StepPage) => {
      if (page.steps.length > 0) this.keep(page.steps);
      return page.found;
    });
    try {
      return await this.asking;
    } finally {
      this.asking = null;
    }
  }
  private keep(steps: readonly Step[]): void {
    if (this.pages.size >= mostPages) this.pages.delete(this.pages.keys().next().value ?? 0);
    this.pages.set(Math.floor(steps[0].index / pageLength), steps);
    this.version.value += 1;
  }
}

function lastBegun(steps: readonly Step[], time: number): number {
  let low = 0;
  let high = steps.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (steps[middle].start_ns <= time) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}
