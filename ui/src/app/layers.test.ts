import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";

const order = ["base", "api", "state", "timeline", "panels", "app"];
const src = path.resolve("src");

function sources(where: string): string[] {
  return fs.readdirSync(where, { withFileTypes: true }).flatMap((entry) => {
    const full = path.join(where, entry.name);
    return entry.isDirectory() ? sources(full) : /\.tsx?$/.test(full) && !/\.test\./.test(full) ? [full] : [];
  });
}

test("a folder imports only folders before it", () => {
  const files = sources(src);
  assert.ok(files.length > 20);
  for (const file of files) {
    const here = order.indexOf(path.relative(src, file).split(path.sep)[0]);
    for (const [, wanted] of fs.readFileSync(file, "utf8").matchAll(/from "(\.[^"]+)"/g)) {
      const there = order.indexOf(path.relative(src, path.resolve(path.dirname(file), wanted)).split(path.sep)[0]);
      assert.ok(there >= 0 && there <= here, `${path.relative(src, file)} imports ${wanted}`);
    }
  }
});

test("no source writes markup from text", () => {
  for (const file of sources(src)) {
    assert.doesNotMatch(fs.readFileSync(file, "utf8"), /innerHTML|outerHTML|insertAdjacentHTML|dangerouslySetInnerHTML|document\.write|\beval\(/, file);
  }
});
