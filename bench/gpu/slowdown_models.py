#!/usr/bin/env python3
"""How much slower real models run while they are recorded: Llama decode and MLP training, paired blocks.

    python3 bench/gpu/slowdown_models.py --device cuda --seconds 240 --out results/models

Each model and variant runs in its own process: blocks of steps without and with the profiler alternate, with the same number
of steps from the same state. Per pair with/without - 1; medians with quartiles. "attached" and
"stays": see cost.py. Exit code 1 when a run fails.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from typing import Any, Dict, List

import torch

import measure
import programs

DEFAULT = {"cuda": "none,lanescope cpu+cuda,torch cpu+cuda", "cpu": "none,lanescope cpu,torch cpu"}


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--device", default="cuda", choices=("cpu", "cuda"))
    add("--small", action="store_true", help="sizes for a quick run on a CPU")
    add("--programs", default="llama_decode,mlp_train", help="names of programs.py (default: %(default)s)")
    add("--variants", help="names of cost.py's variants (default: none, lanescope, torch.profiler)")
    add("--seconds", type=float, default=240, help="for everything together, process starts included (default: %(default)s)")
    add("--block-ms", type=float, default=500, help="length of one block (default: %(default)s)")
    add("--out", default="gpu_bench/models", help="folder of the results (default: %(default)s)")
    add("--child", help=argparse.SUPPRESS)
    add("--child-out", help=argparse.SUPPRESS)
    return parser.parse_args()


def run_child(arguments: argparse.Namespace) -> int:
    name, variant, seconds = json.loads(arguments.child)
    if arguments.device == "cpu":
        torch.set_num_threads(1)
    program = programs.make(name, arguments.device, arguments.small)
    for _ in range(3):
        program.step()
    us = measure.us_per_step(program.step, 10, arguments.device)
    steps = int(min(programs.DECODE_STEPS, max(5, 1000 * arguments.block_ms / us)))  # within one run of the decode cache
    measure.write_json(arguments.child_out, measure.Paired(variant, arguments.device, program.step, program.reset).run(
        steps, seconds))
    program.close()
    return 0


def print_table(results: Dict[str, Dict[str, Dict[str, Any]]]) -> None:
    print(f"\n{'program':<18}{'variant':<23}{'bare us':>10}{'with us':>10}{'slowdown [quartiles]':>26}{'pairs':>6}"
          f"{'attached':>26}{'stays':>26}")
    for name, rows in results.items():
        for variant, row in rows.items():
            if "failed" in row:
                print(f"{name:<18}{variant:<23}FAILED: {row['failed']}")
                continue
            print(f"{name:<18}{variant:<23}{row['bare_us']['median']:>10.1f}{row['with_us']['median']:>10.1f}"
                  f"{measure.percent_text(row['slowdown_percent'])}{row['pairs']:>6}"
                  f"{measure.percent_text(row['attached_percent'])}{measure.percent_text(row['stays_percent'])}")


def main() -> int:
    arguments = parse()
    if arguments.child:
        return run_child(arguments)
    variants = measure.variants_for(arguments.device, arguments.variants or DEFAULT[arguments.device])
    names = programs.select(arguments.programs, arguments.small)
    shared = ["--device", arguments.device, "--block-ms", str(arguments.block_ms)] + (["--small"] if arguments.small else [])
    results: Dict[str, Dict[str, Dict[str, Any]]] = {name: {} for name in names}
    deadline = time.perf_counter() + arguments.seconds
    todo = [(name, variant) for name in names for variant in variants]
    for at, (name, variant) in enumerate(todo):
        share = max(1.0, (deadline - time.perf_counter()) / (len(todo) - at) - measure.start_seconds(arguments.device))
        log = os.path.join(arguments.out, "logs", f"{name}.{variant.replace(' ', '_')}.log")
        results[name][variant] = measure.child(os.path.abspath(__file__),
                                               [*shared, "--child", json.dumps([name, variant, share])], 2 * share + 90, log)
        measure.write_json(os.path.join(arguments.out, "models.json"), {"device": arguments.device, "torch": torch.__version__,
                                                                        "small": arguments.small, "results": results})
    print_table(results)
    failed: List[str] = [name for name, rows in results.items() for row in rows.values() if "failed" in row]
    print(f"{'FAILED' if failed else 'passed'}: {len(todo)} measurements, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
