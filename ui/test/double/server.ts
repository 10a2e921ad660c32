// A double of `lanescope view` for work on the page without the binary: the same API, answered by brute force.
//   node ui/build/double.mjs TRACE.json[.gz] PORT      (made by: node ui/tools/double.mjs)
import fs from "node:fs";
import http from "node:http";
import path from "node:path";
import { columnsOf } from "../../src/api/saved_data.ts";
import { SavedEngine } from "../../src/api/saved_engine.ts";
import { readChromeTrace, savedFromEvents } from "./draw_trace.ts";
import { encodeFrame } from "./encode_frame.ts";

const [trace, port] = process.argv.slice(2);
const saved = savedFromEvents(readChromeTrace(trace).traceEvents, path.basename(trace));
const engine = new SavedEngine(saved, columnsOf(saved));
const dist = path.resolve("dist");

async function answer(url: URL, body: Record<string, never>): Promise<unknown> {
  switch (url.pathname) {
    case "/api/meta": return engine.meta();
    case "/api/frame": return encodeFrame(await engine.frame(body as never));
    case "/api/names": return { names: await engine.names(0, body.names) };
    case "/api/event": return engine.event(0, body.slice);
    case "/api/at": return engine.at(0, body.lane, body.row, body.t0, body.t1);
    case "/api/area": return engine.area(0, body.t0, body.t1, body.lanes);
    case "/api/search": return engine.search(0, body.text, body.limit);
    case "/api/explain": return engine.explain();
    case "/api/gaps": return engine.gaps(0, url.searchParams.get("sort") === "time" ? "time" : "cost", 500);
    case "/api/gap": return { gaps: [await engine.gap(0, body.index)] };
    case "/api/tour": return { stops: await engine.tour() };
    case "/api/table": return engine.table(0, body as never);
    case "/api/flame": return { nodes: await engine.flame(0, body.t0, body.t1, body.lane) };
    case "/api/memory": return engine.memory();
    case "/api/notes": return { notes: [] };
    default: throw new Error(`The double has no answer to ${url.pathname}.`);
  }
}

http.createServer(async (request, response) => {
  const url = new URL(request.url ?? "/", "http://double");
  if (!url.pathname.startsWith("/api/")) {
    const file = path.join(dist, url.pathname === "/" ? "index.html" : path.normalize(url.pathname));
    if (!file.startsWith(dist) || !fs.existsSync(file)) return void response.writeHead(404).end();
    const type = { ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8" }[path.extname(file)];
    response.writeHead(200, { "Content-Type": type ?? "application/octet-stream",
      "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'" });
    return void response.end(fs.readFileSync(file));
  }
  if (url.pathname === "/api/alive") return;
  if (request.headers["x-token"] !== "double") return void response.writeHead(401).end(JSON.stringify({ error: "expected the token of this run" }));
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  try {
    const result = await answer(url, chunks.length > 0 ? JSON.parse(Buffer.concat(chunks).toString()) : {});
    response.end(result instanceof ArrayBuffer ? Buffer.from(result) : JSON.stringify(result));
  } catch (reason) {
    response.writeHead(400).end(JSON.stringify({ error: reason instanceof Error ? reason.message : "failed" }));
  }
}).listen(Number(port), "127.0.0.1", () => console.log(`http://127.0.0.1:${port}/#t=double`));
