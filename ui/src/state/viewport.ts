// Moves the shown window to its goal, frame by frame. With reduced motion it is there at once.
import { signal } from "@preact/signals";
import { ease, limitWindow, sameWindow, type TimeWindow } from "./window.ts";

const mostUndo = 100;

export class Viewport {
  readonly shown = signal<TimeWindow>({ t0: 0, t1: 1 });
  private goal: TimeWindow = { t0: 0, t1: 1 };
  private undo: TimeWindow[] = [];
  private running = false;
  traceSpan = 1;

  constructor(private readonly reducedMotion: () => boolean) {}

  get target(): TimeWindow { return this.goal; }

  // `remember`: a jump that Backspace takes back; steps of a zoom are not.
  go(window: TimeWindow, remember = true): void {
    const next = limitWindow(window, this.traceSpan);
    if (remember && !sameWindow(next, this.goal)) this.undo = [...this.undo.slice(-mostUndo), this.goal];
    this.goal = next;
    if (this.reducedMotion()) this.shown.value = next;
    else this.start();
  }

  jump(window: TimeWindow): void {
    this.goal = limitWindow(window, this.traceSpan);
    this.shown.value = this.goal;
  }

  // The trace has grown, and its times have moved by `shift`. No easing: what is on screen stays where it is.
  follow(window: TimeWindow, shift: number): void {
    this.undo = this.undo.map((each) => ({ t0: each.t0 + shift, t1: each.t1 + shift }));
    this.jump(window);
  }

  back(): void {
    const before = this.undo.pop();
    if (before !== undefined) this.go(before, false);
  }

  private start(): void {
    if (this.running) return;
    this.running = true;
    const step = () => {
      this.shown.value = ease(this.shown.value, this.goal);
      this.running = this.shown.value !== this.goal;
      if (this.running) requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  }
}
