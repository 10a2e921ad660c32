#!/usr/bin/env python3
"""What sampling Python stacks costs, whether the samples are right, and whether anything breaks.

    python3 bench/python_samples.py cost [--pairs 15] [--seconds 2]
    python3 bench/python_samples.py peer [--seconds 20]        needs py-spy (PyPI) and the right to trace a child
    python3 bench/python_samples.py stdlib --python python3.15 --lanescope build/release/src/lanescope/cli/lanescope
    python3 bench/python_samples.py crash [--stacks 1000000]
    python3 bench/python_samples.py outside --python python3.9 [--stacks 1000000]

`cost`: torch.add(torch.matmul(x, w), b) of 64x64 in a loop, in one process, pairs of blocks with and without samples (1,000 a
second), which of the two comes first alternating; both blocks record operators. Printed: the median of the pairs' ratios and
their quartiles, for the time of a loop and for the CPU time of the thread that runs it. On a machine with other work only the
second says something about the program's own cost. The loop's thread stays on one core, as far as there are more than two, and the
sampling thread may use all. Printed as well: the CPU time of the sampling thread for one look.

`peer`: a program of known proportions samples itself while py-spy samples it from outside, as often. Printed: the share of each of
the ten top functions in both, their difference, and the standard error of that difference (samples taken to be independent).
Fails when one differs by more than four standard errors and one percent of all samples.

`stdlib`: the same with the sampler of the standard library of --python (profiling.sampling, from 3.15 on), and with
`lanescope sample --pid`: both from outside, at the same time.

`crash`: a program whose threads start and end, recurse deeply, run generators and coroutines, unload modules and fork, until so
many stacks were taken (at 10,000 times a second). Fails when the program or a child of it fails.

`outside`: the same program (busy_python.py) under --python, sampled by `lanescope sample --pid` until so many stacks were taken.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from typing import Any, Dict, List, Tuple

import busy_python
import lanescope
from lanescope import _core

CPU = [lanescope.ProfilerActivity.CPU]
CORES = sorted(os.sched_getaffinity(0))


def exported(prof: Any) -> Dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        prof.export_chrome_trace(path)
        with open(path, encoding="utf-8") as file:
            return json.load(file)


# -- cost ---------------------------------------------------------------------------------------------------------------


def block(seconds: float, rate: int, looks: List[Dict[str, Any]]) -> Tuple[float, float]:
    """Seconds of the clock and of this thread's CPU time for a loop. `looks`: what the sampling thread counted is added."""
    import torch

    x, w, b = torch.randn(64, 64), torch.randn(64, 64), torch.randn(64)
    loops = 0
    with lanescope.profile(activities=CPU, sample_python=rate) as prof:
        if len(CORES) > 2:
            os.sched_setaffinity(0, {CORES[2]})  # of this thread only
        end = time.perf_counter() + seconds
        began, cpu = time.perf_counter(), time.thread_time()
        while time.perf_counter() < end:
            for _ in range(200):
                torch.add(torch.matmul(x, w), b)
            loops += 200
        took, cpu = time.perf_counter() - began, time.thread_time() - cpu
        os.sched_setaffinity(0, set(CORES))  # threads that start from here on may use all
    if rate:
        looks.append(exported(prof)["lanescope_python_samples"])
    return took / loops, cpu / loops


def cost(args: argparse.Namespace) -> int:
    import torch

    torch.set_num_threads(1)
    looks: List[Dict[str, Any]] = []
    block(0.5, 0, looks), block(0.5, 1000, looks)
    ratios: List[Tuple[float, float]] = []
    for pair in range(args.pairs):
        times = {}
        for rate in (0, 1000) if pair % 2 == 0 else (1000, 0):
            times[rate] = block(args.seconds, rate, looks)
        ratios.append((times[1000][0] / times[0][0], times[1000][1] / times[0][1]))
    for name, values in (("time", [ratio[0] for ratio in ratios]), ("CPU time of its thread", [ratio[1] for ratio in ratios])):
        low, middle, high = statistics.quantiles(values, n=4)
        print(f"with 1,000 samples a second a loop takes {middle:.4f} times the {name}, quartiles {low:.4f} to {high:.4f}")
    low, middle, high = statistics.quantiles([look["cpu_us"] / max(look["times"], 1) for look in looks[1:]], n=4)
    late = sum(look["late"] for look in looks) / max(sum(look["times"] + look["late"] for look in looks), 1)
    print(f"the sampling thread took {middle:.1f} us of CPU time a look, quartiles {low:.1f} to {high:.1f}; {late:.1%} of the looks were late")
    print(f"{args.pairs} pairs of {args.seconds} s")
    return 0


# -- peer ---------------------------------------------------------------------------------------------------------------

NAMES = [f"work_{index}" for index in range(12)]
SOURCE = "\n".join(
    f"def {name}(steps):\n    total = 0\n    for i in range(steps * {index + 1}):\n        total += i\n    return total\n"
    for index, name in enumerate(NAMES)
)


def run_known(seconds: float) -> None:
    """Twelve functions, the k-th with k times the work of the first."""
    scope: Dict[str, Any] = {}
    exec(compile(SOURCE, "known.py", "exec"), scope)
    order = random.Random(5).choices(NAMES, k=4096)  # no period that a fixed rate could meet
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for name in order:
            scope[name](20)  # short calls: samples of one call are not independent


def child(args: argparse.Namespace) -> int:
    print("ready", flush=True)
    sys.stdin.readline()
    with lanescope.profile(activities=CPU, sample_python=1000) as prof:
        run_known(args.seconds)
    trace = exported(prof)
    found = Counter()
    for event in trace["traceEvents"]:
        if event.get("cat") == "python_sample":
            found[event["name"].rpartition(": ")[2]] += event["args"]["Self samples"]
    print(json.dumps({"functions": found, "counts": trace["lanescope_python_samples"]}))
    return 0


def peer(args: argparse.Namespace) -> int:
    folder = tempfile.mkdtemp()
    raw = os.path.join(folder, "raw.txt")
    ours = subprocess.Popen([sys.executable, __file__, "child", "--seconds", str(args.seconds)], stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, text=True)
    assert ours.stdin and ours.stdout
    ours.stdout.readline()
    spy = subprocess.Popen(["py-spy", "record", "--nonblocking", "-r", "1000", "-f", "raw", "-F", "-d",
                            str(int(args.seconds)), "-o", raw, "--pid", str(ours.pid)],
                           stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    ours.stdin.write("go\n")
    ours.stdin.flush()
    answer = json.loads(ours.stdout.readline())
    complaint = spy.communicate()[1]
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)  # py-spy only: the other child still waits
    ours.wait()
    theirs: Counter = Counter()
    with open(raw, encoding="utf-8") as file:
        for line in file:
            stack, _, count = line.rpartition(" ")
            theirs[stack.rpartition(";")[2].split(" ")[0]] += int(count)
    print(f"lanescope: {answer['counts']}")
    print(f"py-spy: {1e6 * (spent.ru_utime + spent.ru_stime) / (1000 * int(args.seconds)):.1f} us of CPU time a sample that was due; "
          f"{' '.join(complaint.split()) or 'no complaint'}")
    return compare(Counter(answer["functions"]), theirs, "py-spy")


def compare(mine: Counter, theirs: Counter, peer_name: str) -> int:
    """Prints both shares of the ten top functions; 1: one of them differs too much."""
    mine = Counter({name: count for name, count in mine.items() if name in NAMES})
    theirs = Counter({name: count for name, count in theirs.items() if name in NAMES})
    n, m = sum(mine.values()), sum(theirs.values())
    print(f"samples in the twelve functions: lanescope {n}, {peer_name} {m}")
    if n == 0 or m == 0:
        return 1
    print(f"{'function':<10} {'expected':>9} {'lanescope':>10} {peer_name:>9} {'apart':>8} {'error':>8}")
    worst = 0
    for name, _ in mine.most_common(10):
        a, b = mine[name] / n, theirs[name] / m
        error = (a * (1 - a) / n + b * (1 - b) / m) ** 0.5
        expected = (NAMES.index(name) + 1) / 78  # without the time of the calls themselves
        worst += abs(a - b) > 4 * error and abs(a - b) > 0.01
        print(f"{name:<10} {expected:9.2%} {a:10.2%} {b:9.2%} {abs(a - b):8.2%} {error:8.2%}")
    return 1 if worst else 0


PROGRAM = """
import random, sys, time
{source}
order = random.Random(5).choices({names}, k=1 << 18)  # seconds: a fixed rate meets no period
end = time.perf_counter() + {seconds}
print("ready", flush=True)
while time.perf_counter() < end:
    for name in order:
        globals()[name](20)
"""


def stdlib(args: argparse.Namespace) -> int:
    folder = tempfile.mkdtemp()
    program, raw = os.path.join(folder, "known.py"), os.path.join(folder, "raw.txt")
    with open(program, "w", encoding="utf-8") as file:
        file.write(PROGRAM.format(source=SOURCE, names=NAMES, seconds=args.seconds + 5))
    known = subprocess.Popen([args.python, program], stdout=subprocess.PIPE, text=True)
    assert known.stdout
    known.stdout.readline()
    seconds, pid = str(int(args.seconds)), str(known.pid)
    commands = ([args.lanescope, "sample", "--pid", pid, "--seconds", seconds],
                [args.python, "-m", "profiling.sampling", "attach", "-d", seconds, "-r", "1000", "--collapsed", "-o", raw, pid])
    commands = [["bash", "-c", 'time "$@"', "--", *command] for command in commands]  # its CPU time
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for command in commands]
    (folded, ours), (out, theirs_said) = (each.communicate() for each in both)
    for each, said in zip(both, (ours, out + theirs_said)):
        print(f"{os.path.basename(each.args[4])}: {' '.join(said.split())[:600]}")
    known.kill()
    known.wait()
    if not os.path.exists(raw):
        return 1
    with open(raw, encoding="utf-8") as file:
        counted = [innermost_counts(folded), innermost_counts(file.read())]
    return compare(*counted, "stdlib")


def innermost_counts(folded: str) -> Counter:
    """Samples by innermost function of "outermost;...;innermost N" lines, whatever else a frame says."""
    found: Counter = Counter()
    for line in folded.splitlines():
        stack, _, count = line.rpartition(" ")
        name = re.search(r"work_\d+", stack.rpartition(";")[2])
        if name and count.isdigit():
            found[name.group()] += int(count)
    return found


# -- crash --------------------------------------------------------------------------------------------------------------


def crash(args: argparse.Namespace) -> int:
    stop = threading.Event()
    waiters = [threading.Thread(target=stop.wait) for _ in range(busy_python.WAITERS)]
    for thread in waiters:
        thread.start()
    index = 0
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        with lanescope.profile(activities=CPU, sample_python=10_000, max_size="2G") as prof:
            while _core.samples_taken() < args.stacks:
                index += 1
                busy_python.one_round(folder, index, lambda: 0 if _core.samples_taken() == 0 else 3)
            taken = _core.samples_taken()
    stop.set()
    print(f"{taken} stacks, {index} rounds, {index * 6} threads, {index // 50} forks, {time.perf_counter() - began:.0f} s; "
          f"the recording takes {prof.stats()['file_bytes'] / 1e6:.0f} MB")
    counts = [entry for entry in [exported(prof).get("lanescope_python_samples")] if entry]
    print(f"counts: {counts}")
    return 0


def outside(args: argparse.Namespace) -> int:
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "busy_python.py")
    busy = subprocess.Popen([args.python, program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    stacks = torn = looks = 0
    began = time.perf_counter()
    time.sleep(1)
    while stacks < args.stacks and busy.poll() is None:
        done = subprocess.run([args.lanescope, "sample", "--pid", str(busy.pid), "--seconds", f"{args.seconds:.0f}", "--rate", "10000"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        counts = re.search(r"^(?:lanescope: )?([\d,]+) (?:times|looks) .* ([\d,]+) torn", done.stderr, re.MULTILINE)
        if done.returncode != 0 or not counts:
            print(f"lanescope sample ended with {done.returncode}: {done.stderr.strip()}")
            break
        looks += int(counts.group(1).replace(",", ""))
        torn += int(counts.group(2).replace(",", ""))
        stacks += sum(int(line.rpartition(" ")[2]) for line in done.stdout.splitlines())
    rounds = busy.communicate("")[0].strip()
    print(f"{args.python}: {stacks} stacks in {looks} looks, {torn} torn, {rounds} rounds of the program, {time.perf_counter() - began:.0f} s; "
          f"it ended with {busy.returncode}", flush=True)
    return 0 if stacks >= args.stacks and busy.returncode == 0 else 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["cost", "peer", "stdlib", "crash", "outside", "child"])
    parser.add_argument("--python", default="python3.15", help="with stdlib and outside: the interpreter of the program (default: %(default)s)")
    parser.add_argument("--lanescope", default="lanescope", help="with stdlib and outside: the command")
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=None)
    parser.add_argument("--stacks", type=int, default=1_000_000)
    args = parser.parse_args()
    if args.seconds is None:
        args.seconds = 2.0 if args.what == "cost" else 20.0
    return {"cost": cost, "peer": peer, "stdlib": stdlib, "crash": crash, "outside": outside, "child": child}[args.what](args)


if __name__ == "__main__":
    sys.exit(main())
