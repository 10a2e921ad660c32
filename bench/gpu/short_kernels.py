#!/usr/bin/env python3
"""What hardware lanes say of kernels shorter than a sample: kernels of known bytes, recorded, against what they must move.

    python3 bench/gpu/short_kernels.py --interval 100us --sizes 1,4,16,64,256 --out results/short_kernels

For each size (MiB) a program negates parts of a tensor of 4 GiB, one part after the other, so that nothing comes from L2: a
call reads that size and writes it, for certain. Twice: alone (`alone`), and with a product of 256 x 256 after each call
(`mixed`), which takes about 5 us and moves hardly anything. The launches are CUDA graphs, so calls follow each other closely. Each is
recorded with `lanescope record --hardware=INTERVAL`, and `lanescope kernels --json` says what the calls moved.

Printed: the mean length of a call in intervals, the samples that counted, measured bytes of a call over the known ones, and "-" where
lanescope says nothing. On a CPU (--device cpu) nothing is measured; that tests the script only.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from typing import Any, Dict, List, Optional

MIB = 1 << 20
WHOLE = 4096  # MiB of the tensor


def run_program(mib: int, mixed: bool, device: str, seconds: float) -> None:
    """What is recorded: about `seconds` of such calls."""
    import torch

    whole = WHOLE if device == "cuda" else 64
    data = torch.zeros(whole * MIB // 4, device=device)
    out = torch.empty_like(data)
    parts = list(zip(data.split(mib * MIB // 4), out.split(mib * MIB // 4)))
    small = torch.randn(256, 256, device=device)
    product = torch.empty_like(small)

    def calls() -> None:
        for source, target in parts[:512]:
            torch.neg(source, out=target)
            if mixed:
                torch.mm(small, small, out=product)

    calls()
    if device != "cuda":
        return
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        calls()
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    graph.replay()
    end.record()
    torch.cuda.synchronize()
    for _ in range(max(3, int(1000 * seconds / max(begin.elapsed_time(end), 0.01)))):
        graph.replay()
    torch.cuda.synchronize()


def measured(mib: int, mixed: bool, args: argparse.Namespace, folder: str) -> Optional[Dict[str, Any]]:
    """The group of the negations; None: the program or the recording failed."""
    kind = "mixed" if mixed else "alone"
    out = os.path.join(folder, f"{kind}{mib}")
    program = [sys.executable, __file__, "--program", str(mib), kind, "--device", args.device, "--seconds", str(args.seconds)]
    ran = subprocess.run([args.lanescope, "record", "--quiet", f"--hardware={args.interval}", "-o", out, "--", *program],
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    shown = subprocess.run([args.lanescope, "kernels", out, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                           check=False)
    if ran.returncode != 0 or shown.returncode != 0:
        print(f"{kind} {mib} MiB: {(ran.stdout + shown.stderr).strip()[-300:]}")
        return None
    groups: List[Dict[str, Any]] = [group for group in json.loads(shown.stdout)["groups"] if "neg" in group["name"]]
    return max(groups, key=lambda group: group["total_ns"], default=None)


def interval_ns(text: str) -> float:
    return float(text[:-2]) * {"us": 1e3, "ms": 1e6}[text[-2:]]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--sizes", default="1,2,4,8,16,32,64,128,256", help="MiB that a call reads, with commas between (default: %(default)s)")
    add("--interval", default="100us", help="of the samples: 50us to 1ms (default: %(default)s)")
    add("--seconds", type=float, default=0.5, help="of calls in each recording (default: %(default)s)")
    add("--device", default="cuda", choices=("cpu", "cuda"))
    add("--lanescope", default="lanescope", help="the command (default: %(default)s)")
    add("--out", default="gpu_bench/short_kernels", help="folder of the results (default: %(default)s)")
    add("--program", nargs=2, metavar=("MIB", "KIND"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.program:
        run_program(int(args.program[0]), args.program[1] == "mixed", args.device, args.seconds)
        return 0
    os.makedirs(args.out, exist_ok=True)
    rows: List[Dict[str, Any]] = []
    failed = 0
    print(f"{'':<6}{'MiB':>5}{'calls':>9}{'mean':>10}{'of an interval':>16}{'samples':>9}{'measured / known':>18}")
    with tempfile.TemporaryDirectory() as folder:
        for mixed in (False, True):
            for mib in [int(word) for word in args.sizes.split(",")]:
                group = measured(mib, mixed, args, folder)
                if group is None:
                    failed += 1
                    continue
                mean_ns = group["total_ns"] / group["count"]
                use = group.get("hardware") or {}
                moved = use.get("dram_bytes_per_call")
                ratio = None if moved is None else moved / (2 * mib * MIB)
                rows.append({"mixed": mixed, "mib": mib, "count": group["count"], "mean_ns": mean_ns, "hardware": use, "ratio": ratio})
                print(f"{'mixed' if mixed else 'alone':<6}{mib:>5}{group['count']:>9}{mean_ns / 1e3:>8.1f}us"
                      f"{mean_ns / interval_ns(args.interval):>16.2f}{use.get('sample_count', 0):>9}"
                      f"{'-' if ratio is None else f'{ratio:.3f}':>18}", flush=True)
    with open(os.path.join(args.out, "short_kernels.json"), "w", encoding="utf-8") as file:
        json.dump({"interval": args.interval, "rows": rows}, file, indent=1)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
