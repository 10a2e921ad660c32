#!/usr/bin/env python3
"""Which part of a recording costs how much, of the 64x64 loop of cost.py, with CUPTI in the process all the time.

    python3 bench/gpu/cost_parts.py --seconds 80

All variants take turns in one process, in a new order each round; every block is compared with the mean of the blocks before
and after it, which record nothing. What CUPTI costs by being in the process is on both sides (cost.py tells it); "nothing" is
the noise. Printed: us a step and percent, medians and quartiles.
"""

from __future__ import annotations

import argparse
import random
import time
from typing import Any, Dict, List, Optional, Tuple

import cost
import measure
from record_program import make_profile

VARIANTS: Dict[str, Optional[Tuple[str, Dict[str, bool]]]] = {
    "nothing": None,
    "operators": ("cpu", {}),
    "GPU": ("cuda", {}),
    "operators + GPU": ("cpu+cuda", {}),
    "... + shapes": ("cpu+cuda", {"record_shapes": True}),
    "... + memory": ("cpu+cuda", {"profile_memory": True}),
    "... + stacks": ("cpu+cuda", {"with_stack": True}),
    "everything": ("cpu+cuda", measure.EVERYTHING),
}


def profile_of(variant: str) -> Any:
    wanted = VARIANTS[variant]
    return make_profile("lanescope", wanted[0], detach=False, **wanted[1]) if wanted else None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda", choices=("cpu", "cuda"))
    parser.add_argument("--seconds", type=float, default=80)
    parser.add_argument("--steps", type=int, default=600, help="of one block (default: %(default)s)")
    arguments = parser.parse_args()
    device = arguments.device
    names = [name for name, wanted in VARIANTS.items() if device == "cuda" or wanted is None or wanted[0] == "cpu"]
    step = cost.loop_step(device)

    def block() -> float:
        return measure.us_per_step(step, arguments.steps, device)

    def recorded(variant: str) -> float:
        profile = profile_of(variant)
        if profile is None:
            return block()
        profile.start()
        for _ in range(20):
            step()
        took = block()
        profile.stop()
        return took

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
    print(f"{rounds} rounds of {arguments.steps} steps\n{'':<18}{'base us':>9}{'adds us':>9}{'[quartiles]':>18}{'percent':>9}")
    for variant in names:
        added = measure.spread([us for _, us in rows[variant]])
        percent = measure.spread([100 * us / base for base, us in rows[variant]])
        bases = measure.spread([base for base, _ in rows[variant]])
        quartiles = f"[{added['q1']:.2f} .. {added['q3']:.2f}]"
        print(f"{variant:<18}{bases['median']:>9.2f}{added['median']:>+9.2f}{quartiles:>18}{percent['median']:>+9.1f}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
