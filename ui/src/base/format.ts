// Times, counts and sizes as people read them. All times are nanoseconds.

const timeUnits: readonly [number, string][] = [
  [1e9, "s"],
  [1e6, "ms"],
  [1e3, "µs"],
  [1, "ns"],
];

// Three digits that count: "9.27 µs", "41.3 ms", "1.24 s", "0 ns", "−21.8 ms".
export function formatTime(ns: number): string {
  const size = Math.abs(ns);
  for (const [unit, name] of timeUnits) {
    // 999.96 µs would be rounded to 1000 µs: the larger unit says it better.
    if (size >= unit * 0.99995 || unit === 1) return `${threeDigits(ns / unit, unit === 1).replace("-", "−")} ${name}`;
  }
  return "0 ns";
}

function threeDigits(value: number, whole: boolean): string {
  const size = Math.abs(value);
  if (whole && Number.isInteger(value)) return String(value);
  const digits = size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2;
  return value.toFixed(digits);
}

// With its sign: "+15.5 µs", "−36.5 µs", "same".
export function formatChange(ns: number): string {
  return ns === 0 ? "same" : `${ns > 0 ? "+" : "−"}${formatTime(Math.abs(ns))}`;
}

// A place on the axis, exact to the nanosecond: "12.345678 ms". `step` is the distance of two ticks: no digit is shown
// that the ticks do not need.
export function formatTick(ns: number, step: number): string {
  const [unit, name] = timeUnits.find(([size]) => Math.max(Math.abs(ns), step) >= size) ?? [1, "ns"];
  const digits = clampDigits(Math.ceil(Math.log10(unit / step) - 1e-9));
  return `${(ns / unit).toFixed(digits)} ${name}`;
}

// With every nanosecond, for the details: "7,148.125 µs".
export function formatExactTime(ns: number): string {
  const [unit, name] = timeUnits.find(([size]) => Math.abs(ns) >= size) ?? [1, "ns"];
  const digits = clampDigits(Math.round(Math.log10(unit)));
  const text = (ns / unit).toFixed(Number.isInteger(ns) ? digits : digits + 1).replace(/\.?0+$/, "");
  return `${groupDigits(text === "" ? "0" : unit === 1 ? String(Math.round(ns * 10) / 10) : text)} ${name}`;
}

function clampDigits(digits: number): number {
  return Math.min(9, Math.max(0, digits));
}

function groupDigits(text: string): string {
  const [whole, rest] = text.split(".");
  const grouped = whole.replace(/\B(?=(\d{3})+(?!\d))/g, ",");
  return rest === undefined ? grouped : `${grouped}.${rest}`;
}

export function formatCount(count: number): string {
  return groupDigits(String(Math.round(count)));
}

export function plural(count: number, noun: string, many = `${noun}s`): string {
  return `${formatCount(count)} ${count === 1 ? noun : many}`;
}

// 0.123 is "12 %", 0.004 is "0.4 %".
export function formatShare(share: number): string {
  const percent = share * 100;
  if (percent === 0) return "0 %";
  if (Math.abs(percent) < 0.1) return "< 0.1 %";
  return `${Math.abs(percent) < 9.95 ? percent.toFixed(1) : percent.toFixed(0)} %`;
}

export function formatBytes(bytes: number): string {
  const names = ["B", "KiB", "MiB", "GiB", "TiB"];
  let value = bytes;
  let index = 0;
  while (Math.abs(value) >= 1024 && index < names.length - 1) {
    value /= 1024;
    index += 1;
  }
  return `${index === 0 ? formatCount(value) : threeDigits(value, false)} ${names[index]}`;
}

// Room for a time such as "1,234.567 ms" at a tick.
export const leastTickPixels = 110;

// Distance of ticks: 1, 2 or 5 times a power of ten, so that about `wanted` of them fit into `span`.
export function tickStep(span: number, wanted: number): number {
  const rough = span / Math.max(1, wanted);
  const power = 10 ** Math.floor(Math.log10(rough));
  const lead = rough / power;
  return Math.max(1e-1, (lead <= 1 ? 1 : lead <= 2 ? 2 : lead <= 5 ? 5 : 10) * power);
}

// "100us", "1.5 ms", "250": nanoseconds, or null. A plain number is microseconds, the unit of trace files.
export function parseTime(text: string): number | null {
  const match = /^\s*([0-9]*\.?[0-9]+)\s*(ns|us|µs|ms|s|)\s*$/.exec(text);
  if (!match) return null;
  const unit = { ns: 1, us: 1e3, "µs": 1e3, ms: 1e6, s: 1e9, "": 1e3 }[match[2]] ?? 1e3;
  return Number(match[1]) * unit;
}
