#!/usr/bin/env python3
"""Records torch.add(torch.matmul(x, w), b) with lanescope: one operator chain, small enough to read in full.

    python3 matmul_add.py --size 64 --dtype fp32
    python3 matmul_add.py --size 512 --compile --warmup

Writes traces/01_matmul_add/<size>_<dtype>_<cold|warm>_<eager|compile>.json (the trace) and .txt (the table).
"""

from __future__ import annotations

import argparse
import os
import sys

import torch

import lanescope
from lanescope import ProfilerActivity, profile, record_function, schedule

DTYPES = {"fp64": torch.float64, "fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Record matmul + add with lanescope.")
    add = parser.add_argument
    add("--size", type=int, default=64, help="rows and columns of the square matrices (default: %(default)s)")
    add("--batch", type=int, default=0, help="matrices multiplied at once; 0: plain matrices (default: %(default)s)")
    add("--dtype", choices=sorted(DTYPES), default="fp32", help="element type (default: %(default)s)")
    add("--warmup", action="store_true", help="run a few times before recording: warm instead of cold")
    add("--compile", action="store_true", help="run through torch.compile")
    add("--active", type=int, default=3, help="steps that are recorded (default: %(default)s)")
    add("--device", default="cpu", help="cpu or cuda (default: %(default)s)")
    add("--out", default=os.path.join("traces", "01_matmul_add"), help="directory for the results (default: %(default)s)")
    return parser.parse_args()


def matmul_add(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.add(torch.matmul(x, w), b)


def main() -> int:
    args = parse_arguments()
    device = torch.device(args.device)
    if device.type == "cuda" and not torch.cuda.is_available():
        print("matmul_add.py: --device cuda, but torch sees no CUDA device", file=sys.stderr)
        return 2
    torch.manual_seed(0)
    shape = (args.batch, args.size, args.size) if args.batch else (args.size, args.size)
    x, w, b = (torch.randn(shape, dtype=DTYPES[args.dtype], device=device) for _ in range(3))
    function = torch.compile(matmul_add) if args.compile else matmul_add

    def run_step() -> None:
        with record_function("matmul_add"):
            function(x, w, b)
        if device.type == "cuda":
            torch.cuda.synchronize()

    if args.warmup:
        for _ in range(3):
            run_step()
    wait, warmup = 1, 1
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=wait, warmup=warmup, active=args.active, repeat=1),
    ) as prof:
        for _ in range(wait + warmup + args.active):
            run_step()
            prof.step()

    size = f"b{args.batch}x{args.size}" if args.batch else str(args.size)
    name = f"{size}_{args.dtype}_{'warm' if args.warmup else 'cold'}_{'compile' if args.compile else 'eager'}"
    os.makedirs(args.out, exist_ok=True)
    trace_path = os.path.join(args.out, name + ".json")
    table_path = os.path.join(args.out, name + ".txt")
    prof.export_chrome_trace(trace_path)
    table = prof.key_averages().table(sort_by="cpu_time_total", row_limit=15)
    with open(table_path, "w", encoding="utf-8") as file:
        file.write(table)
    print(table)
    print(f"trace  {trace_path}")
    print(f"table  {table_path}")
    print(f"recorded by lanescope {lanescope.__version__}, torch {torch.__version__}, {device.type}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
