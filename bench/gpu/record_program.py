#!/usr/bin/env python3
"""Records one program under one profiler, or under several after each other: the child process of compare.py.

    python3 bench/gpu/record_program.py mlp_train --profiler lanescope --device cuda --out results/

Schedule: wait=1, warmup=1, active=--active. Writes OUT/<program>.<profiler>[.rank<N>].json (the trace), .txt (the table)
and .meta.json (versions, times of start, stop, table and export).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from typing import Any, Dict, Tuple

import torch

import programs

PROFILERS = ("torch", "lanescope")


def module_of(profiler: str) -> Any:
    if profiler == "torch":
        import torch.profiler

        return torch.profiler
    import lanescope

    return lanescope


def make_profile(profiler: str, activities: str, **options: Any) -> Any:
    """`activities`: cpu, cuda or cpu+cuda."""
    module = module_of(profiler)
    return module.profile(activities=[getattr(module.ProfilerActivity, a.upper()) for a in activities.split("+")], **options)


def timed(action: Any) -> Tuple[float, Any]:
    begin = time.perf_counter()
    value = action()
    return 1000 * (time.perf_counter() - begin), value


def raise_clocks(device: str, seconds: float) -> None:
    """Large products until the GPU runs at its full clock: kernel times are compared, and a GPU that idled is slower."""
    if device != "cuda" or seconds <= 0:
        return
    x = torch.ones(16384, 16384, device=device, dtype=torch.bfloat16)
    deadline = time.perf_counter() + seconds
    while time.perf_counter() < deadline:
        torch.matmul(x, x)
        torch.cuda.synchronize()
    del x
    torch.cuda.empty_cache()


def record(name: str, profiler: str, device: str, program: programs.Program, active: int, base: str,
           shapes: bool) -> Dict[str, Any]:
    activities = "cpu+cuda" if device == "cuda" else "cpu"
    plan = module_of(profiler).schedule(wait=1, warmup=1, active=active, repeat=1)
    prof = make_profile(profiler, activities, schedule=plan, record_shapes=shapes)
    start_ms, _ = timed(prof.start)
    for step in range(2 + active):
        program.step()
        prof.step()
        if step == 0:  # between the steps that are not recorded, after the profiler has prepared itself, which takes seconds
            raise_clocks(device, 0.3)
    stop_ms, _ = timed(prof.stop)
    table_ms, table = timed(lambda: prof.key_averages().table(sort_by=f"{device}_time_total", row_limit=15))
    export_ms, _ = timed(lambda: prof.export_chrome_trace(base + ".json"))
    with open(base + ".txt", "w", encoding="utf-8") as file:
        file.write(str(table))
    meta = {"program": name, "profiler": profiler, "device": device, "active": active, "torch": torch.__version__,
            "start_ms": start_ms, "stop_ms": stop_ms, "table_ms": table_ms, "export_ms": export_ms}
    if profiler == "lanescope":
        meta.update(lanescope=module_of(profiler).__version__, stats=prof.stats())
    if device == "cuda":
        meta["gpu"] = torch.cuda.get_device_name()
    with open(base + ".meta.json", "w", encoding="utf-8") as file:
        json.dump(meta, file, indent=1)
    return meta


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--profiler", default="lanescope", help="torch, lanescope, or both with a comma between, in that order")
    parser.add_argument("--device", default="cuda", choices=("cpu", "cuda"))
    parser.add_argument("--small", action="store_true", help="sizes for a quick run on a CPU")
    parser.add_argument("--active", type=int, default=20, help="recorded steps (default: %(default)s)")
    parser.add_argument("--shapes", action="store_true", help="with record_shapes")
    parser.add_argument("--out", default=".", help="folder of the results")
    arguments = parser.parse_args()
    torch.set_num_threads(min(torch.get_num_threads(), 4))
    try:
        program = programs.make(arguments.program, arguments.device, arguments.small)
    except programs.Unavailable as error:
        print(json.dumps({"unavailable": str(error)}))
        return programs.UNAVAILABLE
    os.makedirs(arguments.out, exist_ok=True)
    rank = f".rank{os.environ['RANK']}" if "RANK" in os.environ else ""
    for profiler in arguments.profiler.split(","):
        base = os.path.join(arguments.out, f"{arguments.program}.{profiler}{rank}")
        program.reset()
        meta = record(arguments.program, profiler, arguments.device, program, arguments.active, base,
                      arguments.shapes)
        print(" ".join(f"{key}={value:.1f}" if isinstance(value, float) else f"{key}={value}" for key, value in meta.items()))
    program.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
