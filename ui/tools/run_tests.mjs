// Runs the tests below a folder with node's own runner:
//   node tools/run_tests.mjs FOLDER [--one-by-one] [--again] [--junit FILE] [part of a file's name]
// TypeScript is bundled first, because node 18 reads none. --again: a file in which a test failed is run once more, as ./check
// does with every test; what passes then is named as unsteady. Files that take longer than ten minutes hang, and fail.
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import * as esbuild from "esbuild";

const home = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const [folder, ...rest] = process.argv.slice(2);
const junitAt = rest.indexOf("--junit");
const junit = junitAt >= 0 ? path.resolve(rest.splice(junitAt, 2)[1]) : null;
const only = rest.find((word) => !word.startsWith("--")) ?? "";
const out = path.join(home, "build", folder.replaceAll("/", "_"));

function testsBelow(where) {
  return fs.readdirSync(where, { withFileTypes: true }).flatMap((entry) => {
    const full = path.join(where, entry.name);
    if (entry.isDirectory()) return testsBelow(full);
    return /\.test\.tsx?$/.test(entry.name) && entry.name.includes(only) ? [full] : [];
  });
}

const entries = testsBelow(path.join(home, folder));
if (entries.length === 0) throw new Error(`expected tests (*.test.ts) below ui/${folder}`);
fs.rmSync(out, { recursive: true, force: true });
await esbuild.build({
  entryPoints: entries,
  outdir: out,
  outbase: path.join(home, folder),
  outExtension: { ".js": ".mjs" },
  bundle: true,
  platform: "node",
  format: "esm",
  jsx: "automatic",
  jsxImportSource: "preact",
  packages: "external",
  logLevel: "error",
});
const built = entries.map((entry) => path.join(out, path.relative(path.join(home, folder), entry).replace(/\.tsx?$/, ".mjs")));

// One line a test in TAP: "ok 3 - name", "not ok 4 - name", "ok 5 - name # SKIP reason".
function run(files) {
  const outcome = spawnSync(process.execPath, ["--test", "--test-reporter=tap", ...files], { cwd: home, encoding: "utf8", maxBuffer: 1 << 28, timeout: 600_000, killSignal: "SIGKILL" });
  process.stdout.write(outcome.stdout);
  process.stderr.write(outcome.stderr);
  const late = outcome.error?.code === "ETIMEDOUT";
  if (late) console.log(`not ok - took longer than ten minutes: ${files.join(" ")}`);
  const tests = [];
  for (const line of outcome.stdout.split("\n")) {
    const found = /^\s*(not ok|ok) \d+ - (.*?)(?: # SKIP ?(.*))?$/.exec(line);
    if (found !== null && !found[2].endsWith(".mjs")) tests.push({ name: found[2], good: found[1] === "ok", skipped: found[3] });
  }
  if (late) tests.push({ name: `${files.map((file) => path.basename(file)).join(" ")} ends`, good: false });
  return { tests, good: outcome.status === 0 && tests.length > 0, late };
}

// One file after the other when they share the machine's browser; node 18 has no flag for that.
const groups = rest.includes("--one-by-one") ? built.map((file) => [file]) : [built];
const tests = [];
let good = true;
for (const group of groups) {
  let result = run(group);
  if (!result.good && !result.late && rest.includes("--again")) {
    for (const test of result.tests.filter((each) => !each.good)) console.log(`RERUN ${test.name}`);
    result = run(group);
  }
  tests.push(...result.tests);
  good &&= result.good;
}

const escape = (text) => text.replace(/[&<>"]/g, (letter) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[letter]);
if (junit !== null) {
  const cases = tests.map((test) => {
    const inside = test.skipped !== undefined ? `<skipped message="${escape(test.skipped)}"/>` : test.good ? "" : "<failure/>";
    return `<testcase classname="${escape(folder)}" name="${escape(test.name)}">${inside}</testcase>`;
  });
  fs.writeFileSync(junit, `<testsuite name="page">\n${cases.join("\n")}\n</testsuite>\n`);
}
const count = (keep) => tests.filter(keep).length;
console.log(`${count((each) => each.good && each.skipped === undefined)} passed, ${count((each) => !each.good)} failed, ${count((each) => each.skipped !== undefined)} skipped`);
process.exit(good ? 0 : 1);
