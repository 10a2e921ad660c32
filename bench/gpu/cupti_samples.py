#!/usr/bin/env python3
"""In which library the loop of cost.py spends its time: without CUPTI, recorded by it, switched off, and after it has left.

    python3 bench/gpu/cupti_samples.py --floor build/cupti_floor.so --samples build/cupti_samples.so

The main thread is interrupted every 50 us of real time, and the library that runs is noted; a sample "below CUPTI" has
libcupti among the first 64 words of its stack. Shares of the samples times the undisturbed length of a step: us a step.
"""

from __future__ import annotations

import argparse
import bisect
import collections
import ctypes
import os
import statistics
from typing import Counter, List, Tuple

import torch

import cost
import cupti_floor
import measure


class Code:
    """Which library an address belongs to."""

    def __init__(self) -> None:
        self.ranges: List[Tuple[int, int, str]] = []
        with open("/proc/self/maps", encoding="utf-8") as file:
            for line in file:
                words = line.split()
                if "x" in words[1] and len(words) > 5:
                    begin, end = (int(word, 16) for word in words[0].split("-"))
                    self.ranges.append((begin, end, os.path.basename(words[5])))
        self.begins = [begin for begin, _, _ in self.ranges]

    def library(self, address: int) -> str:
        at = bisect.bisect_right(self.begins, address) - 1
        return self.ranges[at][2] if at >= 0 and address < self.ranges[at][1] else ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--floor", required=True, help="cupti_floor.cpp as a shared library")
    parser.add_argument("--samples", required=True, help="cupti_samples.cpp as a shared library")
    parser.add_argument("--steps", type=int, default=20_000)
    arguments = parser.parse_args()
    floor, sampler = ctypes.CDLL(arguments.floor), ctypes.CDLL(arguments.samples)
    sampler.samples_start.argtypes = [ctypes.c_long, ctypes.c_long]
    sampler.samples_stop.restype = ctypes.c_long
    step = cost.loop_step("cuda")
    if floor.floor_load(cupti_floor.find_cupti().encode()) != 0:
        print("libcupti was not found, or is older than CUDA 12.5")
        return 2
    words = sampler.samples_words()

    def sample(name: str) -> None:
        plain = statistics.median(measure.us_per_step(step, 500, "cuda") for _ in range(20))
        sampler.samples_start(200_000, 50_000)
        for _ in range(arguments.steps):
            step()
        numbers = ctypes.POINTER(ctypes.c_uint64)()
        taken = sampler.samples_stop(ctypes.byref(numbers))
        torch.cuda.synchronize()
        code = Code()
        leaf: Counter[str] = collections.Counter()
        below: Counter[str] = collections.Counter()
        for at in range(0, taken * words, words):
            library = code.library(numbers[at])
            leaf[library] += 1
            if library.startswith("libcupti") or any(code.library(numbers[at + i]).startswith("libcupti")
                                                     for i in range(1, words)):
                below[library] += 1
        print(f"{name}: a step {plain:.2f} us, {taken} samples")
        print("  at work         " + ", ".join(f"{k or '?'} {v / taken * plain:.2f}" for k, v in leaf.most_common(8)))
        print("  below CUPTI     " + (", ".join(f"{k or '?'} {v / taken * plain:.2f}" for k, v in below.most_common(4)) or "-"))

    sample("without CUPTI")
    floor.floor_on(b"K")
    sample("kernels recorded")
    floor.floor_off()
    sample("switched off")
    floor.floor_leave()
    sample("after cuptiFinalize")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
