#!/usr/bin/env python3
"""What hardware lanes cost the 64x64 loop in all, in thousands of windows of 20 ms: sampling is on or off, the GPU's part included.

    g++ -std=c++20 -O2 pm_windows.cpp -I.../include -o pm_windows -L.../lib -l:libcupti.so.13 -ldl
    python3 bench/gpu/hardware_windows.py --pm-windows ./pm_windows --seconds 150
    python3 bench/gpu/hardware_windows.py --device cpu --pm-windows ./nothing.sh     tried without a GPU: see --pm-windows

The speed of the loop wanders by some percent within a second (other guests of the host, clocks of the CPU), so on and off must alternate
faster than that. In a window that is on, the GPU samples, and the process reads, decodes and evaluates. What is not read when sampling stops is
lost, so the process has all the work of a recording only in a window that comes after another one that is on ("after_on"); in all of them the GPU
does what it does in a recording. In a window that is off, nothing is sampled or read. The process keeps off the loop's core and the
neighbouring one, as that of `record --hardware` does.

A pair is two windows next to each other in random order. In a fifth of the pairs, "noise", both are off. "mean" is of all steps of a
window, "median" of its parts of 1 ms. Of the pairs' ratios the median, and the mean without the lowest and highest tenth, each
with the interval in which it is with a probability of 95 % (bootstrap).
"""

from __future__ import annotations

import argparse
import mmap
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any, Callable, Dict, List, Tuple

import torch

import cost
import measure

ALL_CORES = os.sched_getaffinity(0)
METRICS = ("TPC.TriageCompute.sm__cycles_active.avg.pct_of_peak_sustained_elapsed", "dram__bytes_read.sum", "dram__bytes_write.sum",
           "TPC.TriageCompute.sm__pipe_tensor_cycles_active_realtime.avg.pct_of_peak_sustained_elapsed", "pcie__read_bytes.sum",
           "pcie__write_bytes.sum", "lts__t_sectors_srcunit_tex.sum", "sm__cycles_elapsed.avg")
WANTED, STATE, READ_NOW, HAS_READ, END, CANNOT = 0, 1, 2, 3, 9, 200
BOUND = 0.005
TRIM = 0.1


class Windows:
    """The process that samples, and windows of the loop beside it."""

    def __init__(self, options: argparse.Namespace, folder: str, core: int, step: Callable[[], None]) -> None:
        self._options, self._step = options, step
        path = os.path.join(folder, "control")
        with open(path, "wb") as file:
            file.write(bytes([0, CANNOT]) + bytes(4094))
        self._file = open(path, "r+b")
        self._page = mmap.mmap(self._file.fileno(), 4096)
        others = ALL_CORES - {core, core ^ 1} or ALL_CORES
        command = [options.pm_windows, path, str(options.interval_ns), str(options.image), ",".join(METRICS)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, preexec_fn=lambda: os.sched_setaffinity(0, others))
        self._wait(STATE, 0, 20)
        self.steps = cost.steps_for(step, options.device, 1, 100_000)
        self.late = 0

    def _wait(self, place: int, value: int, seconds: float) -> None:
        end = time.perf_counter() + seconds
        while self._page[place] != value:
            if self._process.poll() is not None or time.perf_counter() > end:
                text = self._process.communicate(timeout=5)[0] if self._process.poll() is not None else ""
                raise SystemExit(f"the sampler does not answer: {text}")
            if seconds < 5:
                self.part()  # the loop goes on
            else:
                time.sleep(0.05)

    def part(self) -> float:
        return measure.us_per_step(self._step, self.steps, self._options.device)

    def window(self, is_on: bool) -> Dict[str, float]:
        self._page[WANTED] = int(is_on)
        self._wait(STATE, int(is_on), 2)
        self.part()
        self._page[HAS_READ] = 0
        if is_on:
            self._page[READ_NOW] = 1
        times: List[float] = []
        end = time.perf_counter() + self._options.window_ms / 1e3
        while time.perf_counter() < end or not times:
            times.append(self.part())
        if is_on and not self._page[HAS_READ]:
            self.late += 1
            self._wait(HAS_READ, 1, 2)
        return {"mean": statistics.fmean(times), "median": statistics.median(times)}

    def end(self) -> str:
        self._page[WANTED] = END
        return self._process.communicate(timeout=20)[0].strip()


def trimmed(values: List[float]) -> float:
    ordered = sorted(values)
    cut = int(len(ordered) * TRIM)
    return statistics.fmean(ordered[cut:len(ordered) - cut])


def interval(values: List[float], of: Callable[[List[float]], float], draws: int = 1000) -> Tuple[float, float]:
    chance = random.Random(1)
    found = sorted(of(chance.choices(values, k=len(values))) for _ in range(draws))
    return found[int(0.025 * draws)], found[int(0.975 * draws)]


def report(name: str, pairs: List[Dict[str, Any]]) -> Dict[str, Any]:
    result: Dict[str, Any] = {"pairs": len(pairs)}
    print(f"{name}: {len(pairs)} pairs")
    for what in ("mean", "median"):
        ratios = [pair["on"][what] / pair["off"][what] - 1 for pair in pairs]
        for of in (statistics.median, trimmed, statistics.fmean):
            middle, (low, high) = of(ratios), interval(ratios, of)
            verdict = "shown" if high <= BOUND else "refuted" if low > BOUND else "open"
            result[f"{what} of a window, {of.__name__} of pairs"] = {"slower_ratio": middle, "low": low, "high": high}
            print(f"  {what} of a window, {of.__name__} of pairs: {100 * middle:+.3f} % ({100 * low:+.3f} .. {100 * high:+.3f}), "
                  f"at most {100 * BOUND:g} %: {verdict}", flush=True)
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--device", default="cuda", choices=("cpu", "cuda"))
    add("--pm-windows", required=True, help="pm_windows.cpp, compiled; without a GPU any program that answers its file")
    add("--seconds", type=float, default=150)
    add("--window-ms", type=float, default=20)
    add("--interval-ns", type=int, default=100_000, help="of the samples (default: %(default)s)")
    add("--image", type=int, default=512, help="samples that the image holds (default: %(default)s)")
    add("--out", default="gpu_bench/hardware_windows", help="folder of the results (default: %(default)s)")
    options = parser.parse_args()
    os.makedirs(options.out, exist_ok=True)
    torch.set_num_threads(1)
    step = cost.loop_step(options.device)
    core = sorted(ALL_CORES)[min(2, len(ALL_CORES) - 1)]
    found: Dict[str, List[Dict[str, Any]]] = {"noise": [], "sampling": [], "after_on": []}
    was_on = False
    chance = random.Random(1)
    with tempfile.TemporaryDirectory() as folder:
        windows = Windows(options, folder, core, step)
        os.sched_setaffinity(0, {core})
        windows.steps = cost.steps_for(step, options.device, 1, 100_000)
        end = time.perf_counter() + options.seconds
        while time.perf_counter() < end:
            name = "noise" if chance.random() < 0.2 else "sampling"
            pair: Dict[str, Any] = {}
            for which in chance.sample(["on", "off"], 2):
                is_on = which == "on" and name == "sampling"
                if is_on and was_on:
                    found["after_on"].append(pair)
                pair[which] = windows.window(is_on)
                was_on = is_on
            found[name].append(pair)
        said = windows.end()
    result: Dict[str, Any] = {name: report(name, pairs) for name, pairs in found.items() if pairs}
    result.update(said=said, late=windows.late, steps=windows.steps, window_ms=options.window_ms, interval_ns=options.interval_ns)
    result["step_us"] = statistics.median(pair["off"]["mean"] for pair in found["sampling"])
    result["ratios"] = {name: [[round(pair[which][what], 4) for which in ("on", "off") for what in ("mean", "median")] for pair in pairs]
                        for name, pairs in found.items()}
    print(f"{said}\n{windows.late} windows were over before all was read; a step takes {result['step_us']:.3f} us without sampling; "
          f"parts of {windows.steps} steps, on core {core}")
    measure.write_json(os.path.join(options.out, "hardware_windows.json"), result)
    return 0


if __name__ == "__main__":
    sys.exit(main())
