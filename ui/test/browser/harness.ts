// Starts a server for a trace and a browser for its page.
import { spawn, type ChildProcess } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { test as runTest, type TestContext } from "node:test";
import { chromium, type Browser, type Page } from "playwright-core";
import * as esbuild from "esbuild";

export const repository = path.resolve("..");
export const binary = process.env.LANESCOPE_BINARY ?? "";
export const hasBinary = binary !== "";
export const withoutBinary = hasBinary ? false : "LANESCOPE_BINARY is not set; this test is about the server";

export const traceOf = {
  training: path.join(repository, "tests/data/h200_mlp_train/trace.json.gz"),
  tiny: path.join(repository, "tests/data/h200_64_bf16_warm_eager/trace.json"),
  prefill: path.join(repository, "tests/data/h200/llama_prefill.json.gz"),
  graph: path.join(repository, "tests/data/h200/mlp_cudagraph.json.gz"),
  eager: path.join(repository, "tests/data/h200/mlp_eager.json.gz"),
};

// A test of node's runner that fails after two minutes: a promise that nothing keeps would hold up all the tests after it.
type Body = (context: TestContext) => Promise<void> | void;
export function test(name: string, ...rest: [Body] | [{ skip?: string | false }, Body]): void {
  const [options, body] = rest.length === 2 ? rest : [{}, rest[0]];
  void runTest(name, { timeout: 120_000, ...options }, body);
}

export interface Server { url: string; origin: string; token: string; stop: () => void }

async function makeDouble(): Promise<string> {
  const outfile = path.resolve("build/double.mjs");
  if (!fs.existsSync(outfile)) {
    await esbuild.build({ entryPoints: ["test/double/server.ts"], outfile, bundle: true, platform: "node", format: "esm", logLevel: "error" });
  }
  return outfile;
}

// Both print the address with the token.
export async function serve(...traces: string[]): Promise<Server> {
  const port = 20_000 + Math.floor(Math.random() * 20_000);
  const command = hasBinary
    ? [binary, "view", ...traces, "--no-open", "--keep", "--port", String(port)]
    : [process.execPath, await makeDouble(), traces[0], String(port)];
  const child: ChildProcess = spawn(command[0], command.slice(1), { stdio: ["ignore", "pipe", "pipe"] });
  const url = await new Promise<string>((resolve, reject) => {
    let text = "";
    const hear = (data: Buffer) => {
      text += data.toString();
      const found = /http:\/\/127\.0\.0\.1:\d+\/#t=\S+/.exec(text);
      if (found) resolve(found[0]);
    };
    child.stdout?.on("data", hear);
    child.stderr?.on("data", hear);
    child.on("exit", (code) => reject(new Error(`${command.join(" ")} ended with ${code}: ${text}`)));
    setTimeout(() => reject(new Error(`no address within 60 s: ${text}`)), 60_000).unref();
  });
  const [origin, token] = url.split("/#t=");
  return { url, origin, token, stop: () => { child.removeAllListeners("exit"); child.kill("SIGINT"); } };
}

export async function startBrowser(): Promise<Browser> {
  const executablePath = process.env.LANESCOPE_CHROMIUM ?? "/usr/bin/chromium";
  if (!fs.existsSync(executablePath)) throw new Error(`expected Chromium at ${executablePath}: apt-get install chromium, or set LANESCOPE_CHROMIUM`);
  return chromium.launch({ executablePath, args: ["--no-sandbox"] });
}

// A page that fails the test when a script of it fails, or when the policy of content is broken.
export async function open(browser: Browser, url: string, options: { dark?: boolean; width?: number; height?: number } = {}): Promise<{ page: Page; problems: string[] }> {
  const context = await browser.newContext({
    viewport: { width: options.width ?? 1440, height: options.height ?? 900 }, colorScheme: options.dark === true ? "dark" : "light", reducedMotion: "reduce",
    acceptDownloads: true,
  });
  const page = await context.newPage();
  page.setDefaultTimeout(20_000);
  const problems: string[] = [];
  page.on("pageerror", (error) => problems.push(error.message));
  page.on("console", (message) => { if (message.type() === "error" && !/status of (4|5)\d\d/.test(message.text())) problems.push(message.text()); });
  await page.goto(url);
  await page.waitForSelector(".lane-label, .start-problem[role=alert]");
  await page.waitForFunction(() => document.querySelector(".headline:not(.faint), .start-problem") !== null);
  await settle(page);
  return { page, problems };
}

// Until answers have come and pictures are drawn.
export async function settle(page: Page): Promise<void> {
  await page.waitForLoadState("domcontentloaded");
  await page.waitForTimeout(350);
}

export async function press(page: Page, ...keys: string[]): Promise<void> {
  for (const key of keys) {
    await page.keyboard.press(key);
    await page.waitForTimeout(180);
  }
  await settle(page);
}
