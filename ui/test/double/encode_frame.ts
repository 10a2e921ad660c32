// Writes a frame as the binary does, for the tests of its reader and for the double of the server.
import type { Frame } from "../../src/api/types.ts";

export function encodeFrame(frame: Frame): ArrayBuffer {
  const sizes = frame.entries.map((entry) => (entry.kind === "counter" ? entry.count * 16 : entry.count * 20 + 3 * ((entry.count + 3) & ~3)));
  let offset = 32 + 24 * frame.entries.length;
  const offsets = sizes.map((size) => {
    offset = (offset + 7) & ~7;
    const at = offset;
    offset += size;
    return at;
  });
  const buffer = new ArrayBuffer((offset + 7) & ~7);
  const view = new DataView(buffer);
  [0x4656534c, 1, frame.gen, frame.entries.length].forEach((value, at) => view.setUint32(at * 4, value, true));
  view.setFloat64(16, frame.t0, true);
  view.setFloat64(24, frame.step, true);
  frame.entries.forEach((entry, index) => {
    const kind = { slices: 0, counter: 2 }[entry.kind];
    [entry.lane, entry.row, kind, entry.count, offsets[index], 0].forEach((value, at) => view.setUint32(32 + 24 * index + 4 * at, value, true));
    const columns = entry.kind === "counter"
      ? [entry.start, entry.min, entry.max, entry.last]
      : [entry.start, entry.dur, entry.slice, entry.name, entry.folded];
    columns.forEach((column, at) => new Uint8Array(buffer, offsets[index] + at * entry.count * 4, entry.count * 4)
      .set(new Uint8Array(column.buffer, column.byteOffset, entry.count * 4)));
    if (entry.kind === "counter") return;
    const padded = (entry.count + 3) & ~3;
    [entry.coverage, entry.kinds, entry.flags].forEach((column, at) =>
      new Uint8Array(buffer, offsets[index] + 5 * entry.count * 4 + at * padded, entry.count).set(column));
  });
  return buffer;
}
