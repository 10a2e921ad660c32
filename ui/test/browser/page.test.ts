// What a reader does with the page, in Chromium.
import assert from "node:assert/strict";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { after, before } from "node:test";
import type { Browser, Page } from "playwright-core";
import { open, press, serve, type Server, settle, startBrowser, test, traceOf, withoutBinary } from "./harness.ts";

let browser: Browser;
let server: Server;
before(async () => {
  browser = await startBrowser();
  server = await serve(traceOf.training);
});
after(async () => {
  await browser?.close();
  server?.stop();
});

const side = (page: Page) => page.locator("#side-panel");
const number = (text: string) => Number(text.replace(/[^0-9.]/g, ""));

async function selectHit(page: Page, text: string): Promise<void> {
  await page.fill("#search", text);
  await settle(page);
  await page.waitForSelector(".search-box button"); // the answer, also on a busy machine
  await page.press("#search", "Enter");
  await page.waitForSelector(".details h2");
  await settle(page);
}

// Some of the canvas has colours other than the background: something is drawn.
async function drawnColours(page: Page): Promise<number> {
  return page.evaluate(() => {
    const canvas = document.querySelector<HTMLCanvasElement>(".lane-canvas canvas");
    const data = canvas?.getContext("2d")?.getImageData(0, 0, canvas.width, canvas.height).data ?? [];
    const colours = new Set<number>();
    for (let at = 0; at < data.length; at += 16) colours.add((data[at] << 16) | (data[at + 1] << 8) | data[at + 2]);
    return colours.size;
  });
}

test("the first screen is the verdict, with the wall, the steps and drawn lanes", async () => {
  const { page, problems } = await open(browser, server.url);
  assert.ok((await page.textContent("h1"))!.length > 10);
  assert.ok((await page.locator(".wall-part").count()) >= 1);
  // Each number of the headline leads to what it counts.
  const numbers = page.locator(".headline .link");
  assert.ok(await numbers.count() > 0);
  assert.doesNotMatch(await page.locator(".headline").evaluate((headline) => [...headline.querySelector("bdi")!.childNodes].filter((node) => node.nodeType === 3).map((node) => node.textContent).join("|")), /\d/);
  for (let at = 0; at < await numbers.count(); ++at) {
    await numbers.nth(at).click();
    await settle(page);
    assert.ok((await page.locator(".lit-now, .details, .gap-table, .drawer").count()) > 0 || page.url().includes("a="), await numbers.nth(at).textContent() ?? "");
  }
  assert.ok((await page.locator(".ribbon-bar").count()) >= 3);
  assert.ok((await page.locator(".lane-label").count()) >= 2);
  assert.ok((await drawnColours(page)) > 5);
  assert.doesNotMatch(page.url(), /t=/); // the token has left the address bar
  assert.deepEqual(problems, []);
  await page.context().close();
});

test("a launch leads to its kernel and back, by key", async () => {
  const { page, problems } = await open(browser, server.url);
  await selectHit(page, "cudaLaunchKernel kind:call");
  assert.match(await page.textContent(".details h2") ?? "", /cudaLaunchKernel/);
  await page.locator(".lanes-scroll").first().focus();
  await press(page, "]");
  assert.match(await page.textContent(".chain li.current .role") ?? "", /GPU/);
  const kernel = await page.textContent(".details h2");
  assert.match(await page.textContent(".chain .queue") ?? "", /call/);
  await press(page, "[");
  assert.match(await page.textContent(".details h2") ?? "", /cudaLaunchKernel/);
  await press(page, "]");
  assert.equal(await page.textContent(".details h2"), kernel);
  assert.deepEqual(problems, []);
  await page.context().close();
});

test("a finding shows its evidence: selected, lit, and named again in the details", async () => {
  const { page } = await open(browser, server.url);
  await page.locator(".evidence .link").first().click();
  await page.waitForSelector(".lit-now");
  await settle(page);
  await page.click("#side-details");
  assert.ok((await page.textContent(".details h2"))!.length > 1);
  assert.ok((await page.locator(".details >> text=Evidence of").count()) >= 1);
  await page.locator(".lanes-scroll").first().focus();
  await press(page, "Escape");
  assert.equal(await page.locator(".lit-now").count(), 0);
  await page.context().close();
});

test("what a fix gains is one number: on the first screen and in the answers", { skip: withoutBinary }, async () => {
  const tiny = await serve(traceOf.tiny);
  const { page } = await open(browser, tiny.url);
  const first = await page.locator(".do-first-head").evaluateAll((items) => items.map((item) => [item.querySelector("b")?.textContent, item.querySelector(".gain")?.textContent]));
  assert.ok(first.length > 0);
  const cards = await page.locator(".card").evaluateAll((items) => items.map((item) => [item.querySelector("h3")?.textContent, item.querySelector(".at-stake .link")?.textContent]));
  for (const [verdict, gain] of first) assert.ok(cards.some(([title, text]) => title === verdict && text === gain), `${verdict}: ${gain} is not in ${JSON.stringify(cards)}`);
  await page.context().close();
  tiny.stop();
});

test("the number of hidden lanes is in view, and a click shows them", { skip: withoutBinary }, async () => {
  const { page } = await open(browser, server.url, { width: 1024, height: 700 });
  const more = page.locator(".lanes-more button").first();
  const box = (await more.boundingBox())!;
  assert.ok(box.y + box.height <= 700, "below the screen");
  const count = number(await more.textContent() ?? "");
  assert.ok(count > 0);
  await more.click();
  await page.waitForSelector("text=Only the lanes that matter");
  assert.equal(await page.locator(".lanes-more button", { hasText: /more lane/ }).count(), 0);
  await page.context().close();
});

test("gaps are listed while the rules still run, and what the CPU did follows", { skip: withoutBinary }, async () => {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, reducedMotion: "reduce" });
  const page = await context.newPage();
  let letGo = () => {};
  const held = new Promise<void>((resolve) => { letGo = resolve; });
  await page.route("**/api/explain*", async (route) => { await held; await route.continue(); });
  const fresh = await serve(traceOf.training); // of another test, the rules may have run already
  await page.goto(fresh.url);
  await page.waitForSelector(".lane-label");
  await page.click("#tab-gaps");
  await page.waitForSelector('[aria-label="GPU gaps"] .trow');
  const pending = page.locator("text=What the CPU did meanwhile follows");
  assert.equal(await pending.count(), 1);
  await page.locator('[aria-label="GPU gaps"] .trow').first().click();
  await page.waitForSelector(".details h2");
  assert.match(await page.textContent(".details") ?? "", /GPU idle for/);
  letGo();
  await page.waitForSelector(".headline:not(.faint)");
  await page.waitForFunction(() => !document.body.innerText.includes("What the CPU did meanwhile follows"));
  await context.close();
  fresh.stop();
});

test("search covers the whole trace, counts per lane, and steps through hits", async () => {
  const { page } = await open(browser, server.url);
  await page.fill("#search", "aten::mm");
  await settle(page);
  const total = number(await page.textContent(".search-box button") ?? "");
  assert.ok(total > 5);
  await page.press("#search", "Enter");
  await settle(page);
  await page.press("#search", "Enter");
  await settle(page);
  assert.match(await page.textContent(".search-box button") ?? "", /^\d+ of/);
  await page.click(".search-box button");
  await settle(page);
  assert.match(await page.textContent(".drawer-panel") ?? "", /hits in the whole trace/);
  const perLane = await page.locator(".drawer-panel .chip b").allTextContents();
  assert.equal(perLane.reduce((sum, text) => sum + number(text), 0), total);
  await page.context().close();
});

test("an area has sums, and its table is linked to the lanes", async () => {
  const { page } = await open(browser, server.url);
  const box = (await page.locator(".lane-canvas").boundingBox())!;
  await page.mouse.move(box.x + 100, box.y + 200);
  await page.mouse.down();
  await page.mouse.move(box.x + 500, box.y + 200, { steps: 4 });
  await page.mouse.up();
  await page.waitForSelector(".area-list li");
  const rows = page.locator(".area-columns .trow");
  assert.ok((await rows.count()) > 3);
  await rows.nth(1).click();
  await page.waitForSelector(".details h2");
  await page.context().close();
});

test("measuring goes from edge to edge", async () => {
  const { page } = await open(browser, server.url);
  await selectHit(page, "kind:compute");
  const dur = await page.locator(".facts dd").first().textContent() ?? "";
  await page.locator(".lanes-scroll").first().focus();
  await press(page, "x");
  const measured = await page.locator(".lit-now").last().textContent() ?? "";
  assert.ok(measured.includes((/[\d.]+ .s/.exec(dur) ?? ["?"])[0]), `${measured} of ${dur}`);
  await press(page, ".");
  assert.notEqual(await page.locator(".lit-now").last().textContent(), measured);
  assert.match(await page.locator(".lit-now button", { hasText: "Copy" }).getAttribute("title") ?? "", /^[\d.,]+ (ns|µs|ms|s)$/); // what it copies
  await page.context().close();
});

test("gaps are objects: sorted by cost, selected, drawn", async () => {
  const { page } = await open(browser, server.url);
  await page.click("#tab-gaps");
  await page.waitForSelector(".drawer-panel .trow");
  await page.locator(".drawer-panel .trow").first().click();
  await page.waitForSelector(".details h2");
  assert.match(await page.textContent(".details h2") ?? "", /GPU idle for/);
  await page.locator(".details .link").last().click();
  await settle(page);
  assert.doesNotMatch(await page.textContent(".details h2") ?? "", /GPU idle for/);
  await page.context().close();
});

// The label of a part is for people: "idle: waiting for the CPU" holds gaps of several causes, none of which is called so.
test("idle time in the wall leads to its gaps", { skip: withoutBinary }, async () => {
  const { page, problems } = await open(browser, server.url);
  const parts = page.locator("button.wall-part.kind-idle");
  assert.ok((await parts.count()) > 0);
  for (let at = 0; at < await parts.count(); ++at) {
    await parts.nth(at).click();
    await page.waitForSelector(".drawer .trow");
    assert.match(await page.textContent(".lit-now") ?? "", /idle GPU/);
    await page.keyboard.press("Escape");
    await page.keyboard.press("Escape");
    if (await parts.count() === 0) await page.getByRole("button", { name: "More", exact: true }).click();
  }
  assert.deepEqual(problems, []);
  await page.close();
});

test("the wheel and drag on the axis move the window", async () => {
  const { page } = await open(browser, server.url);
  await press(page, "0");
  const box = (await page.locator(".axis-ticks").boundingBox())!;
  const view = () => page.textContent(".axis-corner");
  const whole = await view();
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  await page.mouse.wheel(0, -300);
  await settle(page);
  const near = await view();
  assert.notEqual(near, whole);
  const link = () => page.evaluate(() => location.hash);
  await page.waitForTimeout(500); // the link follows
  const before = await link();
  await page.mouse.down();
  await page.mouse.move(box.x + box.width / 4, box.y + box.height / 2, { steps: 4 });
  await page.mouse.up();
  await settle(page);
  await page.waitForTimeout(500);
  assert.equal(await view(), near);
  assert.notEqual(await link(), before);
  await page.close();
});

test("Ctrl F searches, and Ctrl C copies the name of what is selected", async () => {
  const { page } = await open(browser, server.url);
  await page.locator(".lanes-scroll").first().focus();
  await page.keyboard.press("Control+f");
  assert.equal(await page.evaluate(() => document.activeElement?.id), "search");
  await selectHit(page, "aten::linear");
  await page.keyboard.press("Escape"); // leaves the field
  await page.locator(".lanes-scroll").first().focus();
  // Awaited before the key is pressed: a listener that comes after the copy would wait for ever.
  await page.evaluate(() => {
    window.addEventListener("copy", (event) => { document.body.dataset.copied = event.clipboardData?.getData("text/plain") ?? ""; }, { once: true });
  });
  await page.keyboard.press("Control+c");
  await page.waitForFunction(() => document.body.dataset.copied !== undefined);
  assert.equal(await page.evaluate(() => document.body.dataset.copied), "aten::linear");
  await page.close();
});

test("a flame graph says of which time it is, and takes the window when asked", async () => {
  const { page } = await open(browser, server.url);
  await page.click("#tab-flame");
  await page.waitForSelector(".flame-box");
  const said = () => page.textContent(".drawer .panel-tools");
  assert.match(await said() ?? "", / in view: /);
  await page.locator(".lanes-scroll").first().focus();
  await press(page, "w", "w", "w");
  assert.match(await said() ?? "", /, from .* on: /);
  await page.getByRole("button", { name: "Show what is in view now" }).click();
  await page.waitForFunction(() => / in view: /.test(document.querySelector(".drawer .panel-tools")?.textContent ?? ""));
  await page.close();
});

test("a table is not asked for at each pixel of a drag", async () => {
  const { page } = await open(browser, server.url);
  await page.click("#tab-kernels");
  await page.waitForSelector(".drawer .trow");
  await settle(page);
  let asked = 0;
  page.on("request", (request) => { if (request.url().includes("/api/table")) asked += 1; });
  const box = (await page.locator(".lane-canvas").boundingBox())!;
  await page.mouse.move(box.x + 100, box.y + 60);
  await page.mouse.down();
  await page.mouse.move(box.x + 500, box.y + 60, { steps: 40 });
  await page.mouse.up();
  await page.waitForTimeout(600);
  assert.ok(asked <= 4, `${asked} questions`);
  await page.close();
});

test("every panel below the timeline opens, without errors", async () => {
  const { page, problems } = await open(browser, server.url);
  for (const tab of await page.locator(".drawer [role=tab]").all()) {
    await tab.click();
    await page.waitForFunction(() => (document.querySelector(".drawer-panel")?.textContent ?? "").length > 5);
    await settle(page);
  }
  assert.equal(await page.locator(".toast").count(), 0);
  assert.deepEqual(problems, []);
  await page.context().close();
});

test("the tour has stops with words, and ends", async () => {
  const { page, problems } = await open(browser, server.url);
  await page.locator(".lanes-scroll").first().focus();
  await press(page, "t");
  await page.waitForSelector(".tour");
  for (let stop = 0; stop < 60 && (await page.locator(".tour").count()) > 0; stop += 1) {
    assert.ok((await page.textContent(".tour p:nth-of-type(2)"))!.length > 10);
    await page.locator(".tour .primary").click();
    await settle(page);
  }
  assert.equal(await page.locator(".tour").count(), 0);
  assert.deepEqual(problems, []);
  await page.context().close();
});

test("a reload shows the same window, selection and table", async () => {
  const { page } = await open(browser, server.url);
  await selectHit(page, "aten::mm");
  await page.click("#tab-gaps");
  await page.waitForTimeout(700);
  const before = { url: page.url(), title: await page.textContent(".details h2"), view: await page.textContent(".axis-corner") };
  await page.reload();
  await page.waitForSelector(".details h2");
  await page.waitForTimeout(1200);
  assert.equal(await page.textContent(".details h2"), before.title);
  assert.equal(await page.textContent(".axis-corner"), before.view);
  assert.equal(await page.locator("#tab-gaps").getAttribute("aria-selected"), "true");
  assert.equal(page.url(), before.url);
  await page.context().close();
});

test("everything goes without a mouse", async () => {
  const { page } = await open(browser, server.url);
  const view = () => page.textContent(".axis-corner");
  await page.locator(".lanes-scroll").first().focus();
  await press(page, "ArrowDown", "ArrowDown", "Enter");
  assert.ok((await side(page).textContent())!.length > 20);
  const start = await view();
  await press(page, "w", "w");
  assert.notEqual(await view(), start);
  await press(page, "0");
  assert.match(await view() ?? "", /100 %|9\d %/);
  await press(page, "f", "f");
  await press(page, "r");
  await page.waitForSelector(".area-list");
  await press(page, "q", "?");
  await page.waitForSelector("dialog[open]");
  await press(page, "Escape", "/");
  assert.equal(await page.evaluate(() => document.activeElement?.id), "search");
  await press(page, "Escape", "Control+p");
  await page.waitForSelector("dialog .finder li");
  await page.keyboard.press("Enter");
  await settle(page);
  assert.equal(await page.locator("dialog[open]").count(), 0);
  await page.context().close();
});

test("a wrong token gets a sentence and no trace", async () => {
  const { page } = await open(browser, `${server.origin}/#t=00000000000000000000000000000000`);
  assert.match(await page.textContent(".start-problem") ?? "", /token/);
  assert.equal(await page.locator(".lane-label").count(), 0);
  await page.context().close();
});

test("the saved page opens from disk and shows the same range", { skip: withoutBinary }, async () => {
  const { page } = await open(browser, server.url);
  await page.click("text=Share");
  const [download] = await Promise.all([page.waitForEvent("download"), page.click("text=Save this range as one HTML file")]);
  const file = path.join(fs.mkdtempSync(path.join(os.tmpdir(), "lanescope-")), "saved.html");
  await download.saveAs(file);
  const headline = await page.textContent("h1");
  assert.ok(fs.statSync(file).size < 2_000_000);
  const saved = await open(browser, `file://${file}`);
  assert.equal(await saved.page.textContent("h1"), headline);
  assert.ok((await drawnColours(saved.page)) > 5);
  // A launch in the range has its kernel there, too; the first kernel may have its launch before.
  await selectHit(saved.page, "cudaLaunchKernel kind:call");
  await saved.page.locator(".lanes-scroll").first().focus();
  await press(saved.page, "]");
  assert.match(await saved.page.textContent(".chain li.current .role") ?? "", /GPU/);
  await press(saved.page, "[");
  assert.match(await saved.page.textContent(".details h2") ?? "", /cudaLaunchKernel/);
  assert.deepEqual(saved.problems, []);
  await saved.page.context().close();
  await page.context().close();
});

test("two traces lie side by side, with what changed", { skip: withoutBinary }, async () => {
  const both = await serve(traceOf.eager, traceOf.graph);
  try {
    const { page, problems } = await open(browser, both.url);
    assert.equal(await page.locator(".timeline").count(), 2);
    assert.match(await page.textContent("h1") ?? "", /in B and .* in A/);
    assert.ok((await page.locator(".changes li").count()) > 0);
    assert.equal(await page.locator(".wall-bar").count(), 2);
    await page.click("#tab-compare");
    await page.waitForSelector(".drawer-panel .trow");
    // Search and tables are of both.
    await page.fill("#search", "GEMM");
    await page.waitForSelector(".search-box button");
    await page.click(".search-box button");
    await settle(page);
    const lanes = await page.locator(".drawer-panel .chip:has(b)").allTextContents();
    assert.ok(lanes.some((text) => text.startsWith("A: ")) && lanes.some((text) => text.startsWith("B: ")), lanes.join());
    await page.click("#tab-kernels");
    await page.waitForSelector(".drawer-panel .trow");
    const names = async () => (await page.locator(".drawer-panel .trow").allTextContents()).join("\n");
    const ofA = await names();
    await page.locator(".drawer-panel .picker button", { hasText: "B" }).click();
    await page.waitForFunction((before) => [...document.querySelectorAll(".drawer-panel .trow")].map((row) => row.textContent).join("\n") !== before, ofA);
    assert.match(await names(), /gelu\+mul/); // the fused kernel that only B has
    await page.locator(".drawer-panel .trow", { hasText: "gelu+mul" }).first().click();
    await page.waitForSelector(".details h2");
    assert.match(await page.textContent(".details h2") ?? "", /gelu/);
    assert.deepEqual(problems, []);
    await page.context().close();
  } finally {
    both.stop();
  }
});

test("of more lanes than are listed, the others can be listed, and found by search", { skip: withoutBinary }, async () => {
  const traceEvents = Array.from({ length: 4300 }, (_, thread) => ({ ph: "X", cat: "cpu_op", name: `work-${thread}`, pid: 1, tid: thread + 1, ts: thread, dur: thread < 300 ? 1 : 5 }));
  const file = path.join(fs.mkdtempSync(path.join(os.tmpdir(), "lanescope-")), "wide.json");
  fs.writeFileSync(file, JSON.stringify({ traceEvents }));
  const wide = await serve(file);
  try {
    const { page, problems } = await open(browser, wide.url);
    await selectHit(page, "work-17");
    assert.match(await page.textContent(".details h2") ?? "", /work-17/);
    assert.match(await page.textContent(".facts") ?? "", /thread 18/); // its lane was not listed
    const more = page.locator(".lanes-more button", { hasText: "List more of" });
    assert.match(await more.textContent() ?? "", /\d+ lanes/);
    await more.click();
    await page.waitForFunction(() => ![...document.querySelectorAll(".lanes-more button")].some((button) => button.textContent?.includes("List more of")));
    assert.equal(await page.locator(".toast").count(), 0);
    assert.deepEqual(problems, []);
    await page.context().close();
  } finally {
    wide.stop();
  }
});
