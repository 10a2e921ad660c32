#!/usr/bin/env python3
"""What a recording with a budget costs a tight loop, by the length of the loop: the loop may end at any time.

    python3 bench/budget_cost.py [--budget 1%] [--seconds 0.25 1 4 10] [--rounds 9] [--details] [--program training]

The loop is `torch.add` of two tensors with one element, the smallest operator that there is; or training steps of a small
network. Each round runs it without a profiler before and after `lanescope.profile(budget=...)`, which begins with the loop.
`--details` also asks for shapes and stacks.

share: what the recording says of itself (lanescope_cost: docs/definitions/recording.md#budget), of the loop's time.
slowdown: CPU time of the thread for one operator (or step) with the profiler, divided by the mean of those without in the same
round, minus 1.
Both: median and largest of the rounds, in percent; of the slowdown also the 95 % interval of its median (bootstrap). operators: how many of them (or of the steps' aten::linear) are recorded.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import statistics
import tempfile
import time
import warnings
from typing import Callable, Dict, List, Tuple

import torch

import lanescope
import median_error
import seen_cost

ONE, OUT = torch.ones(1), torch.empty(1)


def add_200() -> None:
    add, one, out = torch.add, ONE, OUT
    for _ in range(200):
        add(one, one, out=out)


# Work, the operators that are counted, how many of them one call makes.
PROGRAMS: Dict[str, Tuple[Callable[[], None], str, int]] = {
    "add": (add_200, "aten::add", 200),
    "training": (lambda: seen_cost.training(1), "aten::linear", 8),
}


def loop(program: str, seconds: float) -> Tuple[int, float]:
    """Runs for that long; returns the number of operators, and the CPU time of one in ns."""
    work, _, operators = PROGRAMS[program]
    count, end, began = 0, time.monotonic() + seconds, time.thread_time_ns()
    while time.monotonic() < end:
        work()
        count += operators
    return count, (time.thread_time_ns() - began) / count


def with_profiler(program: str, seconds: float, budget: str, details: bool) -> Tuple[float, float, float]:
    """Share of the time, ns of one operator, part of the operators that was recorded."""
    prof = lanescope.profile(
        activities=[lanescope.ProfilerActivity.CPU], record_shapes=details, with_stack=details, budget=budget
    )
    prof.start()
    count, ns = loop(program, seconds)
    prof.stop()
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "trace.json"
        prof.export_chrome_trace(path)
        written = json.loads(path.read_text())
    recorded = sum(event.get("name") == PROGRAMS[program][1] for event in written["traceEvents"])
    return written["lanescope_cost"]["share_ratio"], ns, recorded / count


def percent(values: List[float]) -> str:
    return f"{100 * statistics.median(values):6.2f} {100 * max(values):6.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budget", default="1%")
    parser.add_argument("--seconds", type=float, nargs="+", default=[0.25, 1, 4, 10])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--program", choices=list(PROGRAMS), default="add")
    parser.add_argument("--details", action="store_true", help="with shapes and stacks")
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    with_profiler(options.program, 0.2, options.budget, options.details)  # what is done once
    print("seconds   share: median, largest   slowdown: median, largest, interval of the median   operators recorded")
    for seconds in options.seconds:
        shares, slowdowns, recorded = [], [], []
        for _ in range(options.rounds):
            _, before_ns = loop(options.program, min(seconds, 1.0))
            share, ns, part = with_profiler(options.program, seconds, options.budget, options.details)
            _, after_ns = loop(options.program, min(seconds, 1.0))
            shares.append(share)
            slowdowns.append(2 * ns / (before_ns + after_ns) - 1)
            recorded.append(part)
        low, high = median_error.interval(slowdowns)
        print(f"{seconds:7g}   {percent(shares)} %            {percent(slowdowns)} %, {100 * low:+.2f} .. {100 * high:+.2f} %      "
              f"{100 * statistics.median(recorded):.2f} %", flush=True)


if __name__ == "__main__":
    main()
