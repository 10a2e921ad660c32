// The time above the lanes: ticks, and how much of the trace is in view. Drawn like the lanes, because elements that move with each picture
// cost more than the lanes do.
import { formatTick, leastTickPixels, tickStep } from "../base/format.ts";
import type { TimeWindow } from "../state/window.ts";
import { font } from "./labels.ts";
import type { Palette } from "./palette.ts";

export const axisHeight = 33; // with the line below it, 34
const extentHeight = 5;
const tickTop = 12;
// Of the ticks' text, in pixels. The last tick keeps its line where its text would be cut.
const widestDigit = 7;

export interface Tick { at: number; text: string } // pixels from the left

// `window`: of time since the trace began. Before the first event there is no time of the trace.
export function ticksOf(window: TimeWindow, width: number): Tick[] {
  const span = window.t1 - window.t0;
  const step = tickStep(span, Math.max(1, width / leastTickPixels));
  const ticks: Tick[] = [];
  for (let tick = Math.max(0, Math.ceil(window.t0 / step) * step); tick <= window.t1 && ticks.length < 60; tick += step) {
    const at = ((tick - window.t0) / span) * width;
    const text = formatTick(tick, step);
    ticks.push({ at, text: width - at > text.length * widestDigit ? text : "" });
  }
  return ticks;
}

// `shown` of a trace of `total` ns, both on the axis of the first trace; `offset`: this trace's time at 0 of that axis.
export function drawAxis(ctx: CanvasRenderingContext2D, palette: Palette, size: { width: number; ratio: number }, shown: TimeWindow, offset: number, total: number): void {
  const { width, ratio } = size;
  ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
  ctx.fillStyle = palette.background;
  ctx.fillRect(0, 0, width, axisHeight);
  ctx.fillStyle = palette.band;
  ctx.fillRect(0, 0, width, extentHeight);
  const left = Math.max(0, Math.min(1, shown.t0 / total)) * width;
  const right = Math.max(0, Math.min(1, shown.t1 / total)) * width;
  const least = Math.max(3, width * 0.004);
  ctx.fillStyle = palette.accent;
  ctx.beginPath();
  ctx.roundRect(Math.min(left, width - least), 0, Math.max(least, right - left), extentHeight, 2);
  ctx.fill();
  ctx.font = font;
  ctx.textBaseline = "middle";
  for (const tick of ticksOf({ t0: shown.t0 + offset, t1: shown.t1 + offset }, width)) {
    ctx.fillStyle = palette.line;
    ctx.fillRect(Math.round(tick.at), tickTop, 1, axisHeight - tickTop);
    ctx.fillStyle = palette.faint;
    ctx.fillText(tick.text, tick.at + 5, tickTop + 11);
  }
}
