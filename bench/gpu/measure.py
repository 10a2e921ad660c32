"""What the cost benchmarks share: profilers by name, paired blocks, percentiles, memory, child processes with a time limit."""

from __future__ import annotations

import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import torch

from record_program import make_profile

EVERYTHING = dict(record_shapes=True, profile_memory=True, with_stack=True)
# Name: (profiler, activities, options). "none" twice is the noise floor: both blocks of a pair run without a profiler.
VARIANTS: Dict[str, Tuple[str, str, Dict[str, bool]]] = {
    "none": ("", "", {}),
    "lanescope cpu": ("lanescope", "cpu", {}),
    "lanescope cuda": ("lanescope", "cuda", {}),
    "lanescope cpu+cuda": ("lanescope", "cpu+cuda", {}),
    "lanescope shapes": ("lanescope", "cpu+cuda", dict(record_shapes=True)),
    "lanescope memory": ("lanescope", "cpu+cuda", dict(profile_memory=True)),
    "lanescope stacks": ("lanescope", "cpu+cuda", dict(with_stack=True)),
    "lanescope everything": ("lanescope", "cpu+cuda", EVERYTHING),
    "torch cpu": ("torch", "cpu", {}),
    "torch cuda": ("torch", "cuda", {}),
    "torch cpu+cuda": ("torch", "cpu+cuda", {}),
    "torch everything": ("torch", "cpu+cuda", EVERYTHING),
}


# What a run without --variants measures; on the CPU those that differ there.
DEFAULT = {"cuda": ["none", "lanescope cpu", "lanescope cuda", "lanescope cpu+cuda", "lanescope everything", "torch cpu",
                    "torch cpu+cuda"],
           "cpu": ["none", "lanescope cpu", "lanescope everything", "torch cpu"]}


def variants_for(device: str, text: str) -> List[str]:
    """"default", or names of VARIANTS with commas between."""
    names = DEFAULT[device] if text == "default" else [name.strip() for name in text.split(",")]
    for name in names:
        if name not in VARIANTS or (device == "cpu" and VARIANTS[name][1] == "cuda"):
            raise SystemExit(f"expected variants of {', '.join(VARIANTS)} that {device} has; found {name!r}")
    return names


def start_seconds(device: str) -> float:
    """About what a process takes before it measures: imports, and on CUDA the context and a profiler's first start."""
    return 8.0 if device == "cuda" else 3.0


def profiler_of(variant: str, device: str, leave: Optional[bool] = None) -> Any:
    """None for "none". On the CPU the CUDA part of a variant is left out. `leave`: whether CUPTI leaves the process after
    each window (see leave_cupti()); None: as the profiler does by itself."""
    profiler, activities, options = VARIANTS[variant]
    if not profiler:
        return None
    if profiler == "lanescope" and leave is not None and device == "cuda":
        options = dict(options, detach=leave)
    return make_profile(profiler, activities if device == "cuda" else "cpu", **options)


def leave_cupti() -> None:
    """Takes CUPTI out of this process. While it is in, each launch stays slower, also without a profiler: blocks that are to
    be compared with a recorded one must not have it. lanescope does it by itself (detach); torch.profiler has no such way
    and gets this one, outside of what is timed."""
    import ctypes

    with open("/proc/self/maps", encoding="utf-8") as file:
        libraries = {line.split()[-1] for line in file if "libcupti.so" in line}
    for library in libraries:
        ctypes.CDLL(library).cuptiFinalize()


def synchronize(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def percent_text(values: Dict[str, float]) -> str:
    return f"{values['median']:>8.1f}% [{values['q1']:>5.1f} .. {values['q3']:>5.1f}]"


def us_per_step(step: Callable[[], None], steps: int, device: str) -> float:
    synchronize(device)
    begin = time.perf_counter_ns()
    for _ in range(steps):
        step()
    synchronize(device)
    return (time.perf_counter_ns() - begin) / 1000 / steps


def spread(values: Sequence[float]) -> Dict[str, float]:
    """Median and quartiles; with one value, all three are equal."""
    if not values:
        raise ValueError("nothing was measured")
    low, median, high = statistics.quantiles(values, n=4) if len(values) > 1 else (values[0],) * 3
    return {"median": median, "q1": low, "q3": high, "least": min(values), "most": max(values), "count": len(values)}


def percentile(ordered: Sequence[float], fraction: float) -> float:
    """The smallest value that at least `fraction` of the sorted values do not exceed."""
    at = max(0, -int(-fraction * len(ordered) // 1) - 1)
    return ordered[min(at, len(ordered) - 1)]


class Paired:
    """Blocks of steps, alternating without and with a profiler; a profiler object lives for one block."""

    def __init__(self, variant: str, device: str, step: Callable[[], None], reset: Callable[[], None]) -> None:
        self.variant, self.device, self.step, self.reset = variant, device, step, reset
        self.start_ms: List[float] = []
        self.stop_ms: List[float] = []

    def bare(self, steps: int) -> float:
        self.reset()
        return us_per_step(self.step, steps, self.device)

    def recorded(self, steps: int, leave: Optional[bool] = True) -> float:
        prof = profiler_of(self.variant, self.device, leave)
        if prof is None:
            return self.bare(steps)
        self.reset()
        begin = time.perf_counter()
        prof.start()
        self.start_ms.append(1000 * (time.perf_counter() - begin))
        for _ in range(20):  # what a profiler does on its first records is the start's cost, not a step's
            self.step()
        took = us_per_step(self.step, steps, self.device)
        begin = time.perf_counter()
        prof.stop()
        self.stop_ms.append(1000 * (time.perf_counter() - begin))
        del prof
        gc.collect()
        if leave and self.device == "cuda" and self.variant.startswith("torch"):
            leave_cupti()
        return took

    def run(self, steps: int, seconds: float, most: int = 100) -> Dict[str, Any]:
        """Cycles of four blocks until `seconds` are over: without the profiler and without CUPTI in the process; recorded,
        CUPTI stays; without the profiler, CUPTI still there; recorded, CUPTI leaves. Two pairs a cycle for each question: a
        recorded block against its neighbour without CUPTI (slowdown), against its neighbour with it (attached), and one of
        the two neighbours with each other (stays)."""
        deadline = time.perf_counter() + seconds
        self.bare(steps)
        before = [self.bare(steps) for _ in range(5)]
        first = self.recorded(steps)  # with the one-time costs of the first start around it; in no pair
        cycles: List[Tuple[float, float, float, float]] = []
        clean = self.bare(steps)
        pairs: List[Tuple[float, float]] = []
        while len(cycles) < 2 or (time.perf_counter() < deadline and len(cycles) < most):
            staying = self.recorded(steps, leave=False)
            attached = self.bare(steps)
            leaving = self.recorded(steps, leave=True)
            cycles.append((clean, staying, attached, leaving))
            pairs.append((clean, staying))
            clean = self.bare(steps)
            pairs.append((clean, leaving))
        attached_pairs = [(attached, recorded) for _, a, attached, b in cycles for recorded in (a, b)]
        result = {
            "steps_per_block": steps, "pairs": len(pairs), "cycles_us": cycles, "first_block_us": first,
            "before_us": spread(before),
            "bare_us": spread([bare for bare, _ in pairs]), "with_us": spread([recorded for _, recorded in pairs]),
            "slowdown_percent": spread([100 * (recorded / bare - 1) for bare, recorded in pairs]),
            "attached_percent": spread([100 * (recorded / bare - 1) for bare, recorded in attached_pairs]),
            "stays_percent": spread([100 * (attached / bare - 1) for bare, _, attached, _ in cycles]),
        }
        if self.start_ms:
            result.update(first_start_ms=self.start_ms[0], later_start_ms=spread(self.start_ms[1:]),
                          stop_ms=spread(self.stop_ms[1:]))
        return result


def memory_kb() -> Dict[str, int]:
    """Resident memory of this process now, by what backs it, and its peak (VmHWM)."""
    keys = ("VmHWM", "VmRSS", "RssAnon", "RssFile", "RssShmem")
    with open("/proc/self/status", encoding="ascii") as file:
        pairs = [line.split(":") for line in file]
    return {key: int(value.split()[0]) for key, value in pairs if key in keys}


def child(script: str, arguments: List[str], timeout: float, log: str) -> Dict[str, Any]:
    """Runs `script` again with `--child-out FILE` and returns the JSON it writes there, or {"failed": why}."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "result.json")
        os.makedirs(os.path.dirname(log), exist_ok=True)
        with open(log, "w", encoding="utf-8") as file:
            try:
                code: Optional[int] = subprocess.run([sys.executable, script, *arguments, "--child-out", out], stdout=file,
                                                     stderr=subprocess.STDOUT, timeout=timeout, check=False).returncode
            except subprocess.TimeoutExpired:
                code = None
        if code != 0 or not os.path.exists(out):
            with open(log, encoding="utf-8", errors="replace") as file:
                lines = [line.strip() for line in file if line.strip()]
            why = f"still running after {timeout:.0f} s" if code is None else f"ended with {code}"
            return {"failed": f"{why}: {lines[-1][:200] if lines else 'printed nothing'}"}
        with open(out, encoding="utf-8") as file:
            result: Dict[str, Any] = json.load(file)
        return result


def write_json(path: str, value: Any) -> None:
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(value, file, indent=1)
