#!/usr/bin/env python3
"""`lanescope sample --pid --native` and `py-spy record --native` look at the same program, one after the other.

    python3 bench/native_peers.py --lanescope build/release/src/lanescope/cli/lanescope --py-spy py-spy --seconds 10

The program is one thread with twelve Python functions in random order; each spends its time in another function of C or C++ (zlib,
hashes, json, sorting, torch). Printed for the ten functions with the largest shares: the share of samples that are in it,
in both, how far apart they are, and the standard error of that (samples taken to be independent). Then for the ten most frequent
pairs of such a function and a native one that both name: the share of the function's samples with native frames that have it. Then the cost: samples of those that were due, CPU time of the sampler
for one (its start included), and how much slower the program's rounds were than without a sampler before and after.
"""

from __future__ import annotations

import argparse
import mmap
import os
import random
import re
import resource
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from typing import Dict, List, Tuple

PROGRAM = """
import bz2, hashlib, json, mmap, random, re, struct, sys, zlib
import torch
torch.set_num_threads(1)
file = open(sys.argv[1], "r+b")
rounds = mmap.mmap(file.fileno(), 8)
data, text = bytes(range(256)) * 200, json.dumps(list(range(1500)))
x, y, values = torch.randn(96, 96), torch.randn(8000), [random.random() for _ in range(3000)]
def work_0(): zlib.compress(data, 6)
def work_1(): json.loads(text)
def work_2(): hashlib.sha256(data * 3).digest()
def work_3(): sorted(values)
def work_4(): torch.mm(x, x)
def work_5(): torch.sort(y)
def work_6(): torch.exp(y)
def work_7(): zlib.crc32(data * 8)
def work_8(): re.findall("1[0-9]+5", text)
def work_9(): bz2.compress(data[:3000])
def work_10(): torch.cumsum(y, 0)
def work_11(): json.dumps(values[:400])
works = [globals()["work_%d" % k] for k in range(12)]
count = 0
while True:
    random.shuffle(works)
    for work in works:
        work()
    count += 1
    rounds[:] = struct.pack("q", count)
"""


def function_of(frame: str) -> str:
    """Without file, line, library, arguments and template arguments: "file.py(3): f", "f (file.py:3)", "f [lib.so]", "f (lib.so)"."""
    name = re.sub(r"^.*\(\d+\): ", "", frame.strip())
    name = re.sub(r" (\([^()]*\)|\[[^\[\]]*\])$", "", name)
    name = name.replace("(anonymous namespace)", "").split("(")[0].split("<")[0].strip()
    return name.split(" ")[-1] if "::" in name else name


def shares(folded: str) -> Tuple[Counter, Counter, int]:
    """Samples of each of the twelve functions; of pairs of one of them and a native function below it, and (function, "") for those
    with any native function; all of them."""
    found: Counter = Counter()
    native: Counter = Counter()
    for line in folded.splitlines():
        stack, _, count = line.rpartition(" ")
        names = [function_of(frame) for frame in stack.split(";")]
        at = next((k for k, name in enumerate(names) if re.fullmatch(r"work_\d+", name)), None)
        if not count.isdigit() or at is None:
            continue
        found[names[at]] += int(count)
        below = {name for name in names[at + 1 :] if not re.match(r".*\.py|dumps|loads|findall|encode|decode|raw_decode", name)}
        for name in below | ({""} if below else set()):
            native[names[at], name] += int(count)
    return found, native, sum(found.values())


class Program:
    def __init__(self, folder: str) -> None:
        path = os.path.join(folder, "rounds")
        with open(path, "wb") as file:
            file.write(bytes(8))
        script = os.path.join(folder, "native_program.py")
        with open(script, "w", encoding="utf-8") as file:
            file.write(PROGRAM)
        self._rounds = mmap.mmap(os.open(path, os.O_RDWR), 8)
        self.process = subprocess.Popen([sys.executable, script, path])
        while self.rounds() < 3:
            if self.process.poll() is not None:
                sys.exit("the program ended")
            time.sleep(0.1)

    def rounds(self) -> int:
        return int(struct.unpack("q", self._rounds[:])[0])

    def pace(self, seconds: float) -> float:
        """Rounds a second."""
        before, began = self.rounds(), time.monotonic()
        time.sleep(seconds)
        return (self.rounds() - before) / (time.monotonic() - began)


def sampled(command: List[str], output: str, program: Program, seconds: float) -> Dict[str, object]:
    before = program.pace(seconds / 2)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(1)  # it starts
    pace = program.pace(seconds - 2)
    out, err = process.communicate()
    now = resource.getrusage(resource.RUSAGE_CHILDREN)
    if process.returncode != 0:
        sys.exit(f"{command[0]}: {err}")
    bare = (before + program.pace(seconds / 2)) / 2
    if output:
        with open(output, encoding="utf-8") as file:
            out = file.read()
    found, native, total = shares(out)
    return {
        "shares": found,
        "native": native,
        "samples": total,
        "cpu": now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime,
        "slower": bare / pace - 1 if pace > 0 else float("inf"),
    }


def table(title: str, rows: List[Tuple[str, Tuple[int, int], Tuple[int, int]]]) -> None:
    """Rows: a name, and of lanescope and py-spy the samples that have it and those that could."""
    worst = 0.0
    print(f"{title:56s} lanescope   py-spy    apart   standard error")
    for name, (mine, of_mine), (other, of_other) in rows:
        a, b = mine / of_mine, other / of_other
        error = (a * (1 - a) / of_mine + b * (1 - b) / of_other) ** 0.5
        worst = max(worst, abs(a - b) / error if error else 0.0)
        print(f"{name[:56]:56s} {100 * a:8.2f} % {100 * b:7.2f} % {100 * abs(a - b):6.2f} % {100 * error:8.2f} %")
    print(f"at most {worst:.1f} standard errors apart\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lanescope", default="lanescope")
    parser.add_argument("--py-spy", default="py-spy")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--rate", type=int, default=200, help="samples a second (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=1, help="how often both, in turns (default: %(default)s)")
    options = parser.parse_args()
    random.seed(1)
    with tempfile.TemporaryDirectory() as folder:
        program = Program(folder)
        try:
            raw = os.path.join(folder, "py-spy.folded")
            pid, seconds, rate = str(program.process.pid), str(int(options.seconds)), str(options.rate)
            ours = [options.lanescope, "sample", "--pid", pid, "--native", "--rate", rate, "--seconds", seconds]
            theirs = [options.py_spy, "record", "--pid", pid, "--native", "--rate", rate, "--duration", seconds,
                      "--format", "raw", "--output", raw]  # fmt: skip
            parts: Dict[str, List[Dict]] = {"lanescope": [], "py-spy": []}
            for _ in range(options.rounds):
                parts["lanescope"].append(sampled(ours, "", program, options.seconds))
                parts["py-spy"].append(sampled(theirs, raw, program, options.seconds))
        finally:
            program.process.kill()
            program.process.wait()
    sums = {
        name: {what: sum((run[what] for run in runs), Counter()) for what in ("shares", "native")}
        for name, runs in parts.items()
    }
    mine, other = sums["lanescope"], sums["py-spy"]
    all_mine, all_other = sum(mine["shares"].values()), sum(other["shares"].values())
    if not all_mine or not all_other:
        sys.exit(f"samples of the program's functions: lanescope {all_mine}, py-spy {all_other}")
    table(
        "Python function",
        [(name, (count, all_mine), (other["shares"][name], all_other)) for name, count in mine["shares"].most_common(10)],
    )
    pairs = [
        pair for pair, _ in other["native"].most_common() if pair[1] and mine["native"][pair] and not pair[1].startswith("0x")
    ]
    table(
        "its native functions, of samples with native frames",
        [
            (
                ": ".join(pair),
                (mine["native"][pair], mine["native"][pair[0], ""]),
                (other["native"][pair], other["native"][pair[0], ""]),
            )
            for pair in pairs[:10]
        ],
    )
    due = options.rounds * int(options.seconds) * options.rate
    for name, runs in parts.items():
        samples = sum(run["samples"] for run in runs)
        cpu = sum(run["cpu"] for run in runs)
        slower = statistics.median(run["slower"] for run in runs)
        print(f"{name:10s} {samples} samples of {due} due, {1e6 * cpu / due:.0f} us of CPU time for each due; the program: {100 * slower:+.1f} %")


if __name__ == "__main__":
    main()
