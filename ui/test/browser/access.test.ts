// axe-core finds nothing to object to, in any panel, in both themes; and the page works at twice its size.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { after, before } from "node:test";
import type { Browser, Page } from "playwright-core";
import { open, press, repository, serve, type Server, settle, startBrowser, test, traceOf, withoutBinary } from "./harness.ts";

const axe = fs.readFileSync(path.resolve("node_modules/axe-core/axe.min.js"), "utf8");
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

interface Violation { id: string; help: string; nodes: { html: string; failureSummary?: string }[] }

async function violations(page: Page): Promise<string[]> {
  // Through the debugger, because the page's policy of content lets no script in.
  const session = await page.context().newCDPSession(page);
  await session.send("Runtime.evaluate", { expression: axe });
  const answer = await session.send("Runtime.evaluate", { expression: "axe.run(document).then((result) => JSON.stringify(result.violations))", awaitPromise: true });
  const found: Violation[] = JSON.parse(String(answer.result.value));
  return found.flatMap((violation) => violation.nodes.slice(0, 3).map((node) => `${violation.id}: ${violation.help}: ${node.html.slice(0, 160)} ${node.failureSummary ?? ""}`));
}

for (const dark of [false, true]) {
  test(`axe objects to nothing in the ranks of a folder, ${dark ? "dark" : "light"}`, { skip: withoutBinary }, async () => {
    const ranks = await serve(path.join(repository, "tests/data/ddp4/straggler"));
    try {
      const { page } = await open(browser, ranks.url, { dark });
      await page.waitForSelector(".ranks-line .link");
      await page.click("#tab-ranks");
      await page.waitForSelector('[aria-label="Ranks"] .trow');
      assert.deepEqual(await violations(page), []);
      await page.context().close();
    } finally {
      ranks.stop();
    }
  });
}

for (const dark of [false, true]) {
  test(`axe objects to nothing, ${dark ? "dark" : "light"}`, async () => {
    const { page } = await open(browser, server.url, { dark });
    const found: string[] = [];
    const look = async (where: string) => { for (const text of await violations(page)) found.push(`${where}: ${text}`); };
    await look("first screen");
    await page.fill("#search", "kind:compute");
    await settle(page);
    await page.press("#search", "Enter");
    await settle(page);
    await look("details");
    for (const tab of await page.locator(".drawer [role=tab]").all()) {
      await tab.click();
      await settle(page);
      await look(await tab.textContent() ?? "");
    }
    await page.locator(".lanes-scroll").first().focus();
    await press(page, "r");
    await look("area");
    for (const key of ["?", "Control+p", "Control+Shift+P"]) {
      await page.locator(".lanes-scroll").first().focus();
      await press(page, key);
      await look(`after ${key}`);
      await press(page, "Escape");
    }
    await page.click("text=About the data");
    await look("about the data");
    await press(page, "Escape");
    await page.locator(".lanes-scroll").first().focus();
    await press(page, "t");
    await look("tour");
    await press(page, "Escape");
    await page.locator(".mirror button").first().focus();
    await press(page, "Enter");
    await look("list of events");
    assert.deepEqual(found, []);
    await page.context().close();
  });
}

for (const dark of [false, true]) {
  test(`axe objects to nothing in the comparison of two traces, ${dark ? "dark" : "light"}`, { skip: withoutBinary }, async () => {
    const both = await serve(traceOf.eager, traceOf.graph);
    try {
      const { page } = await open(browser, both.url, { dark });
      const found = await violations(page);
      await page.click("#tab-compare");
      await page.waitForSelector(".drawer-panel .trow");
      found.push(...await violations(page));
      await page.click("#tab-kernels");
      await page.waitForSelector(".drawer-panel .trow");
      found.push(...await violations(page));
      assert.deepEqual(found, []);
      await page.context().close();
    } finally {
      both.stop();
    }
  });
}

test("what is selected is said to a screen reader, and the lane can be read as a list", async () => {
  const { page } = await open(browser, server.url);
  await page.locator(".lanes-scroll").first().focus();
  await press(page, "ArrowDown", "ArrowDown");
  assert.match(await page.textContent(".live") ?? "", /^lane /);
  await press(page, "Enter");
  assert.match(await page.textContent(".live") ?? "", /, (on|one of|GPU)|idle/);
  await page.locator(".mirror button").first().focus();
  await page.keyboard.press("Enter");
  await settle(page);
  assert.ok((await page.locator(".mirror li").count()) > 0);
  await page.context().close();
});

test("at half the width, which is 200 % zoom, everything can be reached", async () => {
  const { page } = await open(browser, server.url, { width: 720, height: 450 });
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok(wide <= 1, `the page is ${wide} pixels too wide`);
  for (const selector of ["h1", ".wall-bar", ".lanes-scroll", "#side-panel", ".drawer .tabs"]) {
    await page.locator(selector).first().scrollIntoViewIfNeeded();
    assert.ok(await page.locator(selector).first().isVisible(), selector);
  }
  await page.context().close();
});

test("on a narrow screen, a table that is opened is in view", async () => {
  const { page } = await open(browser, server.url, { width: 390, height: 844 });
  await page.click("#tab-operators");
  await page.waitForSelector("#drawer-panel .trow");
  await settle(page);
  const box = (await page.locator("#drawer-panel").boundingBox())!;
  assert.ok(box.y >= 0 && box.y < 844 - 100, `the table begins at ${box.y} of 844`);
  await page.context().close();
});
