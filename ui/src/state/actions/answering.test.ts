import assert from "node:assert/strict";
import { test } from "node:test";
import { kindOfPart } from "./answering.ts";

const part = (label: string, ns: number) => ({ label, ns, share: 0.1 });

test("parts of a wall have the kind of time that their words say", () => {
  assert.deepEqual(["idle: waiting for the CPU", "communication, no compute", "copies, no compute", "GPU compute", "outside of operators"].map((label) => kindOfPart(part(label, 1))),
    ["idle", "communication", "copy", "compute", "other"]);
});
