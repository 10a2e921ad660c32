#!/usr/bin/env python3
"""The cost that a profiler leaves after it has stopped: the loop of cost.py in alternating processes.

    python3 bench/gpu/residual.py --device cuda --seconds 60 --out results/residual

Several processes a variant, all started at once and asked for one block of steps after the other, so that all of them see the
same machine. First nothing has been recorded in any; then each but those of "none" makes three recordings, and the rounds are
repeated. What stays is the lowest tenth of a process's blocks after, over that of its blocks before, over the same of the
processes of "none" in the same rounds (the lowest tenth, as a shared machine only ever makes a block slower). Printed: the
median of that over the processes of a variant, the least and the most, and for "none" how far its processes differ from their
own median, which is the noise.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import statistics
import sys
import time
from typing import Any, Dict, List, Tuple

import torch

import cost
import measure

# Name: (variant of measure.py, whether CUPTI leaves; None: as the profiler does by itself).
VARIANTS: Dict[str, Tuple[str, Any]] = {
    "none": ("none", None),
    "lanescope": ("lanescope cpu+cuda", None),
    "lanescope, detach=False": ("lanescope cpu+cuda", False),
    "torch.profiler": ("torch cpu+cuda", None),
}


def serve(pipe: Any, device: str, variant: str, leave: Any, steps: int) -> None:
    """In a process of its own: "block" is answered with us a step, "record" makes a recording."""
    torch.set_num_threads(1)
    step = cost.loop_step(device)
    paired = measure.Paired(variant, device, step, cost.nothing)
    pipe.send("ready")
    for command in iter(pipe.recv, "end"):
        pipe.send(paired.bare(steps) if command == "block" else paired.recorded(steps, leave))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--device", default="cuda", choices=("cpu", "cuda"))
    add("--processes", type=int, default=3, help="of each variant (default: %(default)s)")
    add("--steps", type=int, default=1000, help="of one block (default: %(default)s)")
    add("--seconds", type=float, default=60, help="of rounds, half of them before the recordings (default: %(default)s)")
    add("--out", default="gpu_bench/residual", help="folder of the results (default: %(default)s)")
    return parser.parse_args()


def lowest_tenth(values: List[float]) -> float:
    return measure.percentile(sorted(values), 0.1)


def rounds(pipes: List[Any], seconds: float) -> List[List[float]]:
    """Blocks of each process, in rounds of another order each."""
    times: List[List[float]] = [[] for _ in pipes]
    order = list(range(len(pipes)))
    deadline = time.perf_counter() + seconds
    while time.perf_counter() < deadline or len(times[0]) < 2:
        random.shuffle(order)
        for at in order:
            pipes[at].send("block")
            times[at].append(pipes[at].recv())
    return times


def main() -> int:
    arguments = parse()
    names = [name for name in VARIANTS for _ in range(arguments.processes)]
    context = multiprocessing.get_context("spawn")
    pipes, processes = [], []
    for name in names:
        here, there = context.Pipe()
        processes.append(context.Process(target=serve, daemon=True,
                                         args=(there, arguments.device, *VARIANTS[name], arguments.steps)))
        processes[-1].start()
        there.close()
        pipes.append(here)
    for pipe in pipes:
        pipe.recv()
    rounds(pipes, 2)
    before = rounds(pipes, arguments.seconds / 2)
    for name, pipe in zip(names, pipes):
        for _ in range(0 if name == "none" else 3):
            pipe.send("record")
            pipe.recv()
    rounds(pipes, 2)
    after = rounds(pipes, arguments.seconds / 2)
    for pipe in pipes:
        pipe.send("end")
    for process in processes:
        process.join(20)
    change = [lowest_tenth(b) / lowest_tenth(a) for a, b in zip(before, after)]
    drift = statistics.median(c for c, name in zip(change, names) if name == "none")
    print(f"{len(before[0])} + {len(after[0])} rounds of {arguments.steps} steps, {arguments.processes} processes a variant; "
          f"a step of those of \"none\": "
          f"{statistics.median(lowest_tenth(a) for a, name in zip(before, names) if name == 'none'):.2f} us; drift of the machine "
          f"{100 * (drift - 1):+.2f} %")
    print(f"{'stays after stop':<26}{'median':>8}   least .. most")
    result: Dict[str, List[float]] = {}
    for name in VARIANTS:
        left = sorted(100 * (c / drift - 1) for c, of in zip(change, names) if of == name)
        result[name] = left
        print(f"{name:<26}{statistics.median(left):>+7.2f}%   {left[0]:+.2f} .. {left[-1]:+.2f}")
    measure.write_json(os.path.join(arguments.out, "residual.json"),
                       {"names": names, "before_us": before, "after_us": after, "percent": result})
    return 0


if __name__ == "__main__":
    sys.exit(main())
