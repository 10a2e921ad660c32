// What a picture of the lanes is made of, and what draws it.
import type { Arrow, Frame } from "../api/types.ts";
import type { Lit, LitSlice, Mark, Measure } from "../state/store.ts";
import type { TimeWindow } from "../state/window.ts";
import type { Labels } from "./labels.ts";
import type { Layout } from "./layout.ts";
import type { Inks } from "./palette.ts";
import type { Patterns } from "./patterns.ts";
import type { PixelRows } from "./pixel_rows.ts";
import type { Strip } from "./strips.ts";

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

export interface Pen {
  ctx: CanvasRenderingContext2D;
  inks: Inks;
  patterns: Patterns;
  labels: Labels;
  strip: Strip; // of the row that is being drawn
  pixels: PixelRows;
}

export function xOf(scene: Scene, ns: number): number {
  return ((ns - scene.window.t0) / (scene.window.t1 - scene.window.t0)) * scene.width;
}
