import assert from "node:assert/strict";
import fs from "node:fs";
import { test } from "node:test";
import { contrast, luminance, paletteFor, rgb, textOn, type Rgb } from "./palette.ts";

// Colours as people without one kind of cone see them (Viénot, Brettel, Mollon 1999), on linear light.
function seen(color: Rgb, by: "protan" | "deutan"): Rgb {
  const linear = color.map((part) => (part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4));
  const [r, g, b] = linear;
  const rows = by === "protan" ? [[0.11238, 0.88762, 0], [0.11238, 0.88762, 0], [0.00401, -0.00401, 1]] : [[0.29275, 0.70725, 0], [0.29275, 0.70725, 0], [-0.02234, 0.02234, 1]];
  return rows.map((row) => {
    const value = Math.min(1, Math.max(0, row[0] * r + row[1] * g + row[2] * b));
    return 255 * (value <= 0.0031308 ? value * 12.92 : 1.055 * value ** (1 / 2.4) - 0.055);
  }) as unknown as Rgb;
}
const distance = (a: Rgb, b: Rgb) => Math.hypot(...a.map((part, index) => part - b[index]));

for (const dark of [false, true]) {
  const palette = paletteFor(dark);
  const theme = dark ? "dark" : "light";

  test(`${theme}: text on every kind can be read`, () => {
    for (const kind of [...palette.kinds]) assert.ok(contrast(rgb(kind), rgb(textOn(rgb(kind)))) >= 4.5, kind);
    assert.ok(contrast(rgb(palette.idle), rgb(palette.idleText)) >= 4.5);
    for (const text of [palette.text, palette.faint]) for (const back of [palette.background, palette.band]) assert.ok(contrast(rgb(text), rgb(back)) >= 4.5);
  });

  test(`${theme}: kinds that lie side by side differ for everybody`, () => {
    // On a CPU lane: operator, annotation, python, call, wait. On a GPU lane: compute, communication, copy, wait.
    for (const lane of [[0, 1, 2, 3], [4, 5, 6]]) {
      for (const a of lane) {
        for (const b of lane.filter((other) => other > a)) {
          const [one, two] = [rgb(palette.kinds[a]), rgb(palette.kinds[b])];
          for (const eye of ["protan", "deutan"] as const) {
            const apart = distance(seen(one, eye), seen(two, eye)) > 40 || Math.abs(luminance(one) - luminance(two)) > 0.1;
            assert.ok(apart, `kinds ${a} and ${b} for ${eye}`);
          }
        }
      }
    }
  });
}

test("the style sheet and the canvas have the same colours", () => {
  const css = fs.readFileSync("src/app/page.css", "utf8");
  const [light, dark] = css.split("@media (prefers-color-scheme: dark)");
  const valueIn = (text: string, name: string) => new RegExp(`${name}: (#[0-9a-f]{6})`).exec(text)?.[1];
  for (const [text, palette] of [[light, paletteFor(false)], [dark, paletteFor(true)]] as const) {
    palette.kinds.forEach((kind, index) => assert.equal(valueIn(text, `--kind-${index}`), kind));
    palette.kinds.forEach((kind, index) => assert.equal(valueIn(text, `--on-${index}`), textOn(rgb(kind)), `text on kind ${index}`));
    assert.equal(valueIn(text, "--idle"), palette.idle);
    assert.equal(valueIn(text, "--bg"), palette.background);
    assert.equal(valueIn(text, "--accent"), palette.accent);
    assert.equal(valueIn(text, "--panel"), palette.band);
    assert.equal(valueIn(text, "--line"), palette.line);
    assert.equal(valueIn(text, "--faint"), palette.faint);
  }
});
