// Pictures of a page, to be looked at: node test/browser/look.mjs URL OUT.png [theme] [script...]; a script is keys or `click:SELECTOR`.
import { chromium } from "playwright-core";
const [url, out, theme = "light", ...steps] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath: process.env.LANESCOPE_CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
const page = await browser.newPage({ viewport: { width: 1440, height: 900 }, colorScheme: theme });
page.on("console", (message) => { if (message.type() === "error") console.log("console:", message.text()); });
page.on("pageerror", (error) => console.log("page error:", error.message, error.stack?.slice(0, 400)));
await page.goto(url);
await page.waitForSelector(".page, .start-problem[role=alert]", { timeout: 8000 });
await page.waitForTimeout(900);
for (const step of steps) {
  if (step.startsWith("click:")) await page.click(step.slice(6));
  else if (step.startsWith("type:")) await page.keyboard.type(step.slice(5));
  else await page.keyboard.press(step);
  await page.waitForTimeout(500);
}
await page.screenshot({ path: out });
await browser.close();
