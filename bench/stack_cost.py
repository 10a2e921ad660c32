#!/usr/bin/env python3
"""What an operator costs more when its Python call stack is recorded: lanescope and torch.profiler.

    python3 bench/stack_cost.py [--rounds 15] [--ops 2000] [--depth 4 24 100]

A small operator (`torch.neg(x, out=y)`, 8 floats) in a loop, below `--depth` Python functions. Rounds of five blocks in one
process (no profiler; each profiler without and with stacks), `--ops` operators each, the order turning by one each round.
ns an operator: a block less the block without a profiler of its round; median and quartiles. Starting and stopping is
outside the block, and so are the first 50 operators. `fresh lines`: every operator is called from a line that was not seen
before, so that no table helps. `calls` has one Python function call for each operator, which torch.profiler traces
as well. Time is the CPU time of the thread.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from typing import Any, Callable, Dict, List, Tuple

import torch

import lanescope

Work = Callable[[int], None]
MODES: Dict[str, Callable[[], Any]] = {
    "no profiler": lambda: None,
    "lanescope": lambda: lanescope.profile(activities=[lanescope.ProfilerActivity.CPU]),
    "lanescope with_stack": lambda: lanescope.profile(activities=[lanescope.ProfilerActivity.CPU], with_stack=True),
    "torch.profiler": lambda: torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]),
    "torch.profiler with_stack": lambda: torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], with_stack=True
    ),
}
X, Y = torch.ones(8), torch.empty(8)
LINES = compile("neg(x, out=y)\n" * 100, "lines.py", "exec")
KEPT: List[Any] = []  # code objects, so that no two have one address


def loop(count: int) -> None:
    neg, x, y = torch.neg, X, Y
    for _ in range(count):
        neg(x, out=y)


def one() -> None:
    torch.neg(X, out=Y)


def calls(count: int) -> None:
    for _ in range(count):
        one()


def fresh_lines(count: int) -> None:
    scope = {"neg": torch.neg, "x": X, "y": Y}
    for _ in range(count // 100):
        KEPT.append(LINES.replace(co_filename=f"lines{len(KEPT)}.py"))
        exec(KEPT[-1], scope)


def below(depth: int, work: Work, count: int) -> None:
    if depth <= 0:
        return work(count)
    return below(depth - 1, work, count)


def ns_per_op(mode: str, depth: int, work: Work, ops: int) -> float:
    prof = MODES[mode]()
    if prof is not None:
        prof.start()
    time.sleep(0.02)
    below(depth, work, 50)
    took: List[int] = []

    def timed(count: int) -> None:
        begin = time.thread_time_ns()
        work(count)
        took.append(time.thread_time_ns() - begin)

    below(depth - 1, timed, ops)
    if prof is not None:
        prof.stop()
    return took[0] / ops


def quartiles(values: List[float]) -> Tuple[float, float, float]:
    low, median, high = statistics.quantiles(values, n=4)
    return low, median, high


def measure(title: str, depth: int, work: Work, rounds: int, ops: int) -> None:
    names = list(MODES)
    times: Dict[str, List[float]] = {name: [] for name in names}
    for name in names:
        ns_per_op(name, depth, work, ops)
    for round_ in range(rounds):
        for shift in range(len(names)):
            name = names[(round_ + shift) % len(names)]
            times[name].append(ns_per_op(name, depth, work, ops))
    bare = times["no profiler"]
    print(f"\n{title}, {depth} functions deep; no profiler: {statistics.median(bare):.0f} ns an operator")
    for name in names[1:]:
        low, median, high = quartiles([t - b for t, b in zip(times[name], bare)])
        print(f"  {name:<28}{median:>9.0f} ns more   [{low:.0f} .. {high:.0f}]")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--ops", type=int, default=2000)
    parser.add_argument("--depth", type=int, nargs="+", default=[4, 24, 100])
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print(f"torch {torch.__version__}, Python {sys.version.split()[0]}, {arguments.rounds} rounds of {arguments.ops} operators")
    for depth in arguments.depth:
        measure("loop", depth, loop, arguments.rounds, arguments.ops)
    measure("calls", 24, calls, arguments.rounds, arguments.ops)
    measure("fresh lines", 24, fresh_lines, arguments.rounds, arguments.ops)
    return 0


if __name__ == "__main__":
    sys.exit(main())
