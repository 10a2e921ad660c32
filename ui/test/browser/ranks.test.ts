// The folder of a run of several ranks: the page says which rank it shows, what holds all of them up, and switches to any.
import assert from "node:assert/strict";
import path from "node:path";
import { after, before } from "node:test";
import type { Browser, Page } from "playwright-core";
import { open, repository, serve, type Server, settle, startBrowser, test, withoutBinary } from "./harness.ts";

const skip = withoutBinary;
let browser: Browser;
let server: Server;
before(async () => {
  if (skip) return;
  browser = await startBrowser();
  server = await serve(path.join(repository, "tests/data/ddp4/straggler"));
});
after(async () => {
  await browser?.close();
  server?.stop();
});

const shown = (page: Page) => page.locator(".rank-picker").inputValue();
const stepInView = async (page: Page) => /step (\d+)/.exec(await page.textContent(".ribbon .wall-caption") ?? "")?.[1];
// Waits for the page of another rank, which starts anew.
const anew = async (page: Page, act: () => Promise<unknown>) => {
  await page.evaluate(() => { (window as unknown as { old: boolean }).old = true; });
  await act();
  await page.waitForFunction(() => (window as unknown as { old?: boolean }).old === undefined && document.querySelector(".lane-label") !== null);
  await page.waitForSelector(".headline:not(.faint)");
  await settle(page);
};
const choose = (page: Page, rank: string) => anew(page, () => page.selectOption(".rank-picker", rank));

test("the late rank is named, and one click away", { skip }, async () => {
  const { page, problems } = await open(browser, server.url);
  assert.equal(await shown(page), "0");
  await page.waitForSelector(".ranks-line .link");
  assert.match(await page.textContent(".ranks-line") ?? "", /Of 4 ranks this is rank 0\. Rank 1 delays the others/);
  const step = await stepInView(page);
  await anew(page, () => page.click('.ranks-line .link:has-text("Open rank 1")'));
  assert.equal(await shown(page), "1");
  assert.equal(await stepInView(page), step); // the same step, by its number
  assert.match(await page.textContent(".trace-title") ?? "", /rank1\.json\.gz/);
  assert.ok(!page.url().includes("t="), "the token is not in the address");
  await page.reload();
  await page.waitForSelector(".lane-label");
  assert.equal(await shown(page), "1");
  assert.deepEqual(problems, []);
  await page.context().close();
});

test("all ranks lie below each other, with the verdict on all of them", { skip }, async () => {
  const { page, problems } = await open(browser, server.url, { height: 2000 }); // labels out of view are not made
  await choose(page, "all");
  assert.match(await page.textContent(".headline") ?? "", /^Rank 1 delays the others/);
  assert.equal(await page.locator("#side-panel").count(), 0); // it would say that there are no answers
  const lanes = await page.locator(".lane-title").allTextContents();
  for (const rank of [0, 1, 2, 3]) {
    assert.ok(lanes.some((title) => title.startsWith(`rank ${rank}: stream`)), `${rank} in ${lanes.join(", ")}`);
  }
  // Rank 1 works at other times than the steps of the rank whose steps are shown; it has idle times all the same.
  for (const rank of [0, 1, 2, 3]) assert.ok(lanes.includes(`rank ${rank}: GPU idle`), `${rank} in ${lanes.join(", ")}`);
  assert.equal(await page.textContent(".headline .link"), "Rank 1"); // what a sentence names is one click away
  await page.click("#tab-ranks");
  const rows = await page.locator('[aria-label="Ranks"] .trow').allTextContents();
  assert.equal(rows.length, 4);
  assert.match(rows[1], /^rank 1 late/);
  await choose(page, "2");
  assert.equal(await shown(page), "2");
  assert.deepEqual(problems, []);
  await page.context().close();
});
