#!/usr/bin/env python3
"""What hardware lanes cost the program: the 64x64 bf16 loop of cost.py, with and without the process that samples.

    python3 bench/gpu/hardware_cost.py --seconds 60 --out results/hardware_cost
    python3 bench/gpu/hardware_cost.py --variants "cpu,cpu 100us,cpu+cuda,cpu+cuda 100us" --out results/hardware_cost

Periods alternate in one process: nothing, a variant, nothing, the next variant, ... A period has many short blocks of steps, and its
value is their median; a variant's ratio is its period's value over the mean of the two periods next to it. The loop's thread stays on
one core, and the sampling process may use all others. A variant is an interval ("100us": the sampling process alone), activities
of a profile ("cpu"), or both. "nothing" is the noise: a period without anything over its neighbours. Printed: the median ratio with its
quartiles and the interval in which the true median is with a probability of 95 %, the same of the lowest tenth of the blocks, and the
CPU time of the sampling process while it samples.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import tempfile
import time
from typing import Any, Dict, List, Optional, Tuple

import torch

import cost
import measure
from lanescope import _hardware
from record_program import make_profile

SETTLE_SECONDS = 0.1
ALL_CORES = set(os.sched_getaffinity(0))


def keep_off(core: int, pid: int) -> None:
    """Every thread of the process may use all cores but one."""
    if len(ALL_CORES) > 1:
        for thread in os.listdir(f"/proc/{pid}/task"):
            os.sched_setaffinity(int(thread), ALL_CORES - {core})


class Period:
    """One variant, from start() to stop()."""

    def __init__(self, variant: str, device: str, core: int, folder: str) -> None:
        words = variant.split()
        self._interval = next((word for word in words if word[0].isdigit()), "")
        self._activities = next((word for word in words if word.startswith(("cpu", "cuda"))), "")
        self._device, self._core, self._folder = device, core, folder
        self._sampler: Optional[_hardware.HardwareSampler] = None
        self._prof: Any = None
        self.problem = ""

    def start(self) -> None:
        os.sched_setaffinity(0, ALL_CORES)  # for the processes and threads that start here
        if self._interval:
            self._sampler = _hardware.HardwareSampler(_hardware.parse_interval(self._interval), 1 << 30)
            self._sampler.start(os.path.join(self._folder, "counters"))
            self._sampler.wait()
            self.problem = self._sampler.problem
            if self._sampler._process is not None:
                keep_off(self._core, self._sampler._process.pid)
        if self._activities:
            activities = self._activities if self._device == "cuda" else "cpu"
            self._prof = make_profile("lanescope", activities, output_dir=self._folder, detach=True)
            self._prof.start()
        os.sched_setaffinity(0, {self._core})

    def sampler_cpu_s(self) -> float:
        """CPU time of the sampling process so far."""
        process = self._sampler._process if self._sampler is not None else None
        if process is None:
            return 0.0
        with open(f"/proc/{process.pid}/stat", encoding="ascii") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self) -> None:
        if self._prof is not None:
            self._prof.stop()
        if self._sampler is not None:
            self._sampler.stop()
        for name in os.listdir(self._folder):
            os.remove(os.path.join(self._folder, name))


def blocks(step: Any, steps: int, device: str, seconds: float) -> Dict[str, float]:
    deadline = time.perf_counter() + seconds
    times: List[float] = []
    while time.perf_counter() < deadline or len(times) < 3:
        times.append(measure.us_per_step(step, steps, device))
    times.sort()
    return {"median": measure.percentile(times, 0.5), "tenth": measure.percentile(times, 0.1), "blocks": len(times)}


def ratios(periods: List[Dict[str, Any]], name: str, what: str) -> List[float]:
    """Of each period of that name over the mean of the bare ones before and after it; "nothing": over the bare ones next to it."""
    found = []
    step = 2 if name == "nothing" else 1
    for i in range(step, len(periods) - step):
        if periods[i]["variant"] == name and not periods[i]["problem"]:
            around = (periods[i - step][what] + periods[i + step][what]) / 2
            found.append(100 * (periods[i][what] / around - 1))
    return found


def median_interval(values: List[float]) -> Tuple[float, float]:
    """In which the median of what the values are drawn from is, with a probability of 95 %: by the binomial distribution."""
    ordered, total, below = sorted(values), 2 ** len(values), 0
    at = 0
    while at < len(ordered) // 2 and below + math.comb(len(ordered), at) <= 0.025 * total:
        below += math.comb(len(ordered), at)
        at += 1
    at = max(at - 1, 0)
    return ordered[at], ordered[-1 - at]


def text_of(values: List[float]) -> str:
    spread, (low, high) = measure.spread(values), median_interval(values)
    return f"{spread['median']:+.2f} % ({low:+.2f} .. {high:+.2f}) [{spread['q1']:+.1f} .. {spread['q3']:+.1f}]"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--device", default="cuda", choices=("cpu", "cuda"))
    add("--variants", default="100us,1ms", help="with commas between (default: %(default)s)")
    add("--seconds", type=float, default=60, help="in all (default: %(default)s)")
    add("--period", type=float, default=0.6, help="seconds that are measured of each period (default: %(default)s)")
    add("--block-ms", type=float, default=5, help="of one block (default: %(default)s)")
    add("--out", default="gpu_bench/hardware_cost", help="folder of the results (default: %(default)s)")
    arguments = parser.parse_args()
    variants = [name.strip() for name in arguments.variants.split(",")]
    torch.set_num_threads(1)
    step = cost.loop_step(arguments.device)
    core = sorted(ALL_CORES)[min(2, len(ALL_CORES) - 1)]
    os.sched_setaffinity(0, {core})
    steps = cost.steps_for(step, arguments.device, arguments.block_ms, 100_000)
    periods: List[Dict[str, Any]] = []
    deadline = time.perf_counter() + arguments.seconds
    with tempfile.TemporaryDirectory() as folder:
        at = 0
        while time.perf_counter() < deadline or len(periods) < 2 * len(variants) + 1 or at % 2 == 0:
            name = "nothing" if at % 2 == 0 else variants[at // 2 % len(variants)]
            at += 1
            period = Period("" if name == "nothing" else name, arguments.device, core, folder)
            before = time.perf_counter()
            period.start()
            took = time.perf_counter() - before
            blocks(step, steps, arguments.device, SETTLE_SECONDS)
            begin, cpu = time.perf_counter(), period.sampler_cpu_s()
            values: Dict[str, Any] = dict(blocks(step, steps, arguments.device, arguments.period))
            ran, cpu = time.perf_counter() - begin, period.sampler_cpu_s() - cpu
            period.stop()
            periods.append({**values, "variant": name, "problem": period.problem, "start_s": took, "ran_s": ran, "sampler_cpu_s": cpu})
    problems = {period["problem"] for period in periods if period["problem"]}
    print(f"{len(periods)} periods, {steps} steps a block, {periods[0]['blocks']} blocks in the first period; a step without anything: "
          f"{measure.spread([p['median'] for p in periods if p['variant'] == 'nothing'])['median']:.2f} us; loop on core {core}")
    for problem in problems:
        print(f"not sampled: {problem}")
    print(f"{'slower by':<18}{'periods':>8}  {'median of blocks':<44}{'lowest tenth':<44}start   CPU of the sampler")
    for name in ["nothing", *variants]:
        medians, tenths = ratios(periods, name, "median"), ratios(periods, name, "tenth")
        if not medians:
            continue
        of = [period for period in periods if period["variant"] == name]
        start = measure.spread([period["start_s"] for period in of])["median"]
        cpu = sum(period["sampler_cpu_s"] for period in of) / sum(period["ran_s"] for period in of)
        print(f"{name:<18}{len(medians):>8}  {text_of(medians):<44}{text_of(tenths):<44}{start:.2f} s  {cpu:.2f} cores")
    measure.write_json(os.path.join(arguments.out, "hardware_cost.json"), {"steps": steps, "core": core, "periods": periods})
    return 0


if __name__ == "__main__":
    sys.exit(main())
