// Rows of pixels that are made anew for each picture: written as numbers, put on a canvas of their own at once, drawn from there.
export class PixelRows {
  private readonly canvas: HTMLCanvasElement;
  private image: ImageData | null = null;
  private words = new Uint32Array();
  private rows = 0;

  constructor(make: () => HTMLCanvasElement) {
    this.canvas = make();
  }

  // Room for `rows` rows, all clear. A pixel is 0xAABBGGRR.
  begin(width: number, rows: number): Uint32Array {
    this.rows = rows;
    if (this.image === null || this.image.width !== width || this.image.height < rows) {
      this.image = new ImageData(width, Math.max(rows, 64));
      this.words = new Uint32Array(this.image.data.buffer);
      this.canvas.width = width;
      this.canvas.height = this.image.height;
    } else {
      this.words.fill(0, 0, width * rows);
    }
    return this.words;
  }

  put(): void {
    if (this.image !== null) this.canvas.getContext("2d")?.putImageData(this.image, 0, 0, 0, 0, this.image.width, this.rows);
  }

  // The rows from `row` on, stretched to a rectangle.
  draw(ctx: CanvasRenderingContext2D, row: number, rows: number, x: number, y: number, w: number, h: number): void {
    ctx.drawImage(this.canvas, 0, row, this.canvas.width, rows, x, y, w, h);
  }
}
