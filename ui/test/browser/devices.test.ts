// Devices that are no GPU, and steps by the thousand: what the page says must be true of them.
import assert from "node:assert/strict";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { after, before } from "node:test";
import type { Browser, Page } from "playwright-core";
import { open, press, serve, type Server, settle, startBrowser, test, withoutBinary } from "./harness.ts";

const skip = withoutBinary;
let browser: Browser;
const servers: Server[] = [];
before(async () => {
  if (!skip) browser = await startBrowser();
});
after(async () => {
  await browser?.close();
  for (const server of servers) server.stop();
});

async function view(events: object[]): Promise<{ page: Page; problems: string[] }> {
  const file = path.join(fs.mkdtempSync(path.join(os.tmpdir(), "lanescope-")), "trace.json");
  fs.writeFileSync(file, JSON.stringify({ traceEvents: events }));
  const server = await serve(file);
  servers.push(server);
  return open(browser, server.url);
}

async function tourTexts(page: Page): Promise<string[]> {
  await page.click('button:has-text("Guided tour")');
  await page.waitForSelector(".tour");
  const texts: string[] = [];
  for (let stop = 0; stop < 60 && (await page.locator(".tour").count()) > 0; stop += 1) {
    texts.push((await page.textContent(".tour")) ?? "");
    await page.locator(".tour .primary").click();
    await settle(page);
  }
  return texts;
}

// Three steps of 1 ms. The NPU computes from 100 to 400 us of each, waits for an event, and computes from 900 to 950 us.
function ascend(): object[] {
  const events: object[] = [
    { ph: "M", name: "process_name", pid: 1, args: { name: "Python" } },
    { ph: "M", name: "process_name", pid: 3, args: { name: "Ascend Hardware" } },
    { ph: "M", name: "thread_name", pid: 3, tid: 2, args: { name: "Stream 2" } },
  ];
  for (let step = 0; step < 3; step += 1) {
    const at = 1000 + step * 1000;
    events.push(
      { ph: "X", cat: "cpu_op", name: `ProfilerStep#${step}`, pid: 1, tid: 1, ts: at, dur: 1000 },
      { ph: "X", cat: "cpu_op", name: "aten::mm", pid: 1, tid: 1, ts: at + 50, dur: 200, args: { "Call stack": "/site-packages/torch/_tensor.py(9): mm;\r\n/home/me/train.py(41): step;\r\n<string>(1): <module>" } },
      { ph: "X", name: "MatMulV2_0", pid: 3, tid: 2, ts: at + 100, dur: 300, args: { "Task Type": "AI_CORE" } },
      { ph: "X", name: "EVENT_WAIT", pid: 3, tid: 2, ts: at + 410, dur: 480, args: { "Task Type": "EVENT_WAIT" } },
      { ph: "X", name: "Add_1", pid: 3, tid: 2, ts: at + 900, dur: 50, args: { "Task Type": "AI_VECTOR_CORE" } },
    );
  }
  return events;
}

test("the tour of an Ascend trace shows its device, and where that waits", { skip }, async () => {
  const { page, problems } = await view(ascend());
  const texts = await tourTexts(page);
  const stop = (title: string) => texts.find((text) => text.includes(title)) ?? "";
  assert.match(stop("The device"), /The Ascend NPU does the work that the CPU gives it.*The longest computation of this step is MatMulV2_0, for 300 µs/);
  assert.match(stop("Where the device waits"), /no stream of the Ascend NPU computes, communicates or copies for 500 µs/);
  assert.match(stop("An operator"), /at me\/train\.py:41 step, calls aten::mm/); // lines of Ascend's stacks end in CR LF
  assert.match(stop("The CPU: your program"), /the thread of your program that its steps run on/);
  for (const text of texts) assert.doesNotMatch(text, /\bGPU\b|, at \?/, text);
  assert.deepEqual(problems, []);
  await page.context().close();
});

test("tables have columns only for what was recorded", { skip }, async () => {
  const { page, problems } = await view(ascend());
  await page.click("#tab-operators");
  await page.waitForSelector('[aria-label="operators"] .trow');
  const heads = (await page.locator('[aria-label="operators"] [role="columnheader"]').allTextContents()).join(" ");
  assert.match(heads, /CPU self/);
  assert.doesNotMatch(heads, /GPU|memory/);
  assert.match(await page.textContent(".panel-tools") ?? "", /in the whole trace/);
  assert.deepEqual(problems, []);
  await page.context().close();
});

test("thousands of steps share the bars of the ribbon, and each can be reached", { skip }, async () => {
  const steps = 5000;
  const events = Array.from({ length: steps }, (_, step) => [
    { ph: "X", cat: "user_annotation", name: `ProfilerStep#${step}`, pid: 1, tid: 1, ts: 1000 + step * 100, dur: step === 4000 ? 95 : 90 },
    { ph: "X", cat: "cpu_op", name: "aten::mm", pid: 1, tid: 1, ts: 1001 + step * 100, dur: 50 },
  ]).flat();
  const { page, problems } = await view(events);
  const caption = async () => (await page.textContent(".ribbon .wall-caption")) ?? "";
  assert.match(await caption(), /5,000 steps/);
  assert.ok((await page.locator(".ribbon-bar").count()) <= 160);
  const shown = Number(/step (\d+)/.exec(await caption())?.[1]);
  await page.locator(".lanes-scroll").first().focus();
  await press(page, "Shift+ArrowRight");
  await page.waitForFunction((wanted) => document.querySelector(".ribbon .wall-caption")?.textContent?.includes(`step ${wanted},`) === true, shown + 1);
  await page.locator(".ribbon-bar").last().click();
  await page.waitForFunction(() => /in view: step 49\d\d,/.test(document.querySelector(".ribbon .wall-caption")?.textContent ?? ""));
  await press(page, "Shift+ArrowLeft");
  await page.waitForFunction(() => /in view: step 49\d\d,/.test(document.querySelector(".ribbon .wall-caption")?.textContent ?? ""));
  await page.evaluate(() => {
    location.hash = "step=1234";
    location.reload();
  });
  await page.waitForFunction(() => /in view: step 1234,/.test(document.querySelector(".ribbon .wall-caption")?.textContent ?? ""));
  assert.deepEqual(problems, []);
  await page.context().close();
});

// A server's recording, for example: half a second of waiting, and then 10 ms of work.
test("without steps, the first picture shows the GPU's work, not the long wait before it", { skip }, async () => {
  const events: object[] = [{ ph: "X", cat: "cpu_op", name: "aten::copy_", pid: 1, tid: 1, ts: 0, dur: 500_000 }];
  for (let at = 0; at < 10; at += 1) {
    events.push(
      { ph: "X", cat: "cuda_runtime", name: "cudaLaunchKernel", pid: 1, tid: 1, ts: 500_000 + at * 1000, dur: 10, args: { correlation: at + 1 } },
      { ph: "X", cat: "kernel", name: "gemm", pid: 0, tid: 7, ts: 500_100 + at * 1000, dur: 900, args: { correlation: at + 1, device: 0, stream: 7 } },
    );
  }
  const { page, problems } = await view(events);
  const inView = Number(/^([\d.]+) ms in view/.exec(await page.textContent(".axis-corner") ?? "")?.[1]);
  assert.ok(inView > 9 && inView < 20, `${inView} ms in view`);
  assert.deepEqual(problems, []);
  await page.context().close();
});

test("a trace of no PyTorch program says what can be done with it", { skip }, async () => {
  const { page, problems } = await view([1, 2, 3].map((at) => ({ ph: "X", cat: "blink", name: `layout ${at}`, pid: 1, tid: 1, ts: at * 100, dur: 50 })));
  assert.match(await page.textContent(".do-first") ?? "", /What it holds is in the lanes below/);
  assert.equal(await page.locator(".lane-label >> text=operators and calls").count(), 0);
  assert.deepEqual(problems, []);
  await page.context().close();
});
