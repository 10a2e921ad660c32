#!/usr/bin/env python3
"""What CUPTI itself costs a program, by kind of record: the floor of every profiler that uses it.

    python3 bench/gpu/cupti_floor.py --library build/cupti_floor.so --seconds 60
    python3 bench/gpu/cupti_floor.py --library build/cupti_floor.so --program llama_decode --variants K,KMPSObc

The program is the 64x64 bf16 matmul + add loop of cost.py, or one of programs.py.

Each round takes the variants in a new order: blocks without CUPTI, with the variant on, switched off again, and after CUPTI
has left the process (cuptiFinalize). Letters of a variant: K kernels (k: one at a time), M P copies, S memsets, O overhead,
Y waits, E events, R D all calls of the runtime and the driver (f: only 10 of them), b c callbacks of those 10; d device buffers
of 64 MB, 4 of them made ahead, h host memory for them, n CUPTI's own clock. Printed: medians, and the lower quartile of what
the variant adds. Another CUPTI than torch's: LD_PRELOAD=.../libcupti.so.13.
"""

from __future__ import annotations

import argparse
import ctypes
import random
import statistics
import time
from typing import Callable, Dict, List

import torch

import cost
import measure
import programs

VARIANTS = "K,KMPSO,b,c,bc,KMPSObc,Y,E,RDf,KMPSYEORDf"


def find_cupti() -> str:
    torch.cuda.synchronize()
    with open("/proc/self/maps", encoding="utf-8") as file:
        for line in file:
            if "libcupti.so" in line:
                return line.split()[-1]
    return "libcupti.so"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", required=True, help="cupti_floor.cpp as a shared library")
    parser.add_argument("--variants", default=VARIANTS, help="default: %(default)s")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--program", help="of programs.py (default: the loop of cost.py)")
    parser.add_argument("--steps", type=int, help="of one block (default: 300 of the loop, 20 of another program)")
    arguments = parser.parse_args()
    library = ctypes.CDLL(arguments.library)
    library.floor_records.restype = library.floor_callbacks.restype = ctypes.c_long
    if library.floor_load(find_cupti().encode()) != 0:
        print("libcupti was not found, or is older than CUDA 12.5")
        return 2
    program = programs.make(arguments.program, "cuda", False) if arguments.program else programs.Program(cost.loop_step("cuda"))
    steps = arguments.steps or (20 if arguments.program else 300)

    def block() -> float:
        program.reset()
        return measure.us_per_step(program.step, steps, "cuda")

    def blocks(count: int) -> float:
        return statistics.median(block() for _ in range(count))

    variants = arguments.variants.split(",")
    rows: Dict[str, Dict[str, List[float]]] = {v: {"bare": [], "on": [], "off": [], "left": []} for v in variants}
    seen: Dict[str, str] = {}
    blocks(15)
    deadline, rounds = time.perf_counter() + arguments.seconds, 0
    while time.perf_counter() < deadline:
        rounds += 1
        random.shuffle(variants)
        for variant in variants:
            bare = blocks(4)
            failed = library.floor_on(variant.encode())
            blocks(1)
            on = blocks(4)
            library.floor_off()
            seen[variant] = f"{library.floor_records()} records, {library.floor_callbacks()} calls" + " FAILED" * bool(failed)
            off = blocks(4)
            library.floor_leave()
            left = blocks(2)
            for key, value in (("bare", bare), ("on", on - bare), ("off", off - bare), ("left", left - bare)):
                rows[variant][key].append(value)
    print(f"{rounds} rounds; us a step\n{'variant':<14}{'without':>9}{'on':>8}{'[q1]':>8}{'off':>8}{'[q1]':>8}{'left':>8}  seen")
    middle: Callable[[List[float]], float] = statistics.median
    for variant in arguments.variants.split(","):
        row = rows[variant]
        low = {key: measure.spread(row[key])["q1"] for key in ("on", "off")}
        print(f"{variant:<14}{middle(row['bare']):>9.2f}{middle(row['on']):>+8.2f}{low['on']:>+8.2f}{middle(row['off']):>+8.2f}"
              f"{low['off']:>+8.2f}{middle(row['left']):>+8.2f}  {seen[variant]}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
