import assert from "node:assert/strict";
import { test } from "node:test";
import { headlinePieces, kindOfPart } from "./answering.ts";

const part = (label: string, ns: number) => ({ label, ns, share: 0.1 });

test("a time in the headline stands for the part of the wall that has it, and the whole for the step", () => {
  const wall = [part("idle: waiting for the CPU", 76_004), part("GPU compute", 2_816), part("copies, no compute", 50), part("everything else", 50)];
  const pieces = headlinePieces("CPU-bound: of the 78.9 µs a step takes, the GPU works 2.82 µs and waits for the CPU 76.0 µs (96 %), 50 ns of it for 12.82 µs.", wall, 78_870);
  assert.deepEqual(pieces.filter((piece) => piece.part !== undefined || piece.isWhole).map((piece) => [piece.text, piece.part?.label ?? "whole"]), [
    ["78.9 µs", "whole"], ["2.82 µs", "GPU compute"], ["76.0 µs", "idle: waiting for the CPU"],
  ]); // two parts have 50 ns, none has 12.82 µs
  assert.equal(pieces.map((piece) => piece.text).join(""), "CPU-bound: of the 78.9 µs a step takes, the GPU works 2.82 µs and waits for the CPU 76.0 µs (96 %), 50 ns of it for 12.82 µs.");
  assert.deepEqual(headlinePieces("", [], undefined), [{ text: "" }]);
  const linked = (text: string, ns: number) => headlinePieces(text, [part("GPU compute", 156_000_000), part("idle: waiting for the CPU", ns)], ns).filter((piece) => piece.part !== undefined || piece.isWhole).length;
  assert.equal(linked("the GPU was busy >99 % of 156 ms, 1 % of it waiting", 7), 0); // a part of the recording, and not its compute time
  assert.equal(linked("of the 13.4 ms a step takes, the GPU waits for the CPU 13.4 ms", 13_400_000), 1);
});

test("parts of a wall have the kind of time that their words say", () => {
  assert.deepEqual(["idle: waiting for the CPU", "communication, no compute", "copies, no compute", "GPU compute", "outside of operators"].map((label) => kindOfPart(part(label, 1))),
    ["idle", "communication", "copy", "compute", "other"]);
});
