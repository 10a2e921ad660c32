#!/usr/bin/env python3
"""A recording with a budget records the GPU in parts. Which parts, at what cost, and does the program bear it?

    python3 bench/gpu/budget_parts.py moves              what CUPTI's coming and leaving take from a thread that launches all the time
    python3 bench/gpu/budget_parts.py loops --seconds 22 three threads launch all the time
    python3 bench/gpu/budget_parts.py graphs             a thread captures graphs and replays them
    python3 bench/gpu/budget_parts.py few                long kernels

The programs check their own results. share: what the recording says of itself (docs/definitions/recording.md#budget), at most the
budget. Exit code 1: a result was wrong, or the share is larger than the budget and 2.5 ms.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import statistics
import sys
import tempfile
import threading
import time
import warnings
from typing import Any, Callable, Dict, List, Tuple

import torch

import lanescope

NS = 1e9


class Program:
    """Threads that work until `end`; `work` counts what they did, `wrong` what came out wrong."""

    def __init__(self, body: Callable[[int], int], threads: int):
        self.end, self.wrong = False, 0
        self.work = [0] * threads
        self._body = body
        self._threads = [threading.Thread(target=self._run, args=(k,)) for k in range(threads)]

    def _run(self, k: int) -> None:
        while not self.end:
            done = self._body(k)
            self.wrong += done == 0
            self.work[k] += done

    def __enter__(self) -> "Program":
        for thread in self._threads:
            thread.start()
        time.sleep(1)
        return self

    def __exit__(self, *_: Any) -> None:
        self.end = True
        for thread in self._threads:
            thread.join()


def products(k: int) -> int:
    """Returns how many kernels were launched; 0: the result is wrong."""
    x = torch.eye(64, device="cuda")
    z = torch.full((64, 64), float(k + 1), device="cuda")
    for _ in range(20):
        z = torch.matmul(x, z)
    return 20 if z[0, 0].item() == k + 1 else 0


def graph(_: int) -> int:
    x = torch.ones(64, 64, device="cuda")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        torch.mul(x, 2)
    torch.cuda.current_stream().wait_stream(side)
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured, capture_error_mode="thread_local"):
        y = torch.mul(x, 2)
    for _ in range(20):
        captured.replay()
    torch.cuda.synchronize()
    return 20 if y[0, 0].item() == 2.0 else 0


def long_kernels(_: int) -> int:
    x = torch.ones(8192, 8192, device="cuda")
    y = torch.matmul(x, x)
    torch.cuda.synchronize()
    return 1 if y[0, 0].item() == 8192.0 else 0


PROGRAMS = {"loops": (products, 3), "graphs": (graph, 1), "few": (long_kernels, 1)}


def recorded(budget: str, seconds: int, program: Program) -> Dict[str, Any]:
    prof = lanescope.profile(activities=[lanescope.ProfilerActivity.CPU, lanescope.ProfilerActivity.CUDA], budget=budget)
    prof.start()
    for _ in range(seconds):
        before = sum(program.work)
        time.sleep(1)
        print(sum(program.work) - before, end=" ", flush=True)
    prof.stop()
    print("kernels in each second")
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "trace.json"
        prof.export_chrome_trace(path)
        written: Dict[str, Any] = json.loads(path.read_text())
    return written


def parts(options: argparse.Namespace) -> int:
    body, threads = PROGRAMS[options.what]
    with Program(body, threads) as program:
        trace = recorded(options.budget, options.seconds, program)
    kernels = [event["ts"] for event in trace["traceEvents"] if event.get("cat") == "kernel"]
    cost = trace["lanescope_cost"]
    print(f"kernels in the trace: {len(kernels)}, over {(max(kernels) - min(kernels)) / 1e6 if kernels else 0:.2f} s")
    known = trace.get("lanescope_gpu_parts", {"recording_from_ns": 0, "parts": []})
    for part in known["parts"]:
        length = "to the end" if part["to_ns"] is None else f"{(part['to_ns'] - part['from_ns']) / NS:.3f} s long"
        print(f"part at {(part['from_ns'] - known['recording_from_ns']) / NS:.3f} s, {length}")
    print("thinned", [entry["what"] for entry in trace.get("lanescope_thinned", [])], "cupti", trace.get("lanescope_cupti"))
    print("notes", trace.get("lanescope_notes"))
    print(f"share {100 * cost['share_ratio']:.3f} %", cost)
    allowed = cost["budget_ratio"] * cost["window_ns"] + 2.5e6
    return int(program.wrong > 0 or cost["cost_ns"] > allowed)


def moves(options: argparse.Namespace) -> int:
    marks: List[Tuple[int, int]] = []

    def launches(_: int) -> int:
        begin = time.perf_counter_ns()
        for _ in range(10):
            torch.matmul(x, x)
        torch.cuda.synchronize()
        marks.append((begin, time.perf_counter_ns()))
        return 10

    def beyond_ms(begin: int, end: int, usual_ns: float) -> float:
        return sum(e - s - usual_ns for s, e in list(marks) if e > begin and s < end) / 1e6

    x = torch.randn(64, 64, device="cuda")
    with Program(launches, 1) as program:
        for number in range(options.rounds):
            time.sleep(1)
            usual = statistics.median(e - s for s, e in marks[-5000:])
            prof = lanescope.profile(activities=[lanescope.ProfilerActivity.CUDA])
            times = [time.perf_counter_ns()]
            prof.start()
            times.append(time.perf_counter_ns())
            time.sleep(1)
            times.append(time.perf_counter_ns())
            prof.stop()
            times.append(time.perf_counter_ns())
            time.sleep(0.3)
            coming, leaving = beyond_ms(times[0], times[1], usual), beyond_ms(times[2], times[3], usual)
            print(f"{number}: start() {(times[1] - times[0]) / 1e6:.1f} ms, of the thread {coming:.1f} ms; "
                  f"stop() {(times[3] - times[2]) / 1e6:.1f} ms, of the thread {leaving:.1f} ms; 10 launches take {usual / 1000:.0f} us",
                  flush=True)
            del marks[:-6000]
    return int(program.wrong > 0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["moves", *PROGRAMS])
    parser.add_argument("--budget", default="1%")
    parser.add_argument("--seconds", type=int, default=12, help="of the recording (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=8, help="of moves (default: %(default)s)")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("needs a GPU")
    warnings.simplefilter("ignore")
    return moves(options) if options.what == "moves" else parts(options)


if __name__ == "__main__":
    sys.exit(main())
