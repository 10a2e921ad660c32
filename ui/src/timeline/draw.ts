// Draws the lanes: a picture is a function of what is in Scene and nothing else.
import type { Arrow, CounterEntry, Frame, FrameEntry } from "../api/types.ts";
import { formatTime, tickStep } from "../base/format.ts";
import type { Lit, LitSlice, Mark, Measure } from "../state/store.ts";
import type { TimeWindow } from "../state/window.ts";
import { visibleBoxes, type LaneBox, type Layout } from "./layout.ts";
import { kindCommunication, kindCopy, kindWait, mix, type Inks, type KindInk } from "./palette.ts";
import { fillStrip, makeStrip, type Scale } from "./strips.ts";

export interface Scene {
  width: number; // CSS pixels
  height: number;
  ratio: number; // device pixels a CSS pixel
  scrollTop: number;
  window: TimeWindow; // of this trace
  layout: Layout;
  frame: Frame | null;
  nameOf: (id: number) => string;
  stepTitle: (index: number) => string;
  causeTitle: (cause: number) => string;
  lit: Lit | null;
  selected: LitSlice | null;
  chain: LitSlice[];
  arrows: Arrow[];
  queueNs: number | null;
  hover: LitSlice | null;
  focusLane: number | null;
  area: { t0: number; t1: number } | null;
  marks: Mark[]; // of this trace's time
  measure: Measure | null;
  traceSpan: number;
}

const font = "11px system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif";
export class Painter {
  private readonly strip: HTMLCanvasElement;
  private readonly knownWidths = new Map<string, number>();
  private readonly patterns: { stripes: CanvasPattern | null; dots: CanvasPattern | null; lines: CanvasPattern | null };

  constructor(private readonly ctx: CanvasRenderingContext2D, private readonly inks: Inks, make: () => HTMLCanvasElement) {
    this.strip = make();
    const line = inks.palette.dark ? "rgb(255 255 255 / .3)" : "rgb(20 26 36 / .26)";
    this.patterns = { stripes: stripes(ctx, make(), line), dots: dots(ctx, make()), lines: lines(ctx, make(), line) };
  }

  paint(scene: Scene): void {
    const { ctx } = this;
    const { palette } = this.inks;
    ctx.setTransform(scene.ratio, 0, 0, scene.ratio, 0, 0);
    ctx.font = font;
    ctx.textBaseline = "middle";
    ctx.fillStyle = palette.background;
    ctx.fillRect(0, 0, scene.width, scene.height);
    const boxes = visibleBoxes(scene.layout, scene.scrollTop, scene.height);
    this.grid(scene, boxes);
    ctx.save();
    ctx.translate(0, -scene.scrollTop);
    if (scene.frame !== null) this.lanes(scene, boxes, scene.frame);
    this.litSlices(scene);
    this.selection(scene);
    this.arrows(scene);
    ctx.restore();
    this.overlays(scene);
  }

  private widthOf(text: string): number {
    let width = this.knownWidths.get(text);
    if (width === undefined) {
      if (this.knownWidths.size > 20_000) this.knownWidths.clear();
      width = this.ctx.measureText(text).width;
      this.knownWidths.set(text, width);
    }
    return width;
  }

  private x(scene: Scene, ns: number): number {
    return ((ns - scene.window.t0) / (scene.window.t1 - scene.window.t0)) * scene.width;
  }

  private grid(scene: Scene, boxes: LaneBox[]): void {
    const { ctx } = this;
    const { palette } = this.inks;
    for (const box of boxes) {
      if (scene.focusLane !== box.lane.lane) continue;
      ctx.fillStyle = palette.band;
      ctx.fillRect(0, box.y - scene.scrollTop - 4, scene.width, box.height + 8);
    }
    const step = tickStep(scene.window.t1 - scene.window.t0, scene.width / 110);
    ctx.fillStyle = palette.grid;
    for (let tick = Math.ceil(scene.window.t0 / step) * step; tick < scene.window.t1; tick += step) {
      ctx.fillRect(Math.round(this.x(scene, tick)), 0, 1, scene.height);
    }
    // What lies outside of the trace is not idle: it was not recorded.
    for (const [from, to] of [[scene.window.t0, 0], [scene.traceSpan, scene.window.t1]]) {
      if (to <= from) continue;
      ctx.fillStyle = palette.band;
      ctx.fillRect(this.x(scene, from), 0, this.x(scene, to) - this.x(scene, from), scene.height);
    }
    for (const box of boxes) {
      ctx.fillStyle = palette.grid;
      ctx.fillRect(0, Math.round(box.y - scene.scrollTop + box.height + 4), scene.width, 1);
    }
  }

  private lanes(scene: Scene, boxes: LaneBox[], frame: Frame): void {
    const byLane = new Map(boxes.map((box) => [box.lane.lane, box]));
    const pixels = Math.max(1, Math.round(scene.width * scene.ratio));
    const scale: Scale = { x0: scene.window.t0, perPixel: (scene.window.t1 - scene.window.t0) / pixels, width: pixels };
    const jobs: { entry: FrameEntry; box: LaneBox; y: number; h: number; wide: [number, number, number][]; image: number }[] = [];
    for (const entry of frame.entries) {
      const box = byLane.get(entry.lane);
      if (box === undefined) continue;
      if (entry.kind === "counter") this.counter(scene, box, entry, frame.t0);
      else if (entry.row < box.rows) {
        const h = box.rows === 1 && box.lane.kind !== "gpu" ? Math.min(box.rowHeight, box.height) : box.rowHeight;
        jobs.push({ entry, box, y: box.y + entry.row * box.rowHeight, h: h - (h > 9 ? 2 : 1), wide: [], image: -1 });
      }
    }
    this.strips(scene, frame, scale, jobs);
    for (const job of jobs) {
      for (const [index, x, w] of job.wide) this.rectangle(scene, job.box, job.entry, index, x / scene.ratio, w / scene.ratio, job.y, job.h);
    }
  }

  // One image for all rows: a line of pixels each, stretched to the row's height.
  private strips(scene: Scene, frame: Frame, scale: Scale, jobs: { entry: FrameEntry; box: LaneBox; y: number; h: number; wide: [number, number, number][]; image: number }[]): void {
    if (jobs.length === 0) return;
    const strip = makeStrip(scale.width);
    const image = new ImageData(scale.width, jobs.length);
    const out = new Uint32Array(image.data.buffer);
    let used = 0;
    for (const job of jobs) {
      const lit = this.litTest(scene, job.box, job.entry);
      if (!fillStrip(strip, job.entry, frame.t0, scale, lit, (index, x, w) => job.wide.push([index, x, w]))) continue;
      job.image = used;
      const idle = job.box.lane.kind === "idle";
      for (let pixel = 0, at = used * scale.width; pixel < scale.width; pixel += 1, at += 1) {
        const busy = strip.busy[pixel];
        if (busy <= 0) continue;
        const ink = idle ? this.inks.idle : this.inks.kinds[strip.kind[pixel]] ?? this.inks.kinds[8];
        const color = scene.lit !== null && strip.lit[pixel] === 0 ? ink.dimColor : ink.color;
        const [r, g, b] = mix(this.inks.background, color, 0.3 + 0.7 * Math.min(1, busy));
        out[at] = 0xff000000 | (b << 16) | (g << 8) | r;
      }
      used += 1;
    }
    if (used === 0) return;
    if (this.strip.width < scale.width || this.strip.height < used) {
      this.strip.width = scale.width;
      this.strip.height = Math.max(used, this.strip.height, 64);
    }
    this.strip.getContext("2d")?.putImageData(image, 0, 0, 0, 0, scale.width, used);
    this.ctx.imageSmoothingEnabled = false;
    for (const job of jobs) {
      if (job.image >= 0) this.ctx.drawImage(this.strip, 0, job.image, scale.width, 1, 0, job.y, scene.width, job.h);
    }
  }

  private litTest(scene: Scene, box: LaneBox, entry: FrameEntry): (index: number) => boolean {
    const { lit } = scene;
    if (lit === null) return () => true;
    if (lit.causes !== undefined) return box.lane.kind === "idle" ? (index) => lit.causes?.has(entry.kinds[index]) === true : () => false;
    if (box.lane.kind === "idle" || box.lane.kind === "steps") return () => false;
    if (lit.kinds !== undefined) return (index) => lit.kinds?.has(entry.kinds[index]) === true;
    if (lit.names !== undefined) return (index) => lit.names?.has(entry.name[index]) === true;
    return () => false;
  }

  private rectangle(scene: Scene, box: LaneBox, entry: FrameEntry, index: number, x: number, w: number, y: number, h: number): void {
    const { ctx } = this;
    const left = Math.max(-2, x);
    const width = Math.min(scene.width + 2, x + w) - left;
    const kind = entry.kinds[index];
    const dim = scene.lit !== null && !this.litTest(scene, box, entry)(index);
    if (box.lane.kind === "steps") {
      ctx.fillStyle = this.inks.palette.step[entry.slice[index] % 2];
      ctx.fillRect(left, y, width, h);
      const title = scene.stepTitle(entry.slice[index]);
      this.label(this.fitting([title, title.replace(/ \(.*/, ""), title.replace(/,.*/, "")], width - 9), left, width, y, h, this.inks.palette.text, x < 0);
      return;
    }
    const idle = box.lane.kind === "idle";
    const ink: KindInk = idle ? this.inks.idle : this.inks.kinds[kind] ?? this.inks.kinds[8];
    ctx.fillStyle = dim ? ink.dimmed : ink.fill;
    ctx.fillRect(left, y, width - (w > 6 ? 1 : 0.5), h);
    const pattern = idle || kind === kindWait ? this.patterns.stripes : kind === kindCopy ? this.patterns.dots : kind === kindCommunication ? this.patterns.lines : null;
    if (pattern !== null && !dim) {
      ctx.fillStyle = pattern;
      ctx.fillRect(left, y, width - 1, h);
    }
    if (w > 6 && !dim) {
      ctx.fillStyle = ink.edge;
      ctx.fillRect(left, y, 1, h);
    }
    if (width < 22) return;
    const text = idle ? this.fitting([`idle: ${scene.causeTitle(kind)} · ${formatTime(entry.dur[index])}`, scene.causeTitle(kind), formatTime(entry.dur[index])], width - 9) : scene.nameOf(entry.name[index]);
    this.label(text, left, width, y, h, dim ? this.inks.palette.faint : ink.text, x < 0, pattern !== null && !dim ? ink.fill : null);
  }

  // What of a name fits. Words in brackets at the end go first, as in "GEMM 256x128x64 TNT (cuBLASLt nvjet, sm90)"; then the
  // middle, because names of one file or one module differ at their ends; nothing when only two letters would be left.
  private cut(text: string, room: number): string {
    const width = this.widthOf(text);
    if (width <= room) return text;
    const bracket = text.endsWith(")") ? text.lastIndexOf(" (") : -1;
    if (bracket > 3) return this.cut(text.slice(0, bracket), room);
    const headOnly = /^GEMM /.test(text);
    for (let letters = Math.floor((text.length * room) / width) - 1; letters >= 3; letters -= Math.ceil(letters / 12)) {
      const head = letters < 9 || headOnly ? letters : Math.ceil(letters * 0.68);
      const shown = `${text.slice(0, head)}…${text.slice(text.length - (letters - head))}`;
      if (this.widthOf(shown) <= room) return shown;
    }
    return "";
  }

  private fitting(texts: string[], room: number): string {
    return texts.find((text) => this.widthOf(text) <= room) ?? "";
  }

  private label(text: string, x: number, w: number, y: number, h: number, color: string, cutLeft: boolean, plate: string | null = null): void {
    const room = w - 9;
    if (room < 14 || h < 11 || text === "") return;
    const { ctx } = this;
    const shown = this.cut(text, room);
    if (shown === "") return;
    const at = x + (cutLeft ? 6 : 5);
    if (plate !== null) {
      ctx.fillStyle = plate;
      ctx.fillRect(at - 2, y + 1, this.widthOf(shown) + 4, h - 2);
    }
    ctx.fillStyle = color;
    ctx.fillText(shown, at, y + h / 2 + 0.5);
  }

  private counter(scene: Scene, box: LaneBox, entry: CounterEntry, frameT0: number): void {
    const { ctx } = this;
    const top = Math.max(box.lane.counter?.max ?? 0, 1e-9);
    const yOf = (value: number) => box.y + box.height - 1 - (Math.max(0, value) / top) * (box.height - 4);
    const end = this.x(scene, scene.traceSpan);
    ctx.fillStyle = this.inks.palette.counter;
    ctx.globalAlpha = scene.lit === null ? 0.55 : 0.2;
    ctx.beginPath();
    for (let index = 0; index < entry.count; index += 1) {
      const x0 = Math.max(-1, this.x(scene, frameT0 + entry.start[index]));
      const next = index + 1 < entry.count ? this.x(scene, frameT0 + entry.start[index + 1]) : end;
      const x1 = Math.min(scene.width + 1, next);
      if (x1 < x0 || x1 < 0 || x0 > scene.width) continue;
      const y = yOf(Math.max(entry.max[index], entry.last[index]));
      ctx.rect(x0, y, Math.max(1, x1 - x0), box.y + box.height - y);
    }
    ctx.fill();
    ctx.globalAlpha = 1;
  }

  private rectOf(scene: Scene, slice: { lane: number; row: number; start_ns: number; dur_ns: number }, least = 3): { x: number; y: number; w: number; h: number } | null {
    const box = scene.layout.boxes.find((each) => each.lane.lane === slice.lane);
    if (box === undefined || (slice.row >= box.rows && !box.folded)) return null;
    const row = Math.min(slice.row, box.rows - 1);
    const from = Math.max(-4, this.x(scene, slice.start_ns));
    const to = Math.min(scene.width + 4, this.x(scene, slice.start_ns + slice.dur_ns));
    if (to < -3 || from > scene.width + 3) return null;
    return { x: from, y: box.y + row * box.rowHeight, w: Math.max(least, to - from), h: box.rowHeight - 2 };
  }

  private litSlices(scene: Scene): void {
    const { ctx } = this;
    const slices = [...(scene.lit?.slices ?? []), ...(scene.lit === null ? [] : scene.chain)];
    for (const slice of slices) {
      const rect = this.rectOf(scene, slice);
      const entry = scene.frame?.entries.find((each) => each.lane === slice.lane && each.row === slice.row);
      if (rect === null) continue;
      const at = entry?.kind === "slices" ? entry.slice.indexOf(slice.slice) : -1;
      const ink = entry?.kind === "slices" && at >= 0 ? this.inks.kinds[entry.kinds[at]] : undefined;
      ctx.fillStyle = ink?.fill ?? this.inks.palette.accent;
      ctx.fillRect(rect.x, rect.y, rect.w, rect.h);
      ctx.strokeStyle = this.inks.palette.selection;
      ctx.lineWidth = 1;
      ctx.strokeRect(rect.x + 0.5, rect.y + 0.5, Math.max(1, rect.w - 1), rect.h - 1);
      if (entry?.kind === "slices" && at >= 0 && ink !== undefined) this.label(scene.nameOf(entry.name[at]), rect.x, rect.w, rect.y, rect.h, ink.text, false);
    }
  }

  private selection(scene: Scene): void {
    const { ctx } = this;
    const frame = (slice: LitSlice, width: number, color: string, least: number) => {
      const rect = this.rectOf(scene, slice, least);
      if (rect === null) return;
      ctx.lineWidth = width;
      ctx.strokeStyle = color;
      ctx.strokeRect(rect.x - width / 2, rect.y - width / 2, rect.w + width, rect.h + width);
    };
    for (const link of scene.chain) frame(link, 1.5, this.inks.palette.accent, 2);
    if (scene.hover !== null) frame(scene.hover, 1, this.inks.palette.text, 2);
    if (scene.selected === null) return;
    frame(scene.selected, 4, this.inks.palette.background, 3);
    frame(scene.selected, 2.5, this.inks.palette.selection, 3);
  }

  private arrows(scene: Scene): void {
    const { ctx } = this;
    const color = this.inks.palette.accent;
    scene.arrows.forEach((arrow, index) => {
      const from = scene.layout.boxes.find((box) => box.lane.lane === arrow.from_lane);
      const to = scene.layout.boxes.find((box) => box.lane.lane === arrow.to_lane);
      if (from === undefined || to === undefined) return;
      const middle = (box: LaneBox, row: number) => box.y + Math.min(row, box.rows - 1) * box.rowHeight + (box.rowHeight - 2) / 2;
      const [x0, y0, x1, y1] = [this.x(scene, arrow.from_end_ns ?? arrow.from_ns), middle(from, arrow.from_row), this.x(scene, arrow.to_ns), middle(to, arrow.to_row)];
      const reach = scene.width * 2;
      if (Math.max(x0, x1) < -reach || Math.min(x0, x1) > scene.width + reach) return;
      // From the edge of the one row to the edge of the other, so that the names stay readable.
      const down = y1 > y0 ? 1 : -1;
      const [ya, yb] = [y0 + down * (from.rowHeight / 2 - 1), y1 - down * (to.rowHeight / 2 - 1)];
      ctx.strokeStyle = color;
      ctx.globalAlpha = index === 0 ? 1 : 0.5;
      ctx.lineWidth = index === 0 ? 2 : 1;
      ctx.beginPath();
      ctx.moveTo(x0, ya);
      ctx.bezierCurveTo(x0, ya + (yb - ya) * 0.5, x1, yb - (yb - ya) * 0.5, x1, yb);
      ctx.stroke();
      ctx.fillStyle = color;
      ctx.beginPath();
      ctx.moveTo(x1, yb);
      ctx.lineTo(x1 - 4, yb - down * 8);
      ctx.lineTo(x1 + 4, yb - down * 8);
      ctx.fill();
      ctx.globalAlpha = 1;
      if (index === 0 && scene.queueNs !== null) this.delay(scene, scene.queueNs, [x0, ya], [x1, yb]);
    });
  }

  // How long the work waited: on the arrow, or at the end of it that is in view.
  private delay(scene: Scene, queueNs: number, from: [number, number], to: [number, number]): void {
    const inView = (x: number) => x >= 0 && x <= scene.width;
    const time = formatTime(Math.abs(queueNs));
    const y = (from[1] + to[1]) / 2;
    if (inView(from[0]) && inView(to[0])) this.pill(queueNs < 0 ? `starts ${time} before the call returns` : `${time} from call to start`, (from[0] + to[0]) / 2, y, scene.width);
    else if (inView(to[0])) this.pill(`called ${time} earlier`, to[0], y, scene.width);
    else if (inView(from[0])) this.pill(`starts ${time} later`, from[0], y, scene.width);
  }

  private pill(text: string, x: number, y: number, width: number): void {
    const { ctx } = this;
    const w = this.widthOf(text) + 14;
    const left = Math.min(width - w - 4, Math.max(4, x - w / 2));
    if (x < -200 || x > width + 200) return;
    ctx.fillStyle = this.inks.palette.accent;
    ctx.beginPath();
    ctx.roundRect(left, y - 9, w, 18, 9);
    ctx.fill();
    ctx.fillStyle = this.inks.palette.dark ? "#0c121a" : "#ffffff";
    ctx.fillText(text, left + 7, y + 0.5);
  }

  private overlays(scene: Scene): void {
    const { ctx } = this;
    const { palette } = this.inks;
    if (scene.area !== null) {
      const [x0, x1] = [this.x(scene, scene.area.t0), this.x(scene, scene.area.t1)];
      ctx.fillStyle = palette.accent;
      ctx.globalAlpha = 0.1;
      ctx.fillRect(x0, 0, x1 - x0, scene.height);
      ctx.globalAlpha = 1;
      ctx.fillRect(x0, 0, 1.5, scene.height);
      ctx.fillRect(x1 - 1.5, 0, 1.5, scene.height);
    }
    for (const mark of scene.marks) {
      ctx.strokeStyle = palette.accent;
      ctx.setLineDash(mark.kept ? [] : [4, 3]);
      ctx.lineWidth = 1.5;
      ctx.beginPath();
      ctx.moveTo(this.x(scene, mark.at), 0);
      ctx.lineTo(this.x(scene, mark.at), scene.height);
      ctx.stroke();
      ctx.setLineDash([]);
    }
    if (scene.measure !== null && scene.measure.to !== null) {
      const [x0, x1] = [this.x(scene, scene.measure.from), this.x(scene, scene.measure.to)];
      const y = scene.height - 16;
      ctx.fillStyle = palette.warn;
      ctx.fillRect(x0, 0, 1, scene.height);
      ctx.fillRect(x1, 0, 1, scene.height);
      ctx.fillRect(Math.min(x0, x1), y, Math.abs(x1 - x0), 2);
      const text = formatTime(Math.abs(scene.measure.to - scene.measure.from));
      const w = this.widthOf(text) + 12;
      const left = Math.min(scene.width - w, Math.max(0, (x0 + x1) / 2 - w / 2));
      ctx.fillStyle = palette.background;
      ctx.fillRect(left, y - 9, w, 18);
      ctx.strokeStyle = palette.warn;
      ctx.lineWidth = 1;
      ctx.strokeRect(left + 0.5, y - 8.5, w - 1, 17);
      ctx.fillStyle = palette.warn;
      ctx.fillText(text, left + 6, y + 0.5);
    }
  }
}

function stripes(ctx: CanvasRenderingContext2D, tile: HTMLCanvasElement, color: string): CanvasPattern | null {
  tile.width = tile.height = 8;
  const pen = tile.getContext("2d");
  if (pen === null) return null;
  pen.strokeStyle = color;
  pen.lineWidth = 1.6;
  pen.beginPath();
  for (const shift of [-8, 0, 8]) {
    pen.moveTo(shift, 8);
    pen.lineTo(shift + 8, 0);
  }
  pen.stroke();
  return ctx.createPattern(tile, "repeat");
}

function lines(ctx: CanvasRenderingContext2D, tile: HTMLCanvasElement, color: string): CanvasPattern | null {
  tile.width = tile.height = 5;
  const pen = tile.getContext("2d");
  if (pen === null) return null;
  pen.fillStyle = color;
  pen.fillRect(0, 0, 5, 1);
  return ctx.createPattern(tile, "repeat");
}

function dots(ctx: CanvasRenderingContext2D, tile: HTMLCanvasElement): CanvasPattern | null {
  tile.width = tile.height = 6;
  const pen = tile.getContext("2d");
  if (pen === null) return null;
  pen.fillStyle = "rgb(255 255 255 / .55)";
  for (const [x, y] of [[1, 1], [4, 4]]) pen.fillRect(x, y, 1.4, 1.4);
  return ctx.createPattern(tile, "repeat");
}
