// Keeps what is known of a trace's lanes near the window, and asks for more: three times the visible span, one question at a
// time, the newest wish wins. What is on screen is stretched until the answer is there.
import { signal } from "@preact/signals";
import { EngineError, statusGrown, type Engine } from "../api/engine.ts";
import type { Frame } from "../api/types.ts";
import { spanOf, type TimeWindow } from "./window.ts";

interface Wish { window: TimeWindow; pixels: number; lanes: number[] }

// Where a frame has to reach, and how fine it is.
export function frameRange(window: TimeWindow, pixels: number, traceSpan: number): { t0: number; t1: number; step: number } {
  const span = spanOf(window);
  const perPixel = span / Math.max(1, pixels);
  return {
    t0: Math.max(Math.floor(window.t0 - span), Math.min(0, Math.floor(window.t0))),
    t1: Math.min(Math.ceil(window.t1 + span), Math.max(traceSpan + 1, Math.ceil(window.t1))),
    step: 2 ** Math.max(0, Math.floor(Math.log2(perPixel))),
  };
}

export function frameServes(frame: Frame, window: TimeWindow, pixels: number, traceSpan: number): boolean {
  const wanted = frameRange(window, pixels, traceSpan);
  return frame.step === wanted.step && frame.t0 <= Math.max(0, window.t0) && frame.t1 >= Math.min(traceSpan, window.t1);
}

export class FrameSource {
  readonly frame = signal<Frame | null>(null);
  readonly error = signal<string | null>(null);
  private lanesOfFrame = new Set<number>();
  private wish: Wish | null = null;
  private asking = false;
  private generation = 0;
  private last: Wish | null = null;
  private growth = 0; // counts renew(): an answer from before is not shown

  constructor(private readonly engine: () => Engine, private readonly trace: number, private readonly traceSpan: () => number) {}

  // Cheap when the frame at hand serves; call it on each drawn frame.
  want(window: TimeWindow, pixels: number, lanes: number[]): void {
    const frame = this.frame.peek();
    if (frame !== null && frameServes(frame, window, pixels, this.traceSpan()) && lanes.every((lane) => this.lanesOfFrame.has(lane))) {
      this.wish = null;
      return;
    }
    this.wish = { window, pixels, lanes };
    this.last = this.wish;
    if (!this.asking) void this.ask();
  }

  // The trace has grown: the picture at hand, asked for anew. `lanes`: their new numbers by the old ones. Null: there is none yet.
  // Nothing changes until show() is called with it.
  async renew(engine: Engine, lanes: ReadonlyMap<number, number>, shift: number, traceSpan: number): Promise<{ frame: Frame; lanes: number[] } | null> {
    if (this.last === null) return null;
    const { window, pixels } = this.last;
    const wanted = [...this.lanesOfFrame].flatMap((lane) => lanes.get(lane) ?? []);
    const range = frameRange({ t0: window.t0 + shift, t1: window.t1 + shift }, pixels, traceSpan);
    return { frame: await engine.frame({ trace: this.trace, ...range, lanes: wanted, gen: 0 }), lanes: wanted };
  }

  show(renewed: { frame: Frame; lanes: number[] } | null): void {
    this.growth += 1;
    this.wish = null;
    this.lanesOfFrame = new Set(renewed?.lanes);
    this.frame.value = renewed?.frame ?? null;
  }

  private async ask(): Promise<void> {
    this.asking = true;
    while (this.wish !== null) {
      const wish = this.wish;
      this.wish = null;
      const growth = this.growth;
      try {
        this.generation += 1;
        const range = frameRange(wish.window, wish.pixels, this.traceSpan());
        const frame = await this.engine().frame({ trace: this.trace, ...range, lanes: wish.lanes, gen: this.generation });
        if (growth !== this.growth) continue;
        this.lanesOfFrame = new Set(wish.lanes);
        this.error.value = null;
        this.frame.value = frame;
      } catch (reason) {
        if (growth !== this.growth || (reason instanceof EngineError && reason.status === statusGrown)) continue; // show() comes
        this.error.value = reason instanceof Error ? reason.message : String(reason);
        await new Promise((resolve) => setTimeout(resolve, 1000)); // do not hammer a server that has ended
      }
    }
    this.asking = false;
  }
}
