"""The launching thread shares its core with another busy process.

Wrong: a container with one core too few (or a data loader's worker on the wrong one): the system takes the core away for
milliseconds at a time, often in the middle of a launch.
In the trace: most `cudaLaunchKernel` take a few microseconds, some a thousand times as long, with the GPU idle.
Fix: a core of its own for the launching thread.
"""

import contextlib
import os
import subprocess
import sys

import torch

# Ends when the program that began it has.
BUSY = """
import os, sys
os.sched_setaffinity(0, {int(sys.argv[1])})
while os.getppid() == int(sys.argv[2]):
    sum(range(1000))
"""


@contextlib.contextmanager
def on_core(core, all_cores):
    os.sched_setaffinity(0, {core})  # of this thread alone, not of the recorder's
    try:
        yield
    finally:
        os.sched_setaffinity(0, all_cores)


def program(s, cores_apart):
    cores = os.sched_getaffinity(0)
    mine = max(cores)
    other = sorted(cores)[-1 - cores_apart % len(cores)]
    subprocess.Popen([sys.executable, "-c", BUSY, str(other), str(os.getpid())], stdin=subprocess.DEVNULL)
    x = torch.ones(s.pick(2**20, 2**6), device=s.device)

    @torch.inference_mode()
    def step():
        with on_core(mine, cores):
            for _ in range(s.pick(150, 10)):
                x.neg_()
        return x[:64]

    return step


def bad(s):
    return program(s, 0)


def good(s):
    return program(s, 1)
