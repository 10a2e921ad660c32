// The binary answer to /api/frame: little-endian, columns that are used where they lie (docs/formats/view_api.md).
import type { Frame } from "./types.ts";

const magic = 0x4656534c; // "LSVF"
const headerBytes = 32;
const entryBytes = 24;

export function decodeFrame(buffer: ArrayBuffer, t1: number): Frame {
  const view = new DataView(buffer);
  if (buffer.byteLength < headerBytes || view.getUint32(0, true) !== magic || view.getUint32(4, true) !== 1) {
    throw new Error("The engine's answer is not a frame that this page can read. Reload the page.");
  }
  const frame: Frame = { gen: view.getUint32(8, true), t0: view.getFloat64(16, true), t1, step: view.getFloat64(24, true), entries: [] };
  const entries = view.getUint32(12, true);
  for (let index = 0; index < entries; index += 1) {
    const at = headerBytes + index * entryBytes;
    const [lane, row, kind, count, offset] = [0, 4, 8, 12, 16].map((field) => view.getUint32(at + field, true));
    const f32 = (column: number) => new Float32Array(buffer, offset + column * count * 4, count);
    const u32 = (column: number) => new Uint32Array(buffer, offset + column * count * 4, count);
    if (kind === 2) {
      frame.entries.push({ lane, row, kind: "counter", count, start: f32(0), min: f32(1), max: f32(2), last: f32(3) });
      continue;
    }
    const bytesAt = offset + 5 * count * 4;
    const padded = (count + 3) & ~3;
    const u8 = (column: number) => new Uint8Array(buffer, bytesAt + column * padded, count);
    frame.entries.push({
      lane, row, kind: "slices", count,
      start: f32(0), dur: f32(1), slice: u32(2), name: u32(3), folded: u32(4), coverage: u8(0), kinds: u8(1), flags: u8(2),
    });
  }
  return frame;
}
