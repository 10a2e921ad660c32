import assert from "node:assert/strict";
import { test } from "node:test";
import { actionOf, always, byCode, byKey, keyHelp, type KeyPress } from "./keys.ts";

const press = (change: Partial<KeyPress>): KeyPress => ({ key: "", code: "", ctrl: false, shift: false, alt: false, inText: false, singleKeys: true, ...change });

test("W A S D go by their place, whatever the layout types there", () => {
  assert.equal(actionOf(press({ key: "w", code: "KeyW" })), "zoom-in");
  assert.equal(actionOf(press({ key: "z", code: "KeyW" })), "zoom-in"); // French keyboard
  assert.equal(actionOf(press({ key: "q", code: "KeyA" })), "pan-left");
  assert.equal(actionOf(press({ key: "s", code: "KeyS" })), "zoom-out");
  assert.equal(actionOf(press({ key: "d", code: "KeyD" })), "pan-right");
});

test("symbols go by what is typed", () => {
  assert.equal(actionOf(press({ key: "/", code: "Digit7", shift: true })), "search"); // German keyboard
  assert.equal(actionOf(press({ key: "?", code: "Slash", shift: true })), "help");
  assert.equal(actionOf(press({ key: "[", code: "BracketLeft" })), "follow-back");
  assert.equal(actionOf(press({ key: ".", code: "Period" })), "next");
});

test("Ctrl F searches the trace, because a browser finds nothing in a canvas; pressed again it is the browser's", () => {
  assert.equal(actionOf(press({ key: "f", code: "KeyF", ctrl: true })), "search");
  assert.equal(actionOf(press({ key: "f", code: "KeyF", ctrl: true, inText: true })), null);
});

test("text fields keep their keys, Escape leaves them", () => {
  assert.equal(actionOf(press({ key: "w", code: "KeyW", inText: true })), null);
  assert.equal(actionOf(press({ key: "Backspace", inText: true })), null);
  assert.equal(actionOf(press({ key: "Escape", inText: true })), "clear");
});

test("the browser keeps its combinations", () => {
  assert.equal(actionOf(press({ key: "s", code: "KeyS", ctrl: true })), null);
  assert.equal(actionOf(press({ key: "w", code: "KeyW", ctrl: true })), null);
  assert.equal(actionOf(press({ key: "c", code: "KeyC", ctrl: true })), null);
  assert.equal(actionOf(press({ key: "d", code: "KeyD", alt: true })), null);
  assert.equal(actionOf(press({ key: "p", code: "KeyP", ctrl: true })), "lanes");
  assert.equal(actionOf(press({ key: "P", code: "KeyP", ctrl: true, shift: true })), "commands");
});

test("single letters can be turned off; arrows still do everything that moves", () => {
  assert.equal(actionOf(press({ key: "w", code: "KeyW", singleKeys: false })), null);
  assert.equal(actionOf(press({ key: "ArrowLeft", singleKeys: false })), "pan-left");
  assert.equal(actionOf(press({ key: "PageUp", singleKeys: false })), "zoom-in");
  assert.equal(actionOf(press({ key: "ArrowRight", shift: true, singleKeys: false })), "next-step");
});

test("every key that does something is in the help", () => {
  const known = new Set(keyHelp.flatMap((line) => line.keys));
  const signs: Record<string, string> = { ArrowLeft: "←", ArrowRight: "→", ArrowUp: "↑", ArrowDown: "↓", Escape: "Esc", "-": "−" };
  const all = [...Object.keys(byCode).map((code) => code.replace("Key", "")), ...Object.keys(byKey), ...Object.keys(always)];
  assert.deepEqual(all.filter((key) => !known.has(signs[key] ?? key)), []);
  // Those with Shift or Ctrl.
  const letter = (label: string) => Object.keys(signs).find((key) => signs[key] === label) ?? label;
  for (const label of known) {
    if (label === "Ctrl C") continue; // the browser's; the page only says what is copied
    const [key, ...modifiers] = label.split(" ").reverse();
    const event = press({ key: letter(key), code: /^[A-Z]$/.test(key) ? `Key${key}` : "", ctrl: modifiers.includes("Ctrl"), shift: modifiers.includes("Shift") });
    assert.notEqual(actionOf(event), null, label);
  }
});

test("the help names each key once", () => {
  const keys = keyHelp.flatMap((line) => line.keys);
  assert.equal(new Set(keys).size, keys.length);
  for (const wanted of ["W", "A", "S", "D", "F", "M", "R", ".", ",", "[", "]", "/", "?", "E", "Q", "0", "Esc", "Backspace", "Ctrl P"]) {
    assert.ok(keys.includes(wanted), wanted);
  }
});
