#!/usr/bin/env python3
"""Which part of a recording costs how much, of the 64x64 loop of cost.py, with CUPTI in the process all the time.

    python3 bench/gpu/cost_parts.py --seconds 80

All variants take turns in one process, in a new order each round; every block is compared with the mean of the blocks before
and after it, which record nothing. What CUPTI costs by being in the process is on both sides (cost.py tells it); "none" is the
noise. Printed: us a step and percent, medians and quartiles.
"""

from __future__ import annotations

import argparse
import random
import time
from typing import Dict, List, Tuple

import cost
import measure

VARIANTS = ["none", "lanescope cpu", "lanescope cuda", "lanescope cpu+cuda", "lanescope shapes", "lanescope memory",
            "lanescope stacks", "lanescope everything"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda", choices=("cpu", "cuda"))
    parser.add_argument("--seconds", type=float, default=80)
    parser.add_argument("--steps", type=int, default=600, help="of one block (default: %(default)s)")
    arguments = parser.parse_args()
    device = arguments.device
    names = [name for name in VARIANTS if device == "cuda" or name in measure.DEFAULT["cpu"]]
    step = cost.loop_step(device)
    paired = {name: measure.Paired(name, device, step, cost.nothing) for name in names}

    def block() -> float:
        return paired["none"].bare(arguments.steps)

    def recorded(variant: str) -> float:
        return paired[variant].recorded(arguments.steps, leave=False)

    for variant in names:  # CUPTI comes in here
        recorded(variant)
    rows: Dict[str, List[Tuple[float, float]]] = {variant: [] for variant in names}
    deadline, rounds = time.perf_counter() + arguments.seconds, 0
    while time.perf_counter() < deadline or rounds < 2:
        rounds += 1
        before = block()
        for variant in random.sample(names, len(names)):
            took = recorded(variant)
            after = block()
            base = (before + after) / 2
            rows[variant].append((base, took - base))
            before = after
    print(f"{rounds} rounds of {arguments.steps} steps\n{'':<22}{'base us':>9}{'adds us':>9}{'[quartiles]':>18}{'percent':>9}")
    for variant in names:
        added = measure.spread([us for _, us in rows[variant]])
        percent = measure.spread([100 * us / base for base, us in rows[variant]])
        bases = measure.spread([base for base, _ in rows[variant]])
        quartiles = f"[{added['q1']:.2f} .. {added['q3']:.2f}]"
        print(f"{variant:<22}{bases['median']:>9.2f}{added['median']:>+9.2f}{quartiles:>18}{percent['median']:>+9.1f}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
