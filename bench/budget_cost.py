#!/usr/bin/env python3
"""What a recording with a budget costs a tight loop, by the length of the loop: the loop may end at any time.

    python3 bench/budget_cost.py [--budget 1%] [--seconds 0.25 1 4 10] [--rounds 9] [--details] [--program training]

The loop is `torch.add` of two tensors with one element, the smallest operator that there is; or training steps of a small
network; or, on a GPU, products and sums of 64x64 matrices. Each round runs it without a profiler before and after
`lanescope.profile(budget=...)`, which begins with the loop. `--details` also asks for shapes and stacks. `--processes N` runs N at
once, each with two cores of its own, and reports their rounds together.

share: what the recording says of itself (lanescope_cost: docs/definitions/recording.md#budget), of the loop's time.
slowdown: CPU time of the thread (on a GPU: time) for one operator or step with the profiler, divided by the mean of those without
in the same round, minus 1.
Both: median and largest of the rounds, in percent; of the slowdown also the 95 % interval of its median (bootstrap). The line below has
only the rounds whose two loops without a profiler differ by at most 1 %, because a machine that changes its speed within a round
says nothing about 1 %. operators: how many of them (or of the steps' aten::linear, or kernels) are recorded. calls of the GPU's API: what lanescope's
callback for them took, in percent of the time (median).
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from typing import Callable, Dict, List, Tuple

import torch

import lanescope
import median_error
import seen_cost

ONE, OUT = torch.ones(1), torch.empty(1)
MOST_CHANGE = 0.01  # between the loops without a profiler of a steady round


def add_200() -> None:
    add, one, out = torch.add, ONE, OUT
    for _ in range(200):
        add(one, one, out=out)


@functools.lru_cache(None)
def on_gpu() -> List[torch.Tensor]:
    return [torch.randn(64, 64, dtype=torch.bfloat16, device="cuda") for _ in range(3)]


def products_50() -> None:
    x, w, b = on_gpu()
    for _ in range(50):
        with lanescope.record_function("matmul_add"):
            torch.add(torch.matmul(x, w), b)
    torch.cuda.synchronize()


# Work, what is counted, how many of them one call makes.
PROGRAMS: Dict[str, Tuple[Callable[[], None], str, int]] = {
    "add": (add_200, "aten::add", 200),
    "training": (lambda: seen_cost.training(1), "aten::linear", 8),
    "gpu": (products_50, "aten::mm", 50),
}


def loop(program: str, seconds: float) -> Tuple[int, float]:
    """Runs for that long; returns the number of operators, and the CPU time of one in ns."""
    work, _, operators = PROGRAMS[program]
    clock = time.perf_counter_ns if program == "gpu" else time.thread_time_ns
    count, end, began = 0, time.monotonic() + seconds, clock()
    while time.monotonic() < end:
        work()
        count += operators
    return count, (clock() - began) / count


def with_profiler(options: argparse.Namespace, seconds: float) -> Dict[str, float]:
    activities = [lanescope.ProfilerActivity.CPU]
    if options.program == "gpu" and not options.cpu:
        activities.append(lanescope.ProfilerActivity.CUDA)
    details = options.details
    prof = lanescope.profile(activities=activities, record_shapes=details, with_stack=details, budget=options.budget)
    prof.start()
    count, ns = loop(options.program, seconds)
    prof.stop()
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "trace.json"
        prof.export_chrome_trace(path)
        written = json.loads(path.read_text())
    events, cost = written["traceEvents"], written["lanescope_cost"]
    return {
        "share": cost["share_ratio"],
        "ns": ns,
        "recorded": sum(event.get("name") == PROGRAMS[options.program][1] for event in events) / count,
        "kernels": sum(event.get("cat") == "kernel" for event in events) / count,
        "gpu_calls": cost["gpu_calls_ns"] / cost["window_ns"],
    }


def one_round(options: argparse.Namespace, seconds: float) -> Dict[str, float]:
    _, before_ns = loop(options.program, min(seconds, 1.0))
    found = with_profiler(options, seconds)
    _, after_ns = loop(options.program, min(seconds, 1.0))
    bare = (before_ns + after_ns) / 2
    return {**found, "seconds": seconds, "slowdown": found["ns"] / bare - 1, "bare_ns": bare, "change": abs(after_ns / before_ns - 1)}


def rounds_of(options: argparse.Namespace) -> List[Dict[str, float]]:
    """Of this process."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    with_profiler(options, 0.2)  # what is done once
    return [one_round(options, seconds) for seconds in options.seconds for _ in range(options.rounds)]


def rounds_of_processes(options: argparse.Namespace) -> List[Dict[str, float]]:
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2 * options.processes:
        sys.exit(f"{options.processes} processes need {2 * options.processes} cores; this machine gives {len(cores)}")
    processes = [
        subprocess.Popen(
            [sys.executable, __file__, *sys.argv[1:], "--processes", "1", "--raw"],
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=lambda own=cores[2 * k : 2 * k + 2]: os.sched_setaffinity(0, own),
        )
        for k in range(options.processes)
    ]
    return [json.loads(line) for process in processes for line in process.communicate()[0].splitlines()]


def ratio_of(budget: str) -> float:
    return float(budget.strip().rstrip("%")) / 100


def percent(values: List[float]) -> str:
    return f"{100 * statistics.median(values):6.2f} {100 * max(values):6.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budget", default="1%")
    parser.add_argument("--seconds", type=float, nargs="+", default=[0.25, 1, 4, 10])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--program", choices=list(PROGRAMS), default="add")
    parser.add_argument("--details", action="store_true", help="with shapes and stacks")
    parser.add_argument("--processes", type=int, default=1, metavar="N", help="at once (default: %(default)s)")
    parser.add_argument("--cpu", action="store_true", help="of --program gpu, only the CPU's side is recorded")
    parser.add_argument("--raw", action="store_true", help="the rounds as lines of JSON")
    options = parser.parse_args()
    rounds = rounds_of(options) if options.processes == 1 else rounds_of_processes(options)
    if options.raw:
        print("\n".join(json.dumps(each) for each in rounds), flush=True)
        return
    print("seconds  rounds   share: median, largest   slowdown: median, largest, interval of the median   operators recorded")
    for seconds in options.seconds:
        mine = [each for each in rounds if each["seconds"] == seconds]
        slowdowns = [each["slowdown"] for each in mine]
        low, high = median_error.interval(slowdowns)
        gpu = ""
        if options.program == "gpu":
            kernels = statistics.median(each["kernels"] for each in mine)
            calls = statistics.median(each["gpu_calls"] for each in mine)
            bare = statistics.median(each["bare_ns"] for each in mine)
            gpu = f"   {kernels:.2f} kernels a step of {bare / 1000:.1f} us; calls of the GPU's API {100 * calls:.2f} %"
        print(
            f"{seconds:7g} {len(mine):7d}   {percent([each['share'] for each in mine])} %            {percent(slowdowns)} %, "
            f"{100 * low:+.2f} .. {100 * high:+.2f} %      {100 * statistics.median(each['recorded'] for each in mine):.2f} %{gpu}",
            flush=True,
        )
        steady = [each["slowdown"] for each in mine if each["change"] <= MOST_CHANGE]
        if len(steady) >= median_error.FEWEST:
            low, high = median_error.interval(steady)
            print(
                f"        {len(steady):7d} steady rounds             {percent(steady)} %, {100 * low:+.2f} .. {100 * high:+.2f} %; "
                f"at most {100 * ratio_of(options.budget):g} %: {median_error.verdict(steady, ratio_of(options.budget))}",
                flush=True,
            )


if __name__ == "__main__":
    main()
