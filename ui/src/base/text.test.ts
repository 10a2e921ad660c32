import assert from "node:assert/strict";
import { test } from "node:test";
import { cleanLines, cleanText, fitText } from "./text.ts";

test("marks that turn the direction of text become visible", () => {
  assert.equal(cleanText("a\u202eb\u2066c\u200fd"), "a\ufffdb\ufffdc\ufffdd");
});

test("control characters and line breaks do not reach the page", () => {
  assert.equal(cleanText("a\nb\tc\u0000d\u001b[31m"), "a b c\ufffdd\ufffd[31m");
  assert.equal(cleanText("zero\u200bwidth\ufeff"), "zero\ufffdwidth\ufffd");
});

test("long names are cut, empty names say so", () => {
  assert.equal(cleanText("x".repeat(5000)).length, 400);
  assert.equal(cleanText("x".repeat(5000)).at(-1), "…");
  assert.equal(cleanText(""), "(no name)");
});

test("half of a surrogate pair becomes a mark, a whole one stays", () => {
  assert.equal(cleanText("\ud83d"), "\ufffd");
  assert.equal(cleanText("\u{1f600}"), "\u{1f600}");
});

test("markup stays text", () => {
  assert.equal(cleanText("<script>alert(1)</script>"), "<script>alert(1)</script>");
});

test("a stack keeps its lines", () => {
  assert.equal(cleanLines("a.py(1): f\n\nb.py(2): g\u202e"), "a.py(1): f\n\nb.py(2): g\ufffd");
});

test("what does not fit loses its middle", () => {
  assert.equal(fitText("short", 10), "short");
  assert.equal(fitText("abcdefghijklmnopqrstuvwxyz", 11).length, 11);
  assert.equal(fitText("abcdefghijklmnopqrstuvwxyz", 11), "abcdefg…xyz".slice(0, 11));
  assert.equal(fitText("abcdef", 3), "");
});
