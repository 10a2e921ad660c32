// Text inside of rectangles: what of a name fits.
export const font = "11px system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif";

export class Labels {
  private readonly knownWidths = new Map<string, number>();

  constructor(private readonly ctx: CanvasRenderingContext2D) {}

  widthOf(text: string): number {
    let width = this.knownWidths.get(text);
    if (width === undefined) {
      if (this.knownWidths.size > 20_000) this.knownWidths.clear();
      width = this.ctx.measureText(text).width;
      this.knownWidths.set(text, width);
    }
    return width;
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

  fitting(texts: string[], room: number): string {
    return texts.find((text) => this.widthOf(text) <= room) ?? "";
  }

  label(text: string, x: number, w: number, y: number, h: number, color: string, cutLeft: boolean, plate: string | null = null): void {
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
}
