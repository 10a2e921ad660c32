// A recording that grows while the page shows it: new steps and lanes appear without a reload, and what the reader chose stays.
import assert from "node:assert/strict";
import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { after, before } from "node:test";
import type { Browser, Page } from "playwright-core";
import { binary, open, press, serve, settle, startBrowser, test, withoutBinary } from "./harness.ts";

let browser: Browser;
before(async () => { browser = await startBrowser(); });
after(async () => { await browser?.close(); });

const program = path.resolve(path.dirname(binary), "../../../tests/end_to_end/growing_recording_program");
const skip = withoutBinary || (fs.existsSync(program) ? false : `needs ${program}: cmake --build ... --target all`);

class Recording {
  readonly path = path.join(fs.mkdtempSync(path.join(os.tmpdir(), "lanescope-")), "run.lspool");
  private readonly child: ChildProcessWithoutNullStreams = spawn(program, [this.path]);

  async doSteps(count: number): Promise<void> {
    const done = new Promise<void>((resolve, reject) => {
      this.child.stdout.once("data", () => resolve());
      this.child.once("exit", (code, signal) => reject(new Error(`${program} ended with ${code ?? signal}`)));
    });
    this.child.stdin.write(`${count}\n`);
    await done;
  }
  end(): void { this.child.stdin.end(); }
}

const steps = async (page: Page) => Number(/(\d+) steps?/.exec(await page.textContent(".ribbon .wall-caption") ?? "")?.[1]);
const waitForSteps = (page: Page, least: number) =>
  page.waitForFunction((wanted) => Number(/(\d+) steps?/.exec(document.querySelector(".ribbon .wall-caption")?.textContent ?? "")?.[1]) >= wanted, least, { timeout: 60_000 });
// What is drawn after the next answer of the server; on a busy machine that takes seconds.
const waitForText = (page: Page, selector: string, pattern: string) =>
  page.waitForFunction(([where, wanted]) => new RegExp(wanted).test(document.querySelector(where)?.textContent ?? ""), [selector, pattern], { timeout: 60_000 });
const waitForAnotherBegin = (page: Page, known: string | null) =>
  page.waitForFunction((before) => ![before, undefined, ""].includes(document.querySelectorAll(".facts dd")[1]?.textContent as string), known, { timeout: 60_000 });

test("new steps and lanes appear, and window, selection and marks stay", { skip }, async () => {
  const recording = new Recording();
  await recording.doSteps(4);
  const server = await serve(recording.path);
  try {
    const { page, problems } = await open(browser, server.url);
    assert.ok((await page.locator(".recording").count()) === 1);
    const stepsBefore = await steps(page);
    await page.fill("#search", "augment");
    await settle(page);
    await page.press("#search", "Enter");
    await page.waitForSelector(".details h2");
    await page.fill("#search", "");
    await page.locator(".lanes-scroll").first().focus();
    await press(page, "m");
    const chosen = async () => ({ title: await page.textContent(".details h2"), begins: await page.locator(".facts dd").nth(1).textContent(), view: await page.textContent(".axis-corner span") });
    const before = await chosen();
    const lanes = await page.locator(".lane-label, .lanes-more").allTextContents();
    await page.evaluate(() => { (window as unknown as { same: boolean }).same = true; }); // lost by a reload

    await recording.doSteps(5);
    await waitForSteps(page, stepsBefore + 5);
    // The thread that began after the steps; the server looks once a second, and its last look may be after that.
    await page.waitForFunction((known) => [...document.querySelectorAll(".lane-label, .lanes-more")].map((each) => each.textContent).join("\n") !== known, lanes.join("\n"), { timeout: 60_000 });
    await page.waitForTimeout(2_500);
    await settle(page);
    assert.deepEqual(await chosen(), before);
    // The event that is selected is the same one, by its new number: its place in the chain and its neighbours answer.
    await press(page, ".");
    await waitForAnotherBegin(page, before.begins);
    await page.click(".recording");
    await waitForText(page, ".ribbon .wall-caption", `step ${await steps(page) - 1}\\b`);

    recording.end();
    await page.waitForFunction(() => document.querySelector(".recording") === null, undefined, { timeout: 60_000 });
    assert.equal(await page.evaluate(() => (window as unknown as { same?: boolean }).same), true);
    assert.equal(await page.locator(".toast, .problem").count(), 0);
    assert.deepEqual(problems, []);
    await page.context().close();
  } finally {
    recording.end();
    server.stop();
  }
});

test("a key that was pressed while the trace grew is not lost", { skip }, async () => {
  const recording = new Recording();
  await recording.doSteps(4);
  const server = await serve(recording.path);
  try {
    const { page, problems } = await open(browser, server.url);
    const before = await steps(page);
    // The server looks once a second: until it has seen all of these steps, the trace may grow under the keys below.
    await page.waitForTimeout(5_000);
    await settle(page);
    let selected: unknown;
    page.on("request", (request) => { if (selected === undefined && request.url().endsWith("/api/event")) selected = request.postDataJSON().slice; });
    // What is found is the event nearest to the middle of the window, which may be the last one.
    let key = ".";
    page.on("response", async (response) => {
      if (!response.url().endsWith("/api/event") || !response.ok()) return;
      const event = await response.json().catch(() => null); // the page may be closed by now
      if (event?.neighbours.next === null) key = ",";
    });
    await page.fill("#search", "augment");
    await settle(page);
    await page.press("#search", "Enter");
    await page.waitForSelector(".details h2");
    await settle(page);
    const begins = () => page.locator(".facts dd").nth(1).textContent();
    const first = await begins();
    // The question that the key asks comes after the server has read the newer trace. What the page asks of the selected event when its
    // rules end is answered.
    let refused = false;
    await page.route("**/api/event", (route) => {
      if (refused || route.request().postDataJSON().slice === selected) return route.continue();
      refused = true;
      return route.fulfill({ status: 409, contentType: "application/json", body: '{"error": "the trace has grown"}' });
    });
    for (let times = 0; times < 20 && !refused; times += 1) { // a busy page may take the focus once more
      await page.locator(".lanes-scroll").first().focus();
      await page.keyboard.press(key);
      await settle(page);
    }
    assert.ok(refused);
    // A recording that runs grows once a second even without new steps, so the key may have been done by now.
    await recording.doSteps(3);
    await waitForSteps(page, before + 3);
    await waitForAnotherBegin(page, first);
    assert.equal(await page.locator(".toast, .problem").count(), 0);
    assert.deepEqual(problems, []);
    await page.context().close();
  } finally {
    recording.end();
    server.stop();
  }
});

test("a window on the whole trace goes on showing all of it", { skip }, async () => {
  const recording = new Recording();
  await recording.doSteps(3);
  const server = await serve(recording.path);
  try {
    const { page, problems } = await open(browser, server.url);
    await page.locator(".lanes-scroll").first().focus();
    await press(page, "0");
    const before = await steps(page);
    await recording.doSteps(6);
    await waitForSteps(page, before + 6);
    await waitForText(page, ".axis-corner", "100 %");
    assert.deepEqual(problems, []);
    await page.context().close();
  } finally {
    recording.end();
    server.stop();
  }
});
