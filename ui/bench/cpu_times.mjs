// CPU time of this program's descendants: the browser's processes and the server. Unlike the distance of two frames it hardly depends on what
// else runs on the machine. Linux.
import fs from "node:fs";

function descendants() {
  const parents = new Map();
  for (const name of fs.readdirSync("/proc").filter((each) => /^\d+$/.test(each))) {
    try {
      const stat = fs.readFileSync(`/proc/${name}/stat`, "utf8");
      parents.set(Number(name), Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]));
    } catch {} // it has ended
  }
  const found = new Set([process.pid]);
  for (let before = 0; before !== found.size;) {
    before = found.size;
    for (const [child, parent] of parents) if (found.has(parent)) found.add(child);
  }
  found.delete(process.pid);
  return found;
}

// "renderer, main thread": ms. The names are those of Chromium's threads; what belongs to no process of Chromium is the server.
export function cpuTimes() {
  const times = new Map();
  for (const pid of descendants()) {
    try {
      const line = fs.readFileSync(`/proc/${pid}/cmdline`, "utf8");
      const process = line.includes("chromium") ? /--type=([a-z-]+)/.exec(line)?.[1] ?? "browser" : "server";
      for (const task of fs.readdirSync(`/proc/${pid}/task`)) {
        const thread = task === String(pid) ? "main thread" : fs.readFileSync(`/proc/${pid}/task/${task}/comm`, "utf8").trim().replace(/\d+$/, "");
        const name = process === "server" ? process : `${process}, ${thread}`;
        times.set(name, (times.get(name) ?? 0) + Number(fs.readFileSync(`/proc/${pid}/task/${task}/schedstat`, "utf8").split(" ")[0]) / 1e6);
      }
    } catch {} // it has ended
  }
  return times;
}

// What the browser's processes hold in memory, MiB. A page that several share counts once.
export function memoryMiB() {
  let kib = 0;
  for (const pid of descendants()) {
    try {
      if (!fs.readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("chromium")) continue;
      kib += Number(/^Pss:\s+(\d+) kB/m.exec(fs.readFileSync(`/proc/${pid}/smaps_rollup`, "utf8"))?.[1] ?? 0);
    } catch {} // it has ended
  }
  return kib / 1024;
}

// What each used between the two, for each of `frames`, most first. `all` has the sum of the browser's.
export function cpuPerFrame(before, after, frames) {
  const parts = [...after].map(([name, ms]) => [name, Math.max(0, ms - (before.get(name) ?? 0)) / frames]).sort((a, b) => b[1] - a[1]);
  return { browser: parts.filter(([name]) => name !== "server").reduce((sum, [, ms]) => sum + ms, 0), server: parts.find(([name]) => name === "server")?.[1] ?? 0, parts };
}
