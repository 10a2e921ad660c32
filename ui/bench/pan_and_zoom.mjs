// How long a frame of the page takes while it pans and zooms by script, and how much memory the page holds.
//   node bench/pan_and_zoom.mjs URL|TRACE [frames] [--before-verdict] [--near] [--unlimited] [--profile]
//   URL: as `lanescope view` prints it. A trace is opened by LANESCOPE_BINARY, else by the release build. It begins when the verdict is
//   there, or with --before-verdict while the rules still run. --near: at a zoom at which events have names. --unlimited: frames follow each other without a display's rate, so their
//   distance is what a frame takes in all. --profile: also which functions of the page cost most of a frame's work.
// Headless Chromium without a GPU. Printed of a frame: the work of the page's own callbacks in one animation frame; the distance to the next
// frame, which includes the browser's own drawing and whatever else ran on the cores; and the CPU time of all of the browser's threads, which
// is steady on a busy machine. Frames in which nothing moved, because the end of the trace was reached, have no distance: the
// browser then waits for the display's next turn.
import { spawn } from "node:child_process";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { cpuPerFrame, cpuTimes } from "./cpu_times.mjs";

const [given, frames = "400"] = process.argv.slice(2).filter((word) => !word.startsWith("--"));
if (given === undefined) throw new Error("usage: node bench/pan_and_zoom.mjs URL|TRACE [frames] [--before-verdict] [--near] [--unlimited] [--profile]");
const unlimited = process.argv.includes("--unlimited") ? ["--disable-frame-rate-limit", "--disable-gpu-vsync"] : [];
const home = path.dirname(path.dirname(path.dirname(fileURLToPath(import.meta.url))));
const server = given.startsWith("http://") ? null : spawn(process.env.LANESCOPE_BINARY ?? path.join(home, "build/release/src/lanescope/cli/lanescope"), ["view", given, "--no-open", "--keep"], { stdio: ["ignore", "pipe", "inherit"] });
const url = server === null ? given : await new Promise((resolve, reject) => {
  server.stdout.once("data", (data) => resolve(String(data).trim()));
  server.once("exit", (code) => reject(new Error(`lanescope view ended with ${code}`)));
});
const browser = await chromium.launch({ executablePath: process.env.LANESCOPE_CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--enable-precise-memory-info", ...unlimited] });
const page = await browser.newPage({ viewport: { width: 1920, height: 1000 } });
await page.addInitScript(() => {
  // Times every callback of an animation frame.
  const own = window.requestAnimationFrame.bind(window);
  window.frameWork = [];
  let at = -1;
  window.requestAnimationFrame = (callback) => own((now) => {
    const begin = performance.now();
    callback(now);
    const took = performance.now() - begin;
    if (now === at) window.frameWork[window.frameWork.length - 1] += took;
    else window.frameWork.push(took);
    at = now;
  });
  // A picture of the lanes begins with it.
  const set = CanvasRenderingContext2D.prototype.setTransform;
  window.pictures = 0;
  CanvasRenderingContext2D.prototype.setTransform = function (...all) {
    window.pictures += 1;
    return set.apply(this, all);
  };
});
const begin = Date.now();
await page.goto(url);
await page.waitForSelector(".lane-label", { timeout: 300_000 });
const firstLanes = Date.now() - begin;
// The verdict on millions of events takes longer than a wait without a word.
const before = process.argv.includes("--before-verdict");
if (!before) await page.waitForFunction(() => document.querySelector(".headline:not(.faint)") !== null, undefined, { timeout: 300_000 });
const verdict = Date.now() - begin;
await page.locator(".lanes-scroll").first().focus();
await page.keyboard.press("0");
if (process.argv.includes("--near")) {
  for (let times = 0; times < 60; times += 1) {
    await page.keyboard.press("w");
    await page.waitForTimeout(20);
  }
}
await page.waitForTimeout(1000);

const profiler = process.argv.includes("--profile") ? await page.context().newCDPSession(page) : null;
if (profiler !== null) {
  await profiler.send("Profiler.enable");
  await profiler.send("Profiler.setSamplingInterval", { interval: 200 });
  await profiler.send("Profiler.start");
}
const cpuBefore = cpuTimes();
const distances = await page.evaluate(async (count) => {
  window.frameWork.length = 0;
  const target = document.querySelector(".lanes-scroll");
  const press = (code) => target.dispatchEvent(new KeyboardEvent("keydown", { code, key: code.slice(3).toLowerCase(), bubbles: true }));
  const times = [];
  // In, along, out, along: as a reader moves.
  const path = ["KeyW", "KeyD", "KeyS", "KeyA"];
  await new Promise((done) => {
    let frame = 0;
    let last = performance.now();
    let pictures = window.pictures;
    const step = () => {
      const now = performance.now();
      if (window.pictures !== pictures) times.push(now - last);
      pictures = window.pictures;
      last = now;
      if (frame % 4 === 0) press(path[Math.floor(frame / 40) % path.length]);
      frame += 1;
      if (frame < count) requestAnimationFrame(step);
      else done();
    };
    requestAnimationFrame(step);
  });
  return times.slice(1);
}, Number(frames));
const cpu = cpuPerFrame(cpuBefore, cpuTimes(), Number(frames));
const work = await page.evaluate(() => window.frameWork);
const heap = await page.evaluate(() => performance.memory.usedJSHeapSize);
const percentile = (values, share) => [...values].sort((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * share))].toFixed(1);
console.log(`first lanes after ${firstLanes} ms${before ? "" : `, verdict after ${verdict} ms`}; JS heap ${(heap / 1048576).toFixed(0)} MiB; ${work.length} frames of 1920x1000`);
console.log(`work of the page in a frame: median ${percentile(work, 0.5)} ms, p95 ${percentile(work, 0.95)} ms, longest ${percentile(work, 1)} ms`);
console.log(`from frame to frame:         median ${percentile(distances, 0.5)} ms, p95 ${percentile(distances, 0.95)} ms, longest ${percentile(distances, 1)} ms`);
console.log(`CPU time of a frame: browser ${cpu.browser.toFixed(1)} ms, server ${cpu.server.toFixed(1)} ms; ${cpu.parts.filter(([, ms]) => ms >= 0.1).slice(0, 5).map(([name, ms]) => `${name} ${ms.toFixed(1)}`).join("; ")}`);
if (profiler !== null) await printProfile(work.length);
await browser.close();
server?.removeAllListeners("exit");
server?.kill("SIGINT");

// Time in each function itself, without what it calls, for each frame.
async function printProfile(frames) {
  const { profile } = await profiler.send("Profiler.stop");
  const own = new Map();
  profile.samples.forEach((id, at) => own.set(id, (own.get(id) ?? 0) + profile.timeDeltas[at]));
  const times = new Map();
  for (const node of profile.nodes) {
    const { functionName, url, lineNumber, columnNumber } = node.callFrame;
    const name = `${functionName || "(no name)"}${url === "" ? "" : ` ${path.basename(url)}:${lineNumber + 1}:${columnNumber + 1}`}`;
    times.set(name, (times.get(name) ?? 0) + (own.get(node.id) ?? 0));
  }
  console.log("own time of functions, us a frame:");
  for (const [name, us] of [...times].sort((a, b) => b[1] - a[1]).slice(0, 20)) console.log(`${(us / frames).toFixed(0).padStart(8)}  ${name}`);
}
