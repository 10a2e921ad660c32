#!/usr/bin/env python3
"""How much of its own cost a recording with a budget sees, for programs of different kind.

    python3 bench/seen_cost.py [--rounds 9] [--only add backward]

Each round runs a block of work with lanescope (budget 50 %, so that nothing is left out) and without, in changing order. Per
unit of work (an operator, a range, an allocation with its free, a training step):

true: CPU time of the thread with the profiler, minus that without in the same round.
seen: what the recording says that it cost (lanescope_cost: docs/definitions/recording.md#budget).
seen / true: median and quartiles of the rounds. Below 1, a budget would be exceeded by that factor.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import statistics
import sys
import tempfile
import time
import warnings
from typing import Any, Callable, Dict, List, Optional, Tuple

import torch

import lanescope

ONE, OUT = torch.ones(1), torch.empty(1)
LEFT, RIGHT = torch.randn(64, 64), torch.randn(64, 64)
X = torch.randn(8, 32)


def add(count: int) -> None:
    function, one, out = torch.add, ONE, OUT
    for _ in range(count):
        function(one, one, out=out)


def matmul(count: int) -> None:
    for _ in range(count):
        torch.mm(LEFT, RIGHT)


def ranges(count: int) -> None:
    for _ in range(count):
        with lanescope.record_function("range"):
            pass


def allocations(count: int) -> None:
    for _ in range(count):
        torch.empty(1)


def make_net() -> torch.nn.Module:
    layers: List[torch.nn.Module] = []
    for _ in range(8):
        layers += [torch.nn.Linear(32, 32), torch.nn.LayerNorm(32), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers)


NET = make_net()
OPTIMIZER = torch.optim.SGD(NET.parameters(), lr=0.001, foreach=False)


def inference(count: int) -> None:
    with torch.no_grad():
        for _ in range(count):
            NET(X)


def training(count: int) -> None:
    for _ in range(count):
        OPTIMIZER.zero_grad()
        NET(X).square().mean().backward()
        OPTIMIZER.step()


# Work, units in a block, options of the profile.
PROGRAMS: Dict[str, Tuple[Callable[[int], None], int, Dict[str, Any]]] = {
    "add": (add, 30000, {}),
    "add, shapes": (add, 20000, {"record_shapes": True}),
    "matmul 64x64": (matmul, 8000, {}),
    "ranges": (ranges, 40000, {}),
    "allocations": (allocations, 20000, {"profile_memory": True}),
    "inference step": (inference, 40, {}),
    "training step": (training, 20, {}),
    "training step, shapes": (training, 20, {"record_shapes": True}),
    "training step, stacks": (training, 10, {"with_stack": True}),
}


def cost_of(prof: Any) -> int:
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "trace.json"
        prof.export_chrome_trace(path)
        written = json.loads(path.read_text())
    if "lanescope_thinned" in written:
        print("  something was left out: this round is wrong", file=sys.stderr)
    return int(written["lanescope_cost"]["cost_ns"])


# CPU time of the block; with options also the cost that the recording saw.
def run(work: Callable[[int], None], count: int, options: Optional[Dict[str, Any]]) -> Tuple[int, int]:
    work(max(count // 10, 1))
    if options is None:
        begin = time.thread_time_ns()
        work(count)
        return time.thread_time_ns() - begin, 0
    prof = lanescope.profile(activities=[lanescope.ProfilerActivity.CPU], budget="50%", **options)
    prof.start()
    begin = time.thread_time_ns()
    work(count)
    took = time.thread_time_ns() - begin
    prof.stop()
    return took, cost_of(prof)


def measure(name: str, rounds: int) -> None:
    work, count, options = PROGRAMS[name]
    bare, true, seen = [], [], []
    run(work, count, options)
    for number in range(rounds):
        took = {}
        for with_profiler in (number % 2 == 0, number % 2 != 0):
            took[with_profiler] = run(work, count, options if with_profiler else None)
        bare.append(took[False][0] / count)
        true.append((took[True][0] - took[False][0]) / count)
        seen.append(took[True][1] / count)
    low, median, high = statistics.quantiles([s / t for s, t in zip(seen, true)], n=4)
    print(
        f"{name:<24}{statistics.median(bare):>11.0f}{statistics.median(true):>11.0f}{statistics.median(seen):>11.0f}"
        f"{median:>13.2f}   [{low:.2f} .. {high:.2f}]",
        flush=True,
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", nargs="+", choices=list(PROGRAMS), default=list(PROGRAMS))
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    print(f"torch {torch.__version__}, Python {sys.version.split()[0]}, {options.rounds} rounds")
    print(f"{'ns for each unit':<24}{'bare':>11}{'true':>11}{'seen':>11}{'seen / true':>13}   quartiles")
    for name in options.only:
        measure(name, options.rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
