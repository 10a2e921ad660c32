#!/usr/bin/env python3
"""lanescope and torch.profiler (CPU) on a 64x64 matmul + add loop: slowdown, time after the loop, memory.

    python3 bench/torch_observer_vs_profiler.py [--rounds 31] [--steps 1000] [--after-steps 20000]

Slowdown: rounds of three blocks in one process (no profiler, lanescope, torch.profiler), `--steps` steps each, the order
turning by one each round; what counts is each block against the block without a profiler of its round. Starting and
stopping is outside the block, and 50 ms pass before it, so that what a profiler prepares in the background is not in it
either. Time is the CPU time of the thread, so that other programs on the machine count less.
After the loop: each profiler in a process of its own, `--after-steps` steps; stop, key_averages().table(), export, and
the growth of peak memory over the same loop without a profiler. Medians of three processes.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any, Callable, Dict, List, Tuple

import torch
from torch.profiler import record_function

import lanescope

NONE, OURS, THEIRS = "no profiler", "lanescope", "torch.profiler"


def loop(steps: int) -> Callable[[], None]:
    torch.manual_seed(0)
    x, w, b = torch.randn(64, 64), torch.randn(64, 64), torch.randn(64)

    def run() -> None:
        for _ in range(steps):
            with record_function("matmul_add"):
                torch.add(torch.matmul(x, w), b)

    return run


def profiler(mode: str) -> Any:
    if mode == OURS:
        return lanescope.profile(activities=[lanescope.ProfilerActivity.CPU])
    if mode == THEIRS:
        return torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU])
    return None


def us_per_step(mode: str, run: Callable[[], None], steps: int) -> float:
    prof = profiler(mode)
    if prof is not None:
        prof.start()
    time.sleep(0.05)
    loop(20)()
    begin = time.thread_time_ns()
    run()
    took = time.thread_time_ns() - begin
    if prof is not None:
        prof.stop()
    return took / 1000 / steps


def quartiles(values: List[float]) -> Tuple[float, float, float]:
    low, median, high = statistics.quantiles(values, n=4) if len(values) > 1 else (values[0],) * 3
    return low, median, high


def measure_slowdown(rounds: int, steps: int) -> float:
    run = loop(steps)
    modes = [NONE, OURS, THEIRS]
    times: Dict[str, List[float]] = {mode: [] for mode in modes}
    for mode in modes:
        us_per_step(mode, run, steps)
    for round_ in range(rounds):
        for shift in range(3):
            mode = modes[(round_ + shift) % 3]
            times[mode].append(us_per_step(mode, run, steps))
    print(f"64x64 matmul + add with one record_function, {rounds} rounds of {steps} steps, torch {torch.__version__}, 1 thread")
    print(f"{'':<16}{'us a step':>10}{'slowdown':>10}   [quartiles]")
    print(f"{NONE:<16}{statistics.median(times[NONE]):>10.2f}")
    slow = {}
    for mode in (OURS, THEIRS):
        low, slow[mode], high = quartiles([100 * (t / bare - 1) for t, bare in zip(times[mode], times[NONE])])
        print(f"{mode:<16}{statistics.median(times[mode]):>10.2f}{slow[mode]:>9.1f}%   [{low:.1f} .. {high:.1f}]")
    return slow[THEIRS] / slow[OURS] if slow[OURS] > 0 else float("inf")


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def after_the_loop(mode: str, steps: int) -> Dict[str, float]:
    """In a separate process: what it takes, in ms and MB, from the last step to the written file."""
    torch.set_num_threads(1)
    loop(200)()
    warm = profiler(mode)  # one-time costs of both are not the subject: Kineto's set-up, the observer's build
    if warm is not None:
        warm.start(), loop(10)(), warm.stop(), warm.key_averages().table()
    del warm
    result: Dict[str, float] = {}
    prof = profiler(mode)
    if prof is not None:
        prof.start()
    loop(steps)()
    if prof is not None:
        with tempfile.TemporaryDirectory() as folder:
            for name, action in (("stop", prof.stop), ("table", lambda: prof.key_averages().table()),
                                 ("export", lambda: prof.export_chrome_trace(os.path.join(folder, "trace.json")))):
                begin = time.perf_counter()
                action()
                result[name] = 1000 * (time.perf_counter() - begin)
    result["peak"] = peak_mb()
    return result


def measure_after(steps: int, processes: int = 3) -> float:
    rows: Dict[str, List[Dict[str, float]]] = {NONE: [], OURS: [], THEIRS: []}
    for _ in range(processes):
        for mode in rows:
            done = subprocess.run([sys.executable, __file__, "--child", mode, "--after-steps", str(steps)], check=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            rows[mode].append(json.loads(done.stdout.splitlines()[-1]))

    def median(mode: str, key: str) -> float:
        return statistics.median(row[key] for row in rows[mode])

    print(f"\nafter {steps} steps, median of {processes} processes each")
    print(f"{'':<16}{'stop ms':>10}{'table ms':>10}{'export ms':>10}{'together':>10}   [least .. most]{'peak memory added':>20}")
    together = {}
    for mode in (OURS, THEIRS):
        sums = [row["stop"] + row["table"] + row["export"] for row in rows[mode]]
        together[mode] = statistics.median(sums)
        print(f"{mode:<16}{median(mode, 'stop'):>10.1f}{median(mode, 'table'):>10.1f}{median(mode, 'export'):>10.1f}"
              f"{together[mode]:>10.1f}   [{min(sums):.0f} .. {max(sums):.0f}]"
              f"{median(mode, 'peak') - median(NONE, 'peak'):>17.0f} MB")
    return together[THEIRS] / together[OURS]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=31)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--after-steps", type=int, default=20000)
    parser.add_argument("--child", choices=(NONE, OURS, THEIRS), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        print(json.dumps(after_the_loop(arguments.child, arguments.after_steps)))
        return 0
    torch.set_num_threads(1)
    slowdown = measure_slowdown(arguments.rounds, arguments.steps)
    after = measure_after(arguments.after_steps)
    print(f"\nlanescope slows the loop {slowdown:.1f} times less (target 3) and needs {after:.0f} times less after it (target 50)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
