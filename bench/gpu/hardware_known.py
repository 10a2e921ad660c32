#!/usr/bin/env python3
"""Do the tensor cores' lane and an idle GPU's lanes say what is known? Products of known FLOPs, and nothing at all.

    nvcc -O3 -std=c++17 -gencode arch=compute_90a,code=sm_90a bench/gpu/tensor_rate.cu -o tensor_rate
    nvcc -O3 -std=c++17 -gencode arch=compute_90a,code=sm_90a bench/gpu/tensor_gemm.cu -o tensor_gemm
    python3 bench/gpu/hardware_known.py --seconds 1 --tensor-rate ./tensor_rate --tensor-gemm ./tensor_gemm --out results/hardware_known

A product of n x n matrices is 2 n^3 FLOPs. The tensor cores could do so many FLOPs in each cycle of each SM (Hopper, dense: tf32 2048, bf16 and
fp16 4096, fp8 8192), so FLOPs / (length of a call x SMs x that x SM clock) is the share of cycles in which they must have worked. That stands
next to the measured activity of the kernel (`lanescope kernels`). The clock is the one that the SMs counted in the kernel's samples. NVML's
("by_nvml") is the mean of the second half of the recording; while the power limit holds the clock down it is too high.
--tensor-gemm: tensor_gemm.cu multiplies large matrices of its own, and gives FLOPs over cycles by the SMs' clocks.
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
from typing import Any, Callable, Dict, List

import torch

import lanescope

# Of an SM in one cycle, dense, by the major number of the compute capability.
PEAK_FLOPS = {9: {"tf32": 2048, "bf16": 4096, "fp16": 4096, "fp8": 8192}}
TYPES = {"tf32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16, "fp8": torch.bfloat16}


def product_of(options: argparse.Namespace, n: int, kind: str, zeros: bool) -> Callable[[], Any]:
    torch.backends.cuda.matmul.allow_tf32 = True
    a, b = (torch.randn(n, n, device=options.device).to(TYPES[kind]) for _ in range(2))
    if zeros:
        a.zero_()
        b.zero_()
    if kind == "fp8":
        a8, b8, one = a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn).t(), torch.ones((), device=options.device)
        return lambda: torch._scaled_mm(a8, b8, scale_a=one, scale_b=one, out_dtype=torch.bfloat16)
    out = torch.empty_like(a)
    return lambda: torch.matmul(a, b, out=out)


def record(name: str, options: argparse.Namespace, size: int, kind: str = "bf16", zeros: bool = False) -> str:
    """The trace of products of that size, or of a pause (size 0)."""
    activities = [lanescope.ProfilerActivity.CPU]
    if options.device == "cuda":
        activities.append(lanescope.ProfilerActivity.CUDA)
    multiply = product_of(options, size or 64, kind, zeros)

    def finish() -> None:
        if options.device == "cuda":
            torch.cuda.synchronize()

    multiply()
    finish()
    profile = lanescope.profile(activities=activities, hardware="100us" if options.device == "cuda" else False)
    profile.start()
    end = time.perf_counter() + options.seconds
    while time.perf_counter() < end:
        for _ in range(10 if size else 1):
            multiply()
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
    query = f"SELECT value FROM counter WHERE name = '{name}' ORDER BY ts"
    values = [row["value"] for row in answer([options.lanescope, "sql", path, "--json", query])]
    return values[int(first * len(values)): max(int(last * len(values)), 1)]


def product_row(path: str, options: argparse.Namespace, size: int, kind: str) -> Dict[str, Any]:
    groups = answer([options.lanescope, "kernels", path, "--json"])["groups"]
    group = max(groups, key=lambda one: one["total_ns"])
    use, properties = group.get("hardware") or {}, torch.cuda.get_device_properties(0)
    by_nvml = lane(path, options, "SM clock", 0.5, 1)
    clock = use.get("sm_clock_mhz")
    call_s = group["total_ns"] / group["count"] / 1e9
    peak = PEAK_FLOPS.get(properties.major, {}).get(kind)
    known = 2 * size**3 / (call_s * properties.multi_processor_count * peak * clock * 1e6) if peak and clock else None
    measured = use.get("tensor_active_ratio")
    return {"size": size, "calls": group["count"], "call_us": call_s * 1e6, "tflops": 2 * size**3 / call_s / 1e12,
            "clock_mhz": clock, "clock_mhz_by_nvml": statistics.fmean(by_nvml) if by_nvml else None, "known": known, "measured": measured,
            "apart": measured / known - 1 if measured and known else None, "samples": use.get("sample_count")}


def rate_row(options: argparse.Namespace, command: List[str]) -> Dict[str, Any]:
    """Of a program that says itself how many FLOPs a cycle it reached."""
    profile = lanescope.profile(activities=[lanescope.ProfilerActivity.CPU], hardware="100us")
    profile.start()
    said = answer(command)
    profile.stop()
    path = os.path.join(options.out, "tensor_rate.json.gz")
    profile.export_chrome_trace(path)
    values = [value for value in lane(path, options, "Tensor active", 0, 1) if value > 1]  # before and after it the GPU is idle
    os.remove(path)
    return {"of": os.path.basename(command[0]), "known": said["known"], "measured": statistics.median(values) / 100 if values else None, "samples": len(values)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--device", default="cuda", choices=("cpu", "cuda"))
    add("--sizes", default="8192,4096", help="of the products, with commas between (default: %(default)s)")
    add("--seconds", type=float, default=1.0, help="of each recording (default: %(default)s)")
    add("--kinds", default="bf16,zeros,fp16,tf32,fp8", help="of the products; zeros: of bf16 (default: %(default)s)")
    add("--tensor-gemm", default="", help="tensor_gemm.cu, compiled (default: not run)")
    add("--tensor-rate", default="", help="tensor_rate.cu, compiled (default: not run)")
    add("--lanescope", default="lanescope", help="the command (default: %(default)s)")
    add("--out", default="gpu_bench/hardware_known", help="folder of the results (default: %(default)s)")
    options = parser.parse_args()
    os.makedirs(options.out, exist_ok=True)
    rows: List[Dict[str, Any]] = []
    for size, kind in [(int(word), kind) for word in options.sizes.split(",") for kind in options.kinds.split(",")]:
        of_type = kind if kind in TYPES else "bf16"
        path = record(f"products_{size}", options, size if options.device == "cuda" else 64, of_type, kind == "zeros")
        if options.device == "cuda":
            rows.append({"of": kind, **product_row(path, options, size, of_type)})
            print(json.dumps(rows[-1]), flush=True)
        os.remove(path)
    rates: List[Dict[str, Any]] = []
    commands = [[options.tensor_rate, share, str(options.seconds)] for share in ("1", "0.75", "0.5", "0.25", "0.1") if options.tensor_rate]
    if options.tensor_gemm:
        commands.append([options.tensor_gemm, str(options.seconds)])
    for command in commands:
        rates.append(rate_row(options, command))
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
