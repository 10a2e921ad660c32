#!/usr/bin/env python3
"""What `lanescope sample` from outside costs the sampled program, with and without --native.

    python3 bench/native_cost.py --lanescope build/release/src/lanescope/cli/lanescope --pairs 20

The program is a loop of torch.mm of 64x64 matrices on one thread. Blocks of 1.5 s alternate: a sampler at 1,000 samples a second reads it,
or none does. A block's value is the median CPU time of its parts of 200 products; the ratio of two neighbours is a pair. Printed: the median
of the pairs and the interval in which it is with a probability of 95 % (bootstrap), and the CPU time of the sampler for each second.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import time
from typing import List

import torch

import median_error

X = torch.randn(64, 64)


def block(seconds: float) -> float:
    """CPU time of a product in ns: the median of parts."""
    parts: List[float] = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        began = time.thread_time_ns()
        for _ in range(200):
            torch.mm(X, X)
        parts.append((time.thread_time_ns() - began) / 200)
    return statistics.median(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lanescope", default="lanescope", help="the command (default: %(default)s)")
    parser.add_argument("--pairs", type=int, default=20)
    options = parser.parse_args()
    torch.set_num_threads(1)
    block(1)
    for name, flags in ("nothing", None), ("sample", []), ("sample --native", ["--native"]):
        ratios, cpu, wall = [], 0.0, 0.0
        for _ in range(options.pairs):
            bare = block(1.5)
            sampler = None
            if flags is not None:
                sampler = subprocess.Popen([options.lanescope, "sample", "--pid", str(os.getpid()), "--seconds", "60", *flags],
                                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                block(0.7)  # it starts
            before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
            ratios.append(block(1.5) / bare - 1)
            if sampler is not None:
                sampler.terminate()
                sampler.wait()
                after = resource.getrusage(resource.RUSAGE_CHILDREN)
                cpu += after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
                wall += time.monotonic() - began + 0.7
        low, high = median_error.interval(ratios)
        print(f"{name:<16} {100 * statistics.median(ratios):+.2f} % ({100 * low:+.2f} .. {100 * high:+.2f}), {len(ratios)} pairs"
              f"{f'; sampler {cpu / wall:.2f} cores' if wall else ''}", flush=True)


if __name__ == "__main__":
    main()
