// Pictures of the page, to be looked at: node tools/look.mjs URL THEME STEP...
// STEP: shot:FILE.png, click:SELECTOR, type:TEXT, wait:MS, size:WxH, at:X,Y (click there), hover:X,Y, else a key.
import { chromium } from "playwright-core";

const [url, theme, ...steps] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath: process.env.LANESCOPE_CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
const page = await browser.newPage({ viewport: { width: 1440, height: 900 }, colorScheme: theme });
page.on("console", (message) => { if (message.type() === "error") console.log("console:", message.text()); });
page.on("pageerror", (error) => console.log("page error:", error.stack?.slice(0, 500)));
await page.goto(url);
await page.waitForSelector(".page, .start-problem[role=alert]", { timeout: 20000 });
await page.waitForTimeout(900);
for (const step of steps) {
  const [word, ...rest] = step.split(":");
  const value = rest.join(":");
  if (word === "shot") await page.screenshot({ path: value });
  else if (word === "click") await page.click(value);
  else if (word === "type") await page.keyboard.type(value);
  else if (word === "wait") await page.waitForTimeout(Number(value));
  else if (word === "size") await page.setViewportSize({ width: Number(value.split("x")[0]), height: Number(value.split("x")[1]) });
  else if (word === "at") await page.mouse.click(...value.split(",").map(Number));
  else if (word === "hover") await page.mouse.move(...value.split(",").map(Number));
  else if (word === "drag") {
    const [x0, y0, x1, y1] = value.split(",").map(Number);
    await page.mouse.move(x0, y0);
    await page.mouse.down();
    await page.mouse.move(x1, y1, { steps: 5 });
    await page.mouse.up();
  } else await page.keyboard.press(step);
  await page.waitForTimeout(word === "shot" || word === "size" ? 50 : 450);
}
await browser.close();
