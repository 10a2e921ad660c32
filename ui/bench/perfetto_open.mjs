// How long Perfetto's own page takes to open a trace: from choosing the file until its tracks are drawn and nothing is left to do.
//   node bench/perfetto_open.mjs FOLDER ROUNDS TRACE...
//   FOLDER: Perfetto's page (index.html and a folder of its version). bench/perfetto_ui.py gets one and makes the traces.
// Headless Chromium, a new profile for each opening, traces alternating. Printed as JSON: for each trace milliseconds by the clock and of
// CPU time of all of the browser's processes, CPU time of workers alone (`engine_cpu_ms`), the most
// memory that the browser held, and how many slices, arrows and samples have arrived. CPU time hardly depends on what else runs.
import fs from "node:fs";
import http from "node:http";
import path from "node:path";
import { chromium } from "playwright-core";
import { cpuTimes, memoryMiB } from "./cpu_times.mjs";

const [folder, rounds, ...traces] = process.argv.slice(2);
if (traces.length === 0) throw new Error("usage: node bench/perfetto_open.mjs FOLDER ROUNDS TRACE...");
const kinds = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".wasm": "application/wasm", ".json": "application/json", ".woff2": "font/woff2" };
const server = http.createServer((question, answer) => {
  const name = path.normalize(new URL(question.url, "http://127.0.0.1").pathname);
  fs.readFile(path.join(folder, name === "/" ? "index.html" : name), (problem, bytes) => {
    answer.writeHead(problem ? 404 : 200, { "content-type": kinds[path.extname(name)] ?? (name === "/" ? "text/html" : "application/octet-stream") });
    answer.end(bytes);
  });
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));

const kQuietMs = 300;
// Its tracks are there, and for that long its engine has had nothing to do.
const isOpen = (quietMs) => {
  const busy = document.querySelector(".pf-track") === null || document.querySelector(".pf-ui-main__loading.pf-linear-progress--anim") !== null ||
    !(document.querySelector(".pf-omnibox input, input.omnibox, .omnibox input")?.placeholder ?? "").startsWith("Search");
  if (busy) window.quietSince = undefined;
  else window.quietSince ??= performance.now();
  return !busy && performance.now() - window.quietSince >= quietMs;
};
const count = async (page, sql) => Number(await page.evaluate(async (text) => String((await window.app.trace.engine.query(text)).firstRow({ n: 0n }).n), sql));

async function openOnce(trace) {
  const browser = await chromium.launch({ executablePath: process.env.LANESCOPE_CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
  try {
    const page = await browser.newPage({ viewport: { width: 1600, height: 1000 } });
    page.setDefaultTimeout(900_000);
    await page.goto(`http://127.0.0.1:${server.address().port}/`);
    await page.waitForSelector("input.trace_file", { state: "attached" });
    await page.waitForTimeout(2000); // the engine is compiled
    let peak_mib = 0;
    const sampling = setInterval(() => { peak_mib = Math.max(peak_mib, memoryMiB()); }, 200);
    const cpuBefore = cpuTimes(), before = performance.now();
    const cpuSince = (isMeant) => [...cpuTimes()].reduce((sum, [name, ms]) => sum + (isMeant(name) ? Math.max(0, ms - (cpuBefore.get(name) ?? 0)) : 0), 0);
    await page.setInputFiles("input.trace_file", trace);
    await page.waitForFunction(isOpen, kQuietMs, { polling: 50 });
    const wall_ms = performance.now() - before - kQuietMs;
    const cpu_ms = cpuSince((name) => name !== "server"), engine_cpu_ms = cpuSince((name) => /renderer, Dedicated/.test(name));
    clearInterval(sampling);
    const found = {};
    for (const table of ["slice", "flow", "counter", "args"]) found[table] = await count(page, `select count(*) as n from ${table}`);
    found.errors = await count(page, "select coalesce(sum(value), 0) as n from stats where severity in ('error', 'data_loss')");
    return { wall_ms, cpu_ms, engine_cpu_ms, peak_mib, ...found };
  } finally {
    await browser.close();
  }
}

const runs = new Map(traces.map((trace) => [trace, []]));
for (let round = 0; round < Number(rounds); round += 1)
  for (const trace of traces) runs.get(trace).push(await openOnce(trace));
console.log(JSON.stringify(Object.fromEntries(runs)));
server.close();
