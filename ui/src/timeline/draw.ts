// Draws the lanes: a picture is a function of what is in Scene and nothing else.
import { drawGrid, drawLanes } from "./draw_lanes.ts";
import { drawArrows, drawLitSlices, drawOverlays, drawSelection } from "./draw_marks.ts";
import { font, Labels } from "./labels.ts";
import { visibleBoxes } from "./layout.ts";
import type { Inks } from "./palette.ts";
import { makePatterns } from "./patterns.ts";
import type { Pen, Scene } from "./picture.ts";
import { PixelRows } from "./pixel_rows.ts";
import { makeStrip } from "./strips.ts";

export class Painter {
  private readonly pen: Pen;

  constructor(ctx: CanvasRenderingContext2D, inks: Inks, make: () => HTMLCanvasElement) {
    this.pen = { ctx, inks, strip: makeStrip(1), pixels: new PixelRows(make), labels: new Labels(ctx), patterns: makePatterns(ctx, make, inks.palette.dark) };
  }

  paint(scene: Scene): void {
    const { pen } = this;
    const { ctx } = pen;
    const { palette } = pen.inks;
    ctx.setTransform(scene.ratio, 0, 0, scene.ratio, 0, 0);
    ctx.font = font;
    ctx.textBaseline = "middle";
    ctx.fillStyle = palette.background;
    ctx.fillRect(0, 0, scene.width, scene.height);
    const boxes = visibleBoxes(scene.layout, scene.scrollTop, scene.height);
    drawGrid(pen, scene, boxes);
    ctx.save();
    ctx.translate(0, -scene.scrollTop);
    if (scene.frame !== null) drawLanes(pen, scene, boxes, scene.frame);
    drawLitSlices(pen, scene);
    drawSelection(pen, scene);
    drawArrows(pen, scene);
    ctx.restore();
    drawOverlays(pen, scene);
  }
}
