// A trace whose strings try to be markup, to turn text around, or to be endless: all of it is shown as text.
import assert from "node:assert/strict";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { after, before } from "node:test";
import type { Browser } from "playwright-core";
import { open, serve, type Server, settle, startBrowser, test } from "./harness.ts";

const nasty = [
  "<script>window.hacked = 1</script>", "<img src=x onerror=\"window.hacked = 2\">", "\u202egnp.exe", "javascript:window.hacked=3", "x".repeat(5000), "",
  "</script><script>window.hacked = 4</script>", "'; --", "\u0000\u0007\u001b[31m", "${7*7}{{7*7}}", "\ud83d",
];

let browser: Browser;
let server: Server;
before(async () => {
  const traceEvents = nasty.flatMap((name, index) => [
    { ph: "X", cat: "cpu_op", name, pid: 1, tid: 1, ts: index * 100, dur: 50, args: { [name]: name, "Call stack": `${name};${name}` } },
    { ph: "X", cat: "cuda_runtime", name: "cudaLaunchKernel", pid: 1, tid: 1, ts: index * 100 + 10, dur: 5, args: { correlation: index + 1 } },
    { ph: "X", cat: "kernel", name, pid: 0, tid: 7, ts: index * 100 + 30, dur: 40, args: { correlation: index + 1, stream: 7, device: 0, [name]: name } },
  ]);
  const names = [{ ph: "M", name: "thread_name", pid: 1, tid: 1, args: { name: nasty[1] } }, { ph: "M", name: "process_name", pid: 1, args: { name: nasty[0] } }];
  const file = path.join(fs.mkdtempSync(path.join(os.tmpdir(), "lanescope-")), "hostile.json");
  fs.writeFileSync(file, JSON.stringify({ traceEvents: [...names, ...traceEvents] }));
  browser = await startBrowser();
  server = await serve(file);
});
after(async () => {
  await browser?.close();
  server?.stop();
});

test("no name becomes markup or a script, in no panel", async () => {
  const { page, problems } = await open(browser, server.url);
  for (const word of ["script", "img", "exe", "xxxx", "7*7"]) {
    await page.fill("#search", word);
    await settle(page);
    await page.press("#search", "Enter");
    await settle(page);
  }
  for (const tab of await page.locator(".drawer [role=tab]").all()) {
    await tab.click();
    await settle(page);
  }
  assert.equal(await page.evaluate(() => (window as unknown as { hacked?: number }).hacked), undefined);
  assert.equal(await page.locator("img, iframe, object").count(), 0);
  assert.equal(await page.locator("script").count(), 1);
  assert.doesNotMatch(await page.textContent("body") ?? "", /[\u202e\u0000\u0007]/);
  assert.deepEqual(problems, []);
  await page.context().close();
});

test("names of 5,000 characters do not break the layout", async () => {
  const { page } = await open(browser, server.url);
  await page.fill("#search", "xxxxxxxx");
  await settle(page);
  await page.press("#search", "Enter");
  await settle(page);
  const sizes = await page.evaluate(() => ({ page: document.documentElement.scrollWidth, window: innerWidth }));
  assert.ok(sizes.page <= sizes.window);
  await page.context().close();
});
