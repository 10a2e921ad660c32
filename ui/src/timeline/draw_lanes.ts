// The lanes themselves: grid, pixels of what is narrow, rectangles of what is wide, counters.
import type { CounterEntry, Frame, FrameEntry } from "../api/types.ts";
import { formatTime, leastTickPixels, tickStep } from "../base/format.ts";
import { fillColumns } from "./columns.ts";
import type { LaneBox } from "./layout.ts";
import { kindCommunication, kindCopy, kindWait, rgb, shadeOf, withAlpha, type KindInk } from "./palette.ts";
import { xOf, type Pen, type Scene } from "./picture.ts";
import { fillStrip, makeStrip, type Scale } from "./strips.ts";

export function drawGrid(pen: Pen, scene: Scene, boxes: LaneBox[]): void {
  const { ctx } = pen;
  const { palette } = pen.inks;
  for (const box of boxes) {
    if (scene.focusLane !== box.lane.lane) continue;
    ctx.fillStyle = palette.band;
    ctx.fillRect(0, box.y - scene.scrollTop - 4, scene.width, box.height + 8);
  }
  const step = tickStep(scene.window.t1 - scene.window.t0, Math.max(1, scene.width / leastTickPixels));
  ctx.fillStyle = palette.grid;
  for (let tick = Math.ceil(scene.window.t0 / step) * step; tick < scene.window.t1; tick += step) {
    ctx.fillRect(Math.round(xOf(scene, tick)), 0, 1, scene.height);
  }
  // What lies outside of the trace is not idle: it was not recorded.
  for (const [from, to] of [[scene.window.t0, 0], [scene.traceSpan, scene.window.t1]]) {
    if (to <= from) continue;
    ctx.fillStyle = palette.band;
    ctx.fillRect(xOf(scene, from), 0, xOf(scene, to) - xOf(scene, from), scene.height);
  }
  for (const box of boxes) {
    ctx.fillStyle = palette.grid;
    ctx.fillRect(0, Math.round(box.y - scene.scrollTop + box.height + 4), scene.width, 1);
  }
}

interface Row { entry: FrameEntry; box: LaneBox; y: number; h: number; wide: [index: number, x: number, w: number][]; at: number } // at: in the image, -1: nowhere
interface Curve { entry: CounterEntry; box: LaneBox }

export function drawLanes(pen: Pen, scene: Scene, boxes: LaneBox[], frame: Frame): void {
  const byLane = new Map(boxes.map((box) => [box.lane.lane, box]));
  const pixels = Math.max(1, Math.round(scene.width * scene.ratio));
  const scale: Scale = { x0: scene.window.t0, perPixel: (scene.window.t1 - scene.window.t0) / pixels, width: pixels };
  const rows: Row[] = [];
  const curves: Curve[] = [];
  for (const entry of frame.entries) {
    const box = byLane.get(entry.lane);
    if (box === undefined) continue;
    if (entry.kind === "counter") curves.push({ entry, box });
    else if (entry.row < box.rows) {
      const h = box.rows === 1 && box.lane.kind !== "gpu" ? Math.min(box.rowHeight, box.height) : box.rowHeight;
      rows.push({ entry, box, y: box.y + entry.row * box.rowHeight, h: h - (h > 9 ? 2 : 1), wide: [], at: -1 });
    }
  }
  drawPixels(pen, scene, frame, scale, rows, curves);
  for (const row of rows) {
    for (const [index, x, w] of row.wide) rectangle(pen, scene, row.box, row.entry, index, x / scene.ratio, w / scene.ratio, row.y, row.h);
  }
}

// One image for all: a line of pixels for each row, stretched to the row's height, and the columns of counters.
function drawPixels(pen: Pen, scene: Scene, frame: Frame, scale: Scale, rows: Row[], curves: Curve[]): void {
  if (pen.strip.busy.length !== scale.width) pen.strip = makeStrip(scale.width);
  const heightOf = (curve: Curve) => Math.max(1, Math.round(curve.box.height * scene.ratio));
  const out = pen.pixels.begin(scale.width, curves.reduce((sum, curve) => sum + heightOf(curve), rows.length));
  let used = 0;
  for (const row of rows) {
    if (!fillStrip(pen.strip, row.entry, frame.t0, scale, litTest(scene, row.box, row.entry), (index, x, w) => row.wide.push([index, x, w]))) continue;
    row.at = used;
    stripPixels(out.subarray(used * scale.width, (used + 1) * scale.width), pen, scene, row.box.lane.kind === "idle");
    used += 1;
  }
  const firstCurve = used;
  for (const curve of curves) {
    fillColumns(pen.strip.busy, curve.entry, frame.t0, scale, scene.traceSpan);
    columnPixels(out.subarray(used * scale.width), pen, scene, curve, heightOf(curve));
    used += heightOf(curve);
  }
  if (used === 0) return;
  pen.pixels.put();
  pen.ctx.imageSmoothingEnabled = false;
  for (const row of rows) {
    if (row.at >= 0) pen.pixels.draw(pen.ctx, row.at, 1, 0, row.y, scene.width, row.h);
  }
  let at = firstCurve;
  for (const curve of curves) {
    pen.pixels.draw(pen.ctx, at, heightOf(curve), 0, curve.box.y, scene.width, curve.box.height);
    at += heightOf(curve);
  }
}

function stripPixels(out: Uint32Array, pen: Pen, scene: Scene, idle: boolean): void {
  const { busy, kind, lit } = pen.strip;
  for (let pixel = 0; pixel < out.length; pixel += 1) {
    if (busy[pixel] <= 0) continue;
    const ink = idle ? pen.inks.idle : pen.inks.kinds[kind[pixel]] ?? pen.inks.kinds[8];
    out[pixel] = shadeOf(scene.lit !== null && lit[pixel] === 0 ? ink.dimShades : ink.shades, busy[pixel]);
  }
}

// From the columns that are in pen.strip.busy.
function columnPixels(out: Uint32Array, pen: Pen, scene: Scene, { box }: Curve, height: number): void {
  const { busy } = pen.strip;
  const color = withAlpha(rgb(pen.inks.palette.counter), scene.lit === null ? 0.55 : 0.2);
  const perUnit = (height - 4 * scene.ratio) / Math.max(box.lane.counter?.max ?? 0, 1e-9);
  const least = Math.max(1, Math.round(scene.ratio)); // a line where it is 0, so that its lane is not taken for empty
  const [from, to] = [Math.max(0, Math.floor(xOf(scene, 0) * scene.ratio)), Math.min(busy.length, Math.ceil(xOf(scene, scene.traceSpan) * scene.ratio))];
  for (let pixel = from; pixel < to; pixel += 1) {
    const top = height - Math.min(height, least + Math.round(busy[pixel] * perUnit));
    for (let y = top; y < height; y += 1) out[y * busy.length + pixel] = color;
  }
}

function litTest(scene: Scene, box: LaneBox, entry: FrameEntry): (index: number) => boolean {
  const { lit } = scene;
  if (lit === null) return () => true;
  if (lit.causes !== undefined) return box.lane.kind === "idle" ? (index) => lit.causes?.has(entry.kinds[index]) === true : () => false;
  if (box.lane.kind === "idle" || box.lane.kind === "steps") return () => false;
  if (lit.kinds !== undefined) return (index) => lit.kinds?.has(entry.kinds[index]) === true;
  if (lit.names !== undefined) return (index) => lit.names?.has(entry.name[index]) === true;
  return () => false;
}

function rectangle(pen: Pen, scene: Scene, box: LaneBox, entry: FrameEntry, index: number, x: number, w: number, y: number, h: number): void {
  const { ctx } = pen;
  const left = Math.max(-2, x);
  const width = Math.min(scene.width + 2, x + w) - left;
  const kind = entry.kinds[index];
  const dim = scene.lit !== null && !litTest(scene, box, entry)(index);
  if (box.lane.kind === "steps") {
    ctx.fillStyle = pen.inks.palette.step[entry.slice[index] % 2];
    ctx.fillRect(left, y, width, h);
    const title = scene.stepTitle(entry.slice[index]);
    // A bar is as long as the CPU's part: without the words that say so, the step's own length would be taken for that of the bar.
    const shorter = title.includes(" (") ? title.replace(/,.*/, "") : title.replace(/, not steady$/, "");
    pen.labels.label(pen.labels.fitting([title, shorter, title.replace(/,.*/, "")], width - 9), left, width, y, h, pen.inks.palette.text, x < 0);
    return;
  }
  const idle = box.lane.kind === "idle";
  const ink: KindInk = idle ? pen.inks.idle : pen.inks.kinds[kind] ?? pen.inks.kinds[8];
  ctx.fillStyle = dim ? ink.dimmed : ink.fill;
  ctx.fillRect(left, y, width - (w > 6 ? 1 : 0.5), h);
  const pattern = idle || kind === kindWait ? pen.patterns.stripes : kind === kindCopy ? pen.patterns.dots : kind === kindCommunication ? pen.patterns.lines : null;
  if (pattern !== null && !dim) {
    ctx.fillStyle = pattern;
    ctx.fillRect(left, y, width - 1, h);
  }
  if (w > 6 && !dim) {
    ctx.fillStyle = ink.edge;
    ctx.fillRect(left, y, 1, h);
  }
  if (width < 22) return;
  const text = idle ? pen.labels.fitting([`idle: ${scene.causeTitle(kind)} · ${formatTime(entry.dur[index])}`, scene.causeTitle(kind), formatTime(entry.dur[index])], width - 9) : scene.nameOf(entry.name[index]);
  pen.labels.label(text, left, width, y, h, dim ? pen.inks.palette.faint : ink.text, x < 0, pattern !== null && !dim ? ink.fill : null);
}
