#!/usr/bin/env python3
"""Do the tensor cores' lane and an idle GPU's lanes say what is known? Products of known FLOPs, and nothing at all.

    nvcc -O3 -std=c++17 -gencode arch=compute_90a,code=sm_90a bench/gpu/tensor_rate.cu -o tensor_rate
    python3 bench/gpu/hardware_known.py --seconds 1 --tensor-rate ./tensor_rate --out results/hardware_known

A product of n x n bf16 matrices is 2 n^3 FLOPs. Its tensor cores could do PEAK FLOPs in each cycle of each SM (Hopper: 4096, dense), so
FLOPs / (length of a call x SMs x PEAK x SM clock) is the share of cycles in which they must have worked. That stands next to the measured
activity of the kernel (`lanescope kernels`). The clock is the mean of NVML's samples in the second half of the recording, when it no longer falls.
A product of zeros draws little power, so the clock stays where it is; one of random numbers is slowed by the power limit, and the clock between
two samples of NVML (0.1 s) is not known: its rows are less exact.
--tensor-rate: tensor_rate.cu lets the tensor cores work a share of the cycles that its own SM clocks count. That share stands next to
the middle sample of the lane. It runs in a process of its own; the sampler sees the whole device.
Idle: one small kernel, a pause, one small kernel; the means of the lanes in the middle of the pause.

On a CPU (--device cpu) nothing is measured, which tests the script only.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from typing import Any, Dict, List

import torch

import lanescope

PEAK_FLOPS = {9: 4096}  # of an SM in one cycle, bf16 dense, by the major number of the compute capability


def record(name: str, options: argparse.Namespace, size: int, zeros: bool = False) -> str:
    """The trace of products of that size, or of a pause (size 0)."""
    activities = [lanescope.ProfilerActivity.CPU]
    if options.device == "cuda":
        activities.append(lanescope.ProfilerActivity.CUDA)
    n = size or 64
    a, b = (torch.randn(n, n, device=options.device, dtype=torch.bfloat16) for _ in range(2))
    out = torch.empty_like(a)
    if zeros:
        a.zero_()
        b.zero_()

    def finish() -> None:
        if options.device == "cuda":
            torch.cuda.synchronize()

    torch.matmul(a, b, out=out)
    finish()
    profile = lanescope.profile(activities=activities, hardware="100us" if options.device == "cuda" else False)
    profile.start()
    end = time.perf_counter() + options.seconds
    while time.perf_counter() < end:
        for _ in range(10 if size else 1):
            torch.matmul(a, b, out=out)
        finish()
        if not size:
            time.sleep(options.seconds)
    profile.stop()
    path = os.path.join(options.out, name + ".json.gz")
    profile.export_chrome_trace(path)
    return path


def answer(command: List[str]) -> Any:
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout)


def lane(path: str, options: argparse.Namespace, name: str, first: float, last: float) -> List[float]:
    """Values of a counter in that part of its samples."""
    query = f"SELECT value FROM counter WHERE name LIKE '%{name}%' ORDER BY ts"
    values = [row["value"] for row in answer([options.lanescope, "sql", path, "--json", query])]
    return values[int(first * len(values)): max(int(last * len(values)), 1)]


def product_row(path: str, options: argparse.Namespace, size: int) -> Dict[str, Any]:
    groups = answer([options.lanescope, "kernels", path, "--json"])["groups"]
    group = max(groups, key=lambda one: one["total_ns"])
    use, properties = group.get("hardware") or {}, torch.cuda.get_device_properties(0)
    clocks = lane(path, options, "SM clock", 0.5, 1)
    call_s = group["total_ns"] / group["count"] / 1e9
    peak = PEAK_FLOPS.get(properties.major)
    known = 2 * size**3 / (call_s * properties.multi_processor_count * peak * statistics.fmean(clocks) * 1e6) if peak and clocks else None
    measured = use.get("tensor_active_ratio")
    return {"size": size, "calls": group["count"], "call_us": call_s * 1e6, "tflops": 2 * size**3 / call_s / 1e12,
            "clock_mhz": statistics.fmean(clocks) if clocks else None, "known": known, "measured": measured,
            "apart": measured / known - 1 if measured and known else None, "samples": use.get("sample_count")}


def rate_row(options: argparse.Namespace, share: str) -> Dict[str, Any]:
    profile = lanescope.profile(activities=[lanescope.ProfilerActivity.CPU], hardware="100us")
    profile.start()
    said = answer([options.tensor_rate, share, str(options.seconds)])
    profile.stop()
    path = os.path.join(options.out, "tensor_rate.json.gz")
    profile.export_chrome_trace(path)
    values = [value for value in lane(path, options, "Tensor active", 0, 1) if value > 1]  # before and after it the GPU is idle
    os.remove(path)
    return {"known": said["known"], "measured": statistics.median(values) / 100 if values else None, "samples": len(values)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--device", default="cuda", choices=("cpu", "cuda"))
    add("--sizes", default="8192,4096", help="of the products, with commas between (default: %(default)s)")
    add("--seconds", type=float, default=1.0, help="of each recording (default: %(default)s)")
    add("--tensor-rate", default="", help="tensor_rate.cu, compiled (default: not run)")
    add("--lanescope", default="lanescope", help="the command (default: %(default)s)")
    add("--out", default="gpu_bench/hardware_known", help="folder of the results (default: %(default)s)")
    options = parser.parse_args()
    os.makedirs(options.out, exist_ok=True)
    rows: List[Dict[str, Any]] = []
    for size, zeros in [(int(word), zeros) for word in options.sizes.split(",") for zeros in (True, False)]:
        path = record(f"products_{size}", options, size if options.device == "cuda" else 64, zeros)
        if options.device == "cuda":
            rows.append({"of": "zeros" if zeros else "random numbers", **product_row(path, options, size)})
            print(json.dumps(rows[-1]), flush=True)
        os.remove(path)
    rates: List[Dict[str, Any]] = []
    for share in ("1", "0.75", "0.5", "0.25", "0.1") if options.tensor_rate else ():
        rates.append(rate_row(options, share))
        print(json.dumps(rates[-1]), flush=True)
    path = record("idle", options, 0)
    names = ("SM active", "Tensor active", "DRAM read", "DRAM write", "PCIe write", "L2", "power")
    idle = {name: statistics.fmean(values) for name in names if (values := lane(path, options, name, 0.25, 0.75))}
    print("idle: " + json.dumps(idle), flush=True)
    os.remove(path)
    with open(os.path.join(options.out, "hardware_known.json"), "w", encoding="utf-8") as file:
        json.dump({"products": rows, "rates": rates, "idle": idle}, file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
