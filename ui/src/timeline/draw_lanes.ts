// The lanes themselves: grid, pixels of what is narrow, rectangles of what is wide, counters.
import type { CounterEntry, Frame, FrameEntry } from "../api/types.ts";
import { formatTime, leastTickPixels, tickStep } from "../base/format.ts";
import type { LaneBox } from "./layout.ts";
import { kindCommunication, kindCopy, kindWait, mix, type KindInk } from "./palette.ts";
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

export function drawLanes(pen: Pen, scene: Scene, boxes: LaneBox[], frame: Frame): void {
  const byLane = new Map(boxes.map((box) => [box.lane.lane, box]));
  const pixels = Math.max(1, Math.round(scene.width * scene.ratio));
  const scale: Scale = { x0: scene.window.t0, perPixel: (scene.window.t1 - scene.window.t0) / pixels, width: pixels };
  const jobs: { entry: FrameEntry; box: LaneBox; y: number; h: number; wide: [number, number, number][]; image: number }[] = [];
  for (const entry of frame.entries) {
    const box = byLane.get(entry.lane);
    if (box === undefined) continue;
    if (entry.kind === "counter") counter(pen, scene, box, entry, frame.t0);
    else if (entry.row < box.rows) {
      const h = box.rows === 1 && box.lane.kind !== "gpu" ? Math.min(box.rowHeight, box.height) : box.rowHeight;
      jobs.push({ entry, box, y: box.y + entry.row * box.rowHeight, h: h - (h > 9 ? 2 : 1), wide: [], image: -1 });
    }
  }
  strips(pen, scene, frame, scale, jobs);
  for (const job of jobs) {
    for (const [index, x, w] of job.wide) rectangle(pen, scene, job.box, job.entry, index, x / scene.ratio, w / scene.ratio, job.y, job.h);
  }
}

// One image for all rows: a line of pixels each, stretched to the row's height.
function strips(pen: Pen, scene: Scene, frame: Frame, scale: Scale, jobs: { entry: FrameEntry; box: LaneBox; y: number; h: number; wide: [number, number, number][]; image: number }[]): void {
  if (jobs.length === 0) return;
  const strip = makeStrip(scale.width);
  const image = new ImageData(scale.width, jobs.length);
  const out = new Uint32Array(image.data.buffer);
  let used = 0;
  for (const job of jobs) {
    const lit = litTest(scene, job.box, job.entry);
    if (!fillStrip(strip, job.entry, frame.t0, scale, lit, (index, x, w) => job.wide.push([index, x, w]))) continue;
    job.image = used;
    const idle = job.box.lane.kind === "idle";
    for (let pixel = 0, at = used * scale.width; pixel < scale.width; pixel += 1, at += 1) {
      const busy = strip.busy[pixel];
      if (busy <= 0) continue;
      const ink = idle ? pen.inks.idle : pen.inks.kinds[strip.kind[pixel]] ?? pen.inks.kinds[8];
      const color = scene.lit !== null && strip.lit[pixel] === 0 ? ink.dimColor : ink.color;
      const [r, g, b] = mix(pen.inks.background, color, 0.3 + 0.7 * Math.min(1, busy));
      out[at] = 0xff000000 | (b << 16) | (g << 8) | r;
    }
    used += 1;
  }
  if (used === 0) return;
  if (pen.strip.width < scale.width || pen.strip.height < used) {
    pen.strip.width = scale.width;
    pen.strip.height = Math.max(used, pen.strip.height, 64);
  }
  pen.strip.getContext("2d")?.putImageData(image, 0, 0, 0, 0, scale.width, used);
  pen.ctx.imageSmoothingEnabled = false;
  for (const job of jobs) {
    if (job.image >= 0) pen.ctx.drawImage(pen.strip, 0, job.image, scale.width, 1, 0, job.y, scene.width, job.h);
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
    pen.labels.label(pen.labels.fitting([title, title.replace(/ \(.*/, ""), title.replace(/,.*/, "")], width - 9), left, width, y, h, pen.inks.palette.text, x < 0);
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

function counter(pen: Pen, scene: Scene, box: LaneBox, entry: CounterEntry, frameT0: number): void {
  const { ctx } = pen;
  const top = Math.max(box.lane.counter?.max ?? 0, 1e-9);
  const yOf = (value: number) => box.y + box.height - 1 - (Math.max(0, value) / top) * (box.height - 4);
  const end = xOf(scene, scene.traceSpan);
  ctx.fillStyle = pen.inks.palette.counter;
  ctx.globalAlpha = scene.lit === null ? 0.55 : 0.2;
  ctx.beginPath();
  for (let index = 0; index < entry.count; index += 1) {
    const x0 = Math.max(-1, xOf(scene, frameT0 + entry.start[index]));
    const next = index + 1 < entry.count ? xOf(scene, frameT0 + entry.start[index + 1]) : end;
    const x1 = Math.min(scene.width + 1, next);
    if (x1 < x0 || x1 < 0 || x0 > scene.width) continue;
    const y = yOf(Math.max(entry.max[index], entry.last[index]));
    ctx.rect(x0, y, Math.max(1, x1 - x0), box.y + box.height - y);
  }
  ctx.fill();
  ctx.globalAlpha = 1;
}
