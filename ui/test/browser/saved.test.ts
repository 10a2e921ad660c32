// A page saved as one file, made here from drawn and real data after docs/formats/view_api.md: it opens from disk, without a server.
import assert from "node:assert/strict";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { after, before } from "node:test";
import zlib from "node:zlib";
import type { Browser } from "playwright-core";
import type { SavedData } from "../../src/api/saved_data.ts";
import { readChromeTrace, savedFromEvents } from "../double/draw_trace.ts";
import { open, press, settle, startBrowser, test, traceOf } from "./harness.ts";

let browser: Browser;
before(async () => { browser = await startBrowser(); });
after(async () => { await browser?.close(); });

function writePage(data: SavedData): string {
  const dist = path.resolve("dist");
  let html = fs.readFileSync(path.join(dist, "index.html"), "utf8");
  const packed = zlib.gzipSync(JSON.stringify(data), { level: 9 }).toString("base64");
  html = html
    .replace(/<link rel="stylesheet" href="\.\/(assets\/[^"]+)">/, (_, file: string) => `<style>${fs.readFileSync(path.join(dist, file), "utf8")}</style>`)
    .replace(/<script type="module" src="\.\/(assets\/[^"]+)"><\/script>/, (_, file: string) =>
      `<script type="text/plain" id="lanescope-saved">${packed}</script><script type="module">${fs.readFileSync(path.join(dist, file), "utf8")}</script>`);
  const file = path.join(fs.mkdtempSync(path.join(os.tmpdir(), "lanescope-")), "saved.html");
  fs.writeFileSync(file, html);
  return file;
}

test("a saved page opens from disk: verdict, lanes, launch to kernel, search, area, tables", async () => {
  const file = writePage(savedFromEvents(readChromeTrace(traceOf.training).traceEvents, "mlp_train"));
  const { page, problems } = await open(browser, `file://${file}`);
  assert.match(await page.textContent("h1") ?? "", /The GPU worked/);
  await page.fill("#search", "cudaLaunchKernel");
  await settle(page);
  await page.press("#search", "Enter");
  await settle(page);
  await page.locator(".lanes-scroll").first().focus();
  await press(page, "]");
  assert.match(await page.textContent(".chain li.current .role") ?? "", /GPU/);
  await press(page, "r");
  assert.ok((await page.locator(".area-list li").count()) > 0);
  for (const tab of await page.locator(".drawer [role=tab]").all()) {
    await tab.click();
    await settle(page);
    assert.ok((await page.textContent(".drawer-panel"))!.length > 5);
  }
  assert.equal(await page.locator("text=Share").count(), 0); // it is already one file
  assert.deepEqual(problems, []);
  await page.context().close();
});

test("100,000 slices of a real program fit into 2 MB", async () => {
  const events = readChromeTrace(traceOf.prefill).traceEvents;
  const whole = events.filter((event) => event.ph === "X" && event.cat !== "Trace");
  const starts = whole.map((event) => event.ts);
  const span = Math.max(...starts) - Math.min(...starts) + 1000;
  const copies = Math.ceil(100_000 / whole.length);
  const many = Array.from({ length: copies }, (_, copy) => whole.map((event) => ({
    // Not the same times again: a packer would find the repetition.
    ...event, ts: event.ts + copy * span + ((copy * 7919 + event.ts) % 0.9), dur: (event.dur ?? 0) * (1 + ((event.ts * 31 + copy) % 7) / 100),
    args: { ...event.args, correlation: Number(event.args?.correlation ?? -1) > 0 ? Number(event.args?.correlation) + copy * 1_000_000 : undefined },
  }))).flat().slice(0, 100_000);
  const file = writePage(savedFromEvents(many, "prefill x12"));
  const bytes = fs.statSync(file).size;
  console.log(`saved page of ${many.length} slices: ${(bytes / 1e6).toFixed(2)} MB`);
  const { page, problems } = await open(browser, `file://${file}`);
  assert.ok((await page.locator(".lane-label").count()) > 1);
  assert.deepEqual(problems, []);
  await page.context().close();
  assert.ok(bytes <= 2_000_000, `${bytes} bytes`);
});
