// Runs the tests below a folder with node's own runner: node tools/run_tests.mjs FOLDER [--one-by-one] [name part].
// TypeScript is bundled first, because node 18 reads none.
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import * as esbuild from "esbuild";

const home = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const [folder, ...rest] = process.argv.slice(2);
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
const built = entries.map((entry) =>
  path.join(out, path.relative(path.join(home, folder), entry).replace(/\.tsx?$/, ".mjs")));
const flags = ["--test"];
if (rest.includes("--one-by-one")) flags.push("--test-concurrency=1");
if (Number(process.versions.node.split(".")[0]) < 19) flags.splice(1); // node 18 lacks --test-concurrency
const run = spawnSync(process.execPath, [...flags, ...built], { stdio: "inherit", cwd: home });
process.exit(run.status ?? 1);
