#!/usr/bin/env python3
"""Is the 64x64 loop slower while it is sampled? Many short pairs, the error of their median, and a bound.

    python3 bench/sampling_cost.py --seconds 60                                     Python samples, 1,000 a second
    python3 bench/sampling_cost.py --what nothing,python,py-spy,py-spy-stops --seconds 160
    python3 bench/sampling_cost.py --what nothing,1ms,100us --device cuda --bound 0.5 --seconds 200

The loop is torch.add(torch.matmul(x, w), b), alone on its core, without a recording of operators. It runs in blocks of --block
seconds, in the order without, with, with, without (ABBA): what changes slowly falls out. A pair is the two blocks with, over the two
blocks without. Each --what is measured in a process of its own:

  nothing        both are without: the noise
  python         lanescope's samples of Python stacks, --rate a second
  py-spy         py-spy next to it with --nonblocking, as often
  py-spy-stops   py-spy as it is by default: it stops the program for each sample
  1ms, 100us     the process that samples the GPU's counters, at this interval (needs a GPU)

Printed for each: the median of the pairs with its 95 % interval (bootstrap), the quartiles of the pairs, and whether "at most --bound
percent slower" is shown (the interval ends at the bound or below), refuted (it begins above) or open. Two times are compared: of the
clock, and the CPU time of the loop's thread, which other work on the machine changes less. Last: how often it was really sampled.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any, Callable, Dict, List, Tuple

import lanescope
import median_error
from lanescope import _core, _hardware, _stacks

CORES = set(os.sched_getaffinity(0))
LOOP_CORE = sorted(CORES)[min(2, len(CORES) - 1)]
PY_SPY_ENDS = 10.0  # seconds
COUNTER_BYTES = 48  # of a sample of one GPU with eight counters: docs/measurements/hardware.md

Block = Tuple[float, float]  # of one step: seconds of the clock, CPU seconds of the thread


# -- what runs next to the loop -----------------------------------------------------------------------------------------


class Nothing:
    settle = 0.0  # seconds from the start until it does what it does all the time

    def start(self) -> None:
        pass

    def stop(self) -> int:
        """Returns how many samples it took since start()."""
        return 0


class PythonSamples(Nothing):
    settle = 0.01

    def __init__(self, rate: int) -> None:
        self._rate = rate

    def start(self) -> None:
        reason = _core.start_samples(self._rate, _stacks.path_prefixes())
        if reason:
            raise SystemExit(f"no samples: {reason}")

    def stop(self) -> int:
        taken = _core.samples_taken()
        _core.stop_samples()
        return taken


class PySpy(Nothing):
    settle = 0.6  # it reads the interpreter's symbols first

    def __init__(self, rate: int, stops: bool) -> None:
        self._command = ["py-spy", "record", "-r", str(rate), "-f", "raw", "-d", "unlimited", "--pid", str(os.getpid())]
        self._command += [] if stops else ["--nonblocking"]
        self._folder = tempfile.TemporaryDirectory()

    def start(self) -> None:
        self._out = os.path.join(self._folder.name, "raw")
        self._process = subprocess.Popen([*self._command, "-o", self._out], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def stop(self) -> int:
        self._process.send_signal(signal.SIGINT)  # it writes what it has and ends
        complaint = self._process.communicate(timeout=PY_SPY_ENDS)[1].decode(errors="replace")
        try:
            with open(self._out, encoding="utf-8") as file:
                taken = sum(int(line.rpartition(" ")[2]) for line in file)
            os.remove(self._out)
        except OSError:
            raise SystemExit(f"py-spy sampled nothing: {' '.join(complaint.split())[:300]}") from None
        return taken


class HardwareCounters(Nothing):
    settle = 0.05

    def __init__(self, interval: str) -> None:
        self._interval_ns = _hardware.parse_interval(interval)
        self._folder = tempfile.TemporaryDirectory()

    def start(self) -> None:
        self._sampler = _hardware.HardwareSampler(self._interval_ns, 1 << 30)
        self._sampler.start(os.path.join(self._folder.name, "counters"))
        self._sampler.wait()
        if self._sampler.problem:
            raise SystemExit(f"no hardware counters: {self._sampler.problem}")

    def stop(self) -> int:
        self._sampler.stop()
        path = os.path.join(self._folder.name, "counters")
        taken = os.path.getsize(path) // COUNTER_BYTES
        os.remove(path)
        return taken


def next_to_loop(what: str, rate: int) -> Nothing:
    if what == "nothing":
        return Nothing()
    if what == "python":
        return PythonSamples(rate)
    if what in ("py-spy", "py-spy-stops"):
        return PySpy(rate, what.endswith("stops"))
    return HardwareCounters(what)


# -- pairs --------------------------------------------------------------------------------------------------------------


def make_block(device: str, seconds: float) -> Callable[[], Block]:
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    x, w, b = torch.randn(64, 64, dtype=dtype, device=device), torch.randn(64, 64, dtype=dtype, device=device), torch.randn(
        64, dtype=dtype, device=device)
    synchronize = torch.cuda.synchronize if device == "cuda" else lambda: None

    def steps(count: int) -> Block:
        synchronize()
        began, cpu = time.perf_counter(), time.thread_time()
        for _ in range(count):
            torch.add(torch.matmul(x, w), b)
        synchronize()
        return (time.perf_counter() - began) / count, (time.thread_time() - cpu) / count

    steps(5000)
    count = max(100, int(seconds / steps(5000)[0]))  # the same number in each block
    return lambda: steps(count)


def measure(what: str, args: argparse.Namespace) -> Dict[str, Any]:
    """Pairs, as ratios minus 1, of the clock and of CPU time, until args.seconds are over; samples a second."""
    prof: Any = None
    if what == "python":
        # Samples need an open window. It begins before torch is imported, so no operators are recorded.
        prof = lanescope.profile(activities=[lanescope.ProfilerActivity.CPU])
        prof.start()
    block = make_block(args.device, args.block)
    with_it = next_to_loop(what, args.rate)
    clock: List[float] = []
    cpu: List[float] = []
    taken, ran = 0, 0.0
    deadline = time.monotonic() + args.seconds

    def alone() -> None:
        os.sched_setaffinity(0, {LOOP_CORE})  # of this thread

    alone()
    block()
    while time.monotonic() < deadline or len(clock) < 3:
        before = block()
        os.sched_setaffinity(0, CORES - {LOOP_CORE} or CORES)  # for threads and processes that start here
        with_it.start()
        began = time.monotonic()
        alone()
        time.sleep(with_it.settle)
        first, second = block(), block()
        ran += time.monotonic() - began
        taken += with_it.stop()
        after = block()
        clock.append((first[0] + second[0]) / (before[0] + after[0]) - 1)
        cpu.append((first[1] + second[1]) / (before[1] + after[1]) - 1)
    if prof is not None:
        prof.stop()
    return {"clock": clock, "cpu": cpu, "samples_per_second": taken / ran}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--what", default="nothing,python", help="with commas between (default: %(default)s)")
    add("--device", default="cpu", choices=("cpu", "cuda"))
    add("--rate", type=int, default=1000, help="Python samples a second (default: %(default)s)")
    add("--bound", type=float, default=1.0, help="in percent (default: %(default)s)")
    add("--block", type=float, default=0.025, help="seconds of a block (default: %(default)s)")
    add("--seconds", type=float, default=60, help="for all of --what together (default: %(default)s)")
    add("--only", help=argparse.SUPPRESS)  # in a process of its own: prints the pairs as JSON
    args = parser.parse_args()
    if args.only:
        print(json.dumps(measure(args.only, args)))
        return 0
    whats = [name.strip() for name in args.what.split(",")]
    failed = 0
    print(f"blocks of {args.block} s, loop on core {LOOP_CORE} of {len(CORES)}; slower by, in percent: median (95 % interval) [quartiles]")
    for what in whats:
        command = [sys.executable, __file__, "--only", what, "--device", args.device, "--rate", str(args.rate), "--block",
                   str(args.block), "--seconds", str(args.seconds / len(whats))]
        ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        if ran.returncode != 0:
            failed += 1
            print(f"{what:<13} not measured: {(ran.stderr.strip() or 'no message').splitlines()[-1]}", flush=True)
            continue
        pairs = json.loads(ran.stdout.splitlines()[-1])
        for name, values in (("clock", pairs["clock"]), ("CPU time", pairs["cpu"])):
            values = [100 * value for value in values]
            low, high = median_error.interval(values)
            first, middle, third = statistics.quantiles(values, n=4)
            holds = "" if what == "nothing" else f"; at most {args.bound:g} %: {median_error.verdict(values, args.bound)}"
            print(f"{what:<13} {name:<9} {middle:+.2f} ({low:+.2f} .. {high:+.2f}) [{first:+.1f} .. {third:+.1f}]  {len(values)} pairs"
                  f"{holds}", flush=True)
        if what != "nothing":
            print(f"{what:<13} {pairs['samples_per_second']:.0f} samples a second", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
