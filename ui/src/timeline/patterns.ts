// Patterns that tell kinds of time apart without colour.
export interface Patterns { stripes: CanvasPattern | null; dots: CanvasPattern | null; lines: CanvasPattern | null }

export function makePatterns(ctx: CanvasRenderingContext2D, make: () => HTMLCanvasElement, dark: boolean): Patterns {
  const line = dark ? "rgb(255 255 255 / .3)" : "rgb(20 26 36 / .26)";
  return { stripes: stripes(ctx, make(), line), dots: dots(ctx, make()), lines: lines(ctx, make(), line) };
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
