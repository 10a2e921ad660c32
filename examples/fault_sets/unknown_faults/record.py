#!/usr/bin/env python3
"""Records the programs of programs.py on the CPU, under torch.profiler and lanescope.

    python3 examples/fault_sets/unknown_faults/record.py --out traces [--only cell_by_cell] [--recorder torch] [--stacks]
"""

from __future__ import annotations

import argparse
import os
import sys
import traceback

import programs
import torch

STEPS = 6


def record(name: str, recorder: str, path: str, stacks: bool) -> None:
    torch.set_num_threads(1)
    step = getattr(programs, name)()
    for _ in range(2):
        step()
    if recorder == "torch":
        from torch.profiler import ProfilerActivity, profile, schedule
    else:
        from lanescope import ProfilerActivity, profile, schedule
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=0, warmup=1, active=STEPS),
        record_shapes=True,
        with_stack=stacks,
        on_trace_ready=lambda made: made.export_chrome_trace(path),
    ) as made:
        for _ in range(STEPS + 1):
            step()
            made.step()


def in_own_process(name: str, recorder: str, path: str, stacks: bool) -> bool:
    """A fork of this process, which has imported torch and used nothing of it."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            record(name, recorder, path, stacks)
            code = 0
        except BaseException:  # noqa: B902: the child must never return
            traceback.print_exc()
        sys.stdout.flush()
        os._exit(code)  # a program may have threads that never end
    return os.waitpid(child, 0)[1] == 0 and os.path.exists(path)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="traces")
    parser.add_argument("--only", action="append")
    parser.add_argument("--recorder", action="append", choices=["torch", "lanescope"])
    parser.add_argument("--stacks", action="store_true")
    args = parser.parse_args()
    os.makedirs(args.out, exist_ok=True)
    failed = 0
    for name in args.only or programs.EXPECTED:
        for recorder in args.recorder or ["torch", "lanescope"]:
            path = os.path.join(args.out, f"{name}.{recorder}.json.gz")
            done = in_own_process(name, recorder, path, args.stacks)
            failed += not done
            print(f"{name} under {recorder}: {'recorded' if done else 'failed'}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
