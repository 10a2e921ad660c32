#!/usr/bin/env python3
"""What the process that samples hardware counters costs the 64x64 loop: it is stopped and continued hundreds of times.

    python3 bench/gpu/hardware_toggle.py --interval 100us --seconds 40
    python3 bench/gpu/hardware_toggle.py --device cpu --command ./spins.sh      tried without a GPU: ./spins.sh prints "ready" and works

One sampler runs all the time. Blocks of 40 ms of the loop alternate: the sampler runs (SIGCONT), or is stopped (SIGSTOP). A pair is two
blocks, one of each, in random order, so what drifts within seconds is in both. While the process is stopped the GPU goes on sampling into
its buffer, and the process reads it afterwards: it has twice its work then. So this is an upper bound of what the process costs; what
the GPU's own sampling costs is in both blocks, and is measured by hardware_cost.py, which starts and ends the sampler.

With twice the interval the work while it runs is that of the whole interval: `--interval 200us` is what a process at 100 us costs.

--shim FILE (pm_shim.cpp as a library) pauses the GPU's sampling itself instead of the process: then all that sampling costs is in the
difference, the GPU's part, too, and nothing is done twice. Blocks should be longer then: what was sampled is read up to 40 ms later.

--record cpu: a profile of the CPU alone records in both blocks, as `record --hardware --activities cpu` does; the last line then says how long
a step takes without anything, with the recording, and with both.

"noise": the same number of pairs without a sampler, with the same pauses. Printed: the median of the pairs' ratios, the interval in which
it is with a probability of 95 % (bootstrap), and whether "at most 0.5 % slower" is shown, refuted or open. "mean" is of all steps of a
block, "median" of its parts of 1 ms.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import random
import signal
import statistics
import sys
import tempfile
import time
from typing import Any, Dict, List

import torch

import cost
import measure
from hardware_cost import ALL_CORES, keep_off
from record_program import make_profile
from lanescope import _hardware

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import median_error  # noqa: E402

SETTLE_SECONDS, SETTLE_SHIM_SECONDS = 0.004, 0.06
BOUND = 0.005


def block(step: Any, steps: int, device: str, seconds: float) -> Dict[str, float]:
    """Of a step in that time, in us: the mean, and the median of parts."""
    times: List[float] = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or not times:
        times.append(measure.us_per_step(step, steps, device))
    return {"mean": statistics.fmean(times), "median": statistics.median(times)}


def switch(on: bool, sampler_pid: int, control: str) -> None:
    if control:
        with open(control, "r+b", buffering=0) as file:
            file.write(b"1" if on else b"0")
    elif sampler_pid:
        os.kill(sampler_pid, signal.SIGCONT if on else signal.SIGSTOP)


def pairs(step: Any, steps: int, options: argparse.Namespace, seconds: float, sampler_pid: int, control: str = "") -> List[Dict[str, Any]]:
    """Until the time is over. `sampler_pid` 0: nothing is stopped."""
    settle = SETTLE_SHIM_SECONDS if options.shim else SETTLE_SECONDS
    chance, found = random.Random(1), []
    deadline = time.perf_counter() + seconds
    while time.perf_counter() < deadline or len(found) < 3:
        pair: Dict[str, Any] = {}
        for name in chance.sample(["on", "off"], 2):
            switch(name == "on", sampler_pid, control)
            block(step, steps, options.device, settle)
            pair[name] = block(step, steps, options.device, options.block_ms / 1e3)
        found.append(pair)
    switch(True, sampler_pid, control)
    return found


def step_us(found: List[Dict[str, Any]], which: str) -> float:
    return statistics.median(pair[which]["mean"] for pair in found)


def report(name: str, found: List[Dict[str, Any]]) -> Dict[str, Any]:
    result: Dict[str, Any] = {"pairs": len(found)}
    text = f"{name:<10}{len(found):>6} pairs"
    for what in ("mean", "median"):
        ratios = [pair["on"][what] / pair["off"][what] - 1 for pair in found]
        low, high = median_error.interval(ratios, 2000)
        middle, verdict = statistics.median(ratios), median_error.verdict(ratios, BOUND)
        result[what] = {"slower_ratio": middle, "low": low, "high": high, "verdict": verdict}
        text += f"   {what}: {100 * middle:+.2f} % ({100 * low:+.2f} .. {100 * high:+.2f}), at most {100 * BOUND:g} %: {verdict}"
    print(text, flush=True)
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--device", default="cuda", choices=("cpu", "cuda"))
    add("--interval", default="100us", help="of the samples (default: %(default)s)")
    add("--seconds", type=float, default=40, help="in all; a third of it is the noise (default: %(default)s)")
    add("--block-ms", type=float, default=40, help="of one block (default: %(default)s)")
    add("--noise-share", type=float, default=1 / 3, help="of the time, for the noise (default: a third)")
    add("--record", default="", choices=("", "cpu"), help="record operators, too")
    add("--shim", default="", help="pm_shim.cpp as a library, named libcupti.so.shim: the GPU's sampling is paused, too")
    add("--command", default="", help="instead of `lanescope`, to try this script")
    add("--out", default="gpu_bench/hardware_toggle", help="folder of the results (default: %(default)s)")
    options = parser.parse_args()
    torch.set_num_threads(1)
    step = cost.loop_step(options.device)
    core = sorted(ALL_CORES)[min(2, len(ALL_CORES) - 1)]
    os.sched_setaffinity(0, {core})
    steps = cost.steps_for(step, options.device, 1, 100_000)
    os.makedirs(options.out, exist_ok=True)
    result: Dict[str, Any] = {"interval": options.interval, "steps": steps, "core": core, "block_ms": options.block_ms}
    noise = pairs(step, steps, options, options.seconds * options.noise_share, 0)
    result["noise"] = report("noise", noise)
    with tempfile.TemporaryDirectory() as folder:
        os.sched_setaffinity(0, ALL_CORES)
        control = ""
        if options.shim:
            control = os.path.join(folder, "control")
            pathlib.Path(control).write_bytes(b"1")
            os.environ.update(LANESCOPE_CUPTI_LIBRARY=os.path.abspath(options.shim), PM_SHIM_CONTROL=control)
            os.environ["PM_SHIM_LOG"] = os.path.join(options.out, "shim.txt")
        sampler = _hardware.HardwareSampler(_hardware.parse_interval(options.interval), 1 << 30)
        sampler.start(os.path.join(folder, "counters"), options.command)
        sampler.wait()
        process = sampler._process
        if process is None or sampler.problem:
            print(f"not sampled: {sampler.problem}")
            return 1
        keep_off(core, process.pid)
        os.sched_setaffinity(0, {core})
        time.sleep(0.3)  # the process moves away from this core and its sibling
        profile = make_profile("lanescope", options.record, output_dir=folder) if options.record else None
        if profile is not None:
            profile.start()
        found = pairs(step, steps, options, options.seconds * (1 - options.noise_share), process.pid, control)
        result["sampler"] = report(options.interval, found)
        result["step_us"] = {"nothing": step_us(noise, "off"), "paused": step_us(found, "off"), "sampled": step_us(found, "on")}
        if profile is not None:
            profile.stop()
        sampler.stop()
        path = os.path.join(folder, "counters")
        result["bytes"] = os.path.getsize(path) if os.path.exists(path) else 0
    print("a step takes " + ", ".join(f"{us:.3f} us {name}" for name, us in result["step_us"].items()))
    print(f"{steps} steps a part, loop on core {core}; {result['bytes']} bytes of samples were written")
    measure.write_json(os.path.join(options.out, "hardware_toggle.json"), result)
    return 0


if __name__ == "__main__":
    sys.exit(main())
