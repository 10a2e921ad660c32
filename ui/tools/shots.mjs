// Pictures of the first screen of several traces, in real time: node tools/shots.mjs BINARY OUT NAME=TRACE[,TRACE]...
// Each in two sizes and both themes: OUT/NAME-1440-light.png and so on. SIZES and THEMES in the environment choose fewer.
import { spawn } from "node:child_process";
import { chromium } from "playwright-core";

const [binary, out, ...traces] = process.argv.slice(2);
const sizes = (process.env.SIZES ?? "1440x900,1024x700").split(",").map((size) => size.split("x").map(Number));
const themes = (process.env.THEMES ?? "light,dark").split(",");
const browser = await chromium.launch({ executablePath: process.env.LANESCOPE_CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
for (const item of traces) {
  const [name, paths] = item.split("=");
  const server = spawn(binary, ["view", ...paths.split(","), "--no-open", "--keep"], { stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  const url = await new Promise((resolve) => {
    const hear = (data) => {
      said += data;
      const found = /http:\/\/127\.0\.0\.1:\d+\/#t=\S+/.exec(said);
      if (found) resolve(found[0]);
    };
    server.stdout.on("data", hear);
    server.stderr.on("data", hear);
    server.on("exit", () => resolve(null));
  });
  if (url === null) {
    console.log(`${name}: ${said.trim()}`);
    continue;
  }
  for (const [width, height] of sizes) for (const theme of themes) {
    const page = await browser.newPage({ viewport: { width, height }, colorScheme: theme });
    page.on("pageerror", (error) => console.log(`${name}: page error: ${error.message}`));
    page.on("console", (message) => { if (message.type() === "error") console.log(`${name}: console: ${message.text()}`); });
    await page.goto(url);
    await page.waitForFunction(() => document.querySelector(".headline:not(.faint), .start-problem[role=alert]") !== null, undefined, { timeout: 60_000 });
    await page.waitForTimeout(1200);
    await page.screenshot({ path: `${out}/${name}-${width}-${theme}.png` });
    await page.close();
  }
  server.removeAllListeners("exit");
  server.kill("SIGINT");
}
await browser.close();
