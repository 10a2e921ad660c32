// What lies on the lanes: evidence, selection, arrows, area, marks, measure.
import { formatTime } from "../base/format.ts";
import type { LitSlice } from "../state/store.ts";
import type { LaneBox } from "./layout.ts";
import { xOf, type Pen, type Scene } from "./picture.ts";

function rectOf(scene: Scene, slice: { lane: number; row: number; start_ns: number; dur_ns: number }, least = 3): { x: number; y: number; w: number; h: number } | null {
  const box = scene.layout.boxes.find((each) => each.lane.lane === slice.lane);
  if (box === undefined || (slice.row >= box.rows && !box.folded)) return null;
  const row = Math.min(slice.row, box.rows - 1);
  const from = Math.max(-4, xOf(scene, slice.start_ns));
  const to = Math.min(scene.width + 4, xOf(scene, slice.start_ns + slice.dur_ns));
  if (to < -3 || from > scene.width + 3) return null;
  return { x: from, y: box.y + row * box.rowHeight, w: Math.max(least, to - from), h: box.rowHeight - 2 };
}

export function drawLitSlices(pen: Pen, scene: Scene): void {
  const { ctx } = pen;
  const slices = [...(scene.lit?.slices ?? []), ...(scene.lit === null ? [] : scene.chain)];
  for (const slice of slices) {
    const rect = rectOf(scene, slice);
    const entry = scene.frame?.entries.find((each) => each.lane === slice.lane && each.row === slice.row);
    if (rect === null) continue;
    const at = entry?.kind === "slices" ? entry.slice.indexOf(slice.slice) : -1;
    const ink = entry?.kind === "slices" && at >= 0 ? pen.inks.kinds[entry.kinds[at]] : undefined;
    ctx.fillStyle = ink?.fill ?? pen.inks.palette.accent;
    ctx.fillRect(rect.x, rect.y, rect.w, rect.h);
    ctx.strokeStyle = pen.inks.palette.selection;
    ctx.lineWidth = 1;
    ctx.strokeRect(rect.x + 0.5, rect.y + 0.5, Math.max(1, rect.w - 1), rect.h - 1);
    if (entry?.kind === "slices" && at >= 0 && ink !== undefined) pen.labels.label(scene.nameOf(entry.name[at]), rect.x, rect.w, rect.y, rect.h, ink.text, false);
  }
}

export function drawSelection(pen: Pen, scene: Scene): void {
  const { ctx } = pen;
  const frame = (slice: LitSlice, width: number, color: string, least: number) => {
    const rect = rectOf(scene, slice, least);
    if (rect === null) return;
    ctx.lineWidth = width;
    ctx.strokeStyle = color;
    ctx.strokeRect(rect.x - width / 2, rect.y - width / 2, rect.w + width, rect.h + width);
  };
  for (const link of scene.chain) frame(link, 1.5, pen.inks.palette.accent, 2);
  if (scene.hover !== null) frame(scene.hover, 1, pen.inks.palette.text, 2);
  if (scene.selected === null) return;
  frame(scene.selected, 4, pen.inks.palette.background, 3);
  frame(scene.selected, 2.5, pen.inks.palette.selection, 3);
}

export function drawArrows(pen: Pen, scene: Scene): void {
  const { ctx } = pen;
  const color = pen.inks.palette.accent;
  scene.arrows.forEach((arrow, index) => {
    const from = scene.layout.boxes.find((box) => box.lane.lane === arrow.from_lane);
    const to = scene.layout.boxes.find((box) => box.lane.lane === arrow.to_lane);
    if (from === undefined || to === undefined) return;
    const middle = (box: LaneBox, row: number) => box.y + Math.min(row, box.rows - 1) * box.rowHeight + (box.rowHeight - 2) / 2;
    const [x0, y0, x1, y1] = [xOf(scene, arrow.from_end_ns ?? arrow.from_ns), middle(from, arrow.from_row), xOf(scene, arrow.to_ns), middle(to, arrow.to_row)];
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
    if (index === 0 && scene.queueNs !== null) delay(pen, scene, scene.queueNs, [x0, ya], [x1, yb]);
  });
}

// How long the work waited: on the arrow, or at the end of it that is in view.
function delay(pen: Pen, scene: Scene, queueNs: number, from: [number, number], to: [number, number]): void {
  const inView = (x: number) => x >= 0 && x <= scene.width;
  const time = formatTime(Math.abs(queueNs));
  const y = (from[1] + to[1]) / 2;
  if (inView(from[0]) && inView(to[0])) pill(pen, queueNs < 0 ? `starts ${time} before the call returns` : `${time} from call to start`, (from[0] + to[0]) / 2, y, scene.width);
  else if (inView(to[0])) pill(pen, `called ${time} earlier`, to[0], y, scene.width);
  else if (inView(from[0])) pill(pen, `starts ${time} later`, from[0], y, scene.width);
}

function pill(pen: Pen, text: string, x: number, y: number, width: number): void {
  const { ctx } = pen;
  const w = pen.labels.widthOf(text) + 14;
  const left = Math.min(width - w - 4, Math.max(4, x - w / 2));
  if (x < -200 || x > width + 200) return;
  ctx.fillStyle = pen.inks.palette.accent;
  ctx.beginPath();
  ctx.roundRect(left, y - 9, w, 18, 9);
  ctx.fill();
  ctx.fillStyle = pen.inks.palette.dark ? "#0c121a" : "#ffffff";
  ctx.fillText(text, left + 7, y + 0.5);
}

export function drawOverlays(pen: Pen, scene: Scene): void {
  const { ctx } = pen;
  const { palette } = pen.inks;
  if (scene.area !== null) {
    const [x0, x1] = [xOf(scene, scene.area.t0), xOf(scene, scene.area.t1)];
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
    ctx.moveTo(xOf(scene, mark.at), 0);
    ctx.lineTo(xOf(scene, mark.at), scene.height);
    ctx.stroke();
    ctx.setLineDash([]);
  }
  if (scene.measure !== null && scene.measure.to !== null) {
    const [x0, x1] = [xOf(scene, scene.measure.from), xOf(scene, scene.measure.to)];
    const y = scene.height - 16;
    ctx.fillStyle = palette.warn;
    ctx.fillRect(x0, 0, 1, scene.height);
    ctx.fillRect(x1, 0, 1, scene.height);
    ctx.fillRect(Math.min(x0, x1), y, Math.abs(x1 - x0), 2);
    const text = formatTime(Math.abs(scene.measure.to - scene.measure.from));
    const w = pen.labels.widthOf(text) + 12;
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
