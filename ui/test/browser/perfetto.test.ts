// What is handed to Perfetto's page, with a stand-in for it at its own address: nothing leaves this machine.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import net from "node:net";
import { after, before } from "node:test";
import type { Browser, BrowserContext } from "playwright-core";
import { binary, open, serve, settle, startBrowser, test, traceOf, withoutBinary } from "./harness.ts";

let browser: Browser;
before(async () => { browser = await startBrowser(); });
after(async () => { await browser?.close(); });

// As ui.perfetto.dev does: answers PING with PONG, then takes a buffer; and fetches what ?url= names.
const page = `<!doctype html><title>stand-in</title><script>
window.pings = 0;
addEventListener("message", (event) => {
  if (event.data === "PING") { window.pings += 1; if (window.pings > 2) event.source.postMessage("PONG", event.origin); }
  else if (event.data && event.data.perfetto) {
    const { buffer, title } = event.data.perfetto;
    window.got = { title, from: event.origin, isBuffer: buffer instanceof ArrayBuffer, text: new TextDecoder().decode(buffer) };
  }
});
const wanted = /[?&]url=([^&]+)/.exec(location.hash);
if (wanted) fetch(decodeURIComponent(wanted[1])).then((answer) => answer.text()).then((text) => { window.fetched = text; }, (reason) => { window.refused = String(reason); });
</script>`;

async function standIn(context: BrowserContext, origin: string): Promise<void> {
  await context.route(`${origin}/**`, (route) => route.fulfill({ contentType: "text/html", body: page }));
}

// Newer Chromium asks the person whether a page may reach this machine; here the answer is yes, so that the server has to refuse.
// The answer holds as long as the session that gave it.
async function allowLoopback(context: BrowserContext, origin: string): Promise<void> {
  const session = await browser.newBrowserCDPSession();
  const { browserContextIds } = await session.send("Target.getBrowserContexts");
  for (const browserContextId of browserContextIds) {
    await session.send("Browser.setPermission", { permission: { name: "loopback-network" }, setting: "granted", origin, browserContextId })
      .catch(() => undefined); // older: it does not ask
  }
  assert.ok(context.pages().length === 0, "before a page is opened");
}

interface StandIn { got?: { title: string; from: string; isBuffer: boolean; text: string }; fetched?: string; refused?: string }

test("a range goes to Perfetto's page by its handshake", { skip: withoutBinary }, async () => {
  const server = await serve(traceOf.training);
  try {
    const { page: own, problems } = await open(browser, server.url);
    await standIn(own.context(), "https://ui.perfetto.dev");
    await own.click("text=Share");
    const [other] = await Promise.all([own.context().waitForEvent("page"), own.click("text=Open this range in Perfetto")]);
    await other.waitForFunction(() => (window as unknown as StandIn).got !== undefined, undefined, { timeout: 30_000 });
    const got = await other.evaluate(() => (window as unknown as StandIn).got);
    assert.equal(got?.from, server.origin);
    assert.equal(got?.isBuffer, true);
    assert.match(got?.title ?? "", /trace\.json/);
    const events: { name?: string; cat?: string }[] = JSON.parse(got?.text ?? "{}").traceEvents;
    assert.ok(events.some((event) => event.cat === "kernel") && events.some((event) => /^aten::/.test(event.name ?? "")));
    await settle(own);
    assert.match(await own.textContent(".live") ?? "", /Perfetto has the range/);
    assert.equal(await own.locator(".toast").count(), 0);
    assert.deepEqual(problems, []);
    await own.context().close();
  } finally {
    server.stop();
  }
});

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = net.connect(port, "127.0.0.1");
    probe.on("connect", () => { probe.destroy(); resolve(false); });
    probe.on("error", () => resolve(true));
  });
}

// Starts `lanescope view --perfetto` and opens its link, with the host of the link replaced by `origin`.
async function fetchedBy(origin: string): Promise<StandIn & { said: string }> {
  const child = spawn(binary, ["view", traceOf.tiny, "--perfetto", "--no-open"], { stdio: ["ignore", "pipe", "ignore"] });
  try {
    const link = await new Promise<string>((resolve, reject) => {
      child.stdout.once("data", (data: Buffer) => resolve(data.toString().trim()));
      child.once("exit", (code, signal) => reject(new Error(`lanescope view --perfetto ended with ${code ?? signal}, and printed no link`)));
    });
    assert.ok(link.startsWith("https://ui.perfetto.dev/#!/?url=http://127.0.0.1:9001/"), link);
    const context = await browser.newContext();
    await standIn(context, origin);
    await allowLoopback(context, origin);
    const other = await context.newPage();
    const said: string[] = [];
    other.on("console", (message) => said.push(message.text()));
    await other.goto(link.replace("https://ui.perfetto.dev", origin));
    await other.waitForFunction(() => (window as unknown as StandIn).fetched !== undefined || (window as unknown as StandIn).refused !== undefined, undefined, { timeout: 30_000 });
    const answer = await other.evaluate(() => ({ fetched: (window as unknown as StandIn).fetched, refused: (window as unknown as StandIn).refused }));
    await context.close();
    return { ...answer, said: said.join(" ") };
  } finally {
    child.kill("SIGINT");
    await new Promise((resolve) => child.exitCode === null ? child.once("exit", resolve) : resolve(null));
  }
}

test("--perfetto gives the trace to Perfetto's page and to no other", { skip: withoutBinary }, async (context) => {
  for (let wait = 0; wait < 40 && !await isFree(9001); wait += 1) await new Promise((resolve) => setTimeout(resolve, 500)); // test_cli_view.py uses it, too
  if (!await isFree(9001)) return context.skip("another program uses port 9001");
  const other = await fetchedBy("https://evil.example");
  assert.equal(other.fetched, undefined);
  assert.match(other.refused ?? "", /Failed to fetch/);
  assert.match(other.said, /Access-Control-Allow-Origin.*https:\/\/ui\.perfetto\.dev/); // why: the header names another origin
  const own = await fetchedBy("https://ui.perfetto.dev");
  assert.equal(own.refused, undefined);
  assert.ok(JSON.parse(own.fetched ?? "{}").traceEvents.length > 10);
});
