"""What the small programs of the scenarios share: they do work that is recorded, and count it where a kill cannot reach.

The counters lie in a file that this process and run.py have mapped: what was stored is seen after kill -9, too.
"""

from __future__ import annotations

import mmap
import os
import sys
import threading

THREADS = 3
CHECKPOINT = 500  # each so many ranges, one has its number in its name


def _map_counters():
    path = os.environ["RELIABILITY_COUNTERS"]
    with open(path, "r+b") as file:
        return memoryview(mmap.mmap(file.fileno(), os.path.getsize(path))).cast("Q")


counters = _map_counters()  # [k]: ranges that thread k has ended; the last one is for other numbers


def ranges(slot=0, count=None):
    """Ranges `t<slot>`, each counted when it has ended; without a count for ever."""
    from lanescope import record_function

    name, done = f"t{slot}", counters[slot]
    end = None if count is None else done + count
    while done != end:
        done += 1
        with record_function(name if done % CHECKPOINT else f"{name}_{done}"):
            pass
        counters[slot] = done


def operators(count):
    """torch operators, for programs that know nothing of lanescope; count None: for ever."""
    import torch

    one = torch.ones(1)
    done = counters[0]
    end = None if count is None else done + count
    while done != end:
        one.neg_()
        done += 1
        counters[0] = done


def on_threads(count=None):
    threads = [threading.Thread(target=ranges, args=(slot, count)) for slot in range(THREADS)]
    for thread in threads:
        thread.start()
    return threads


def ready():
    """Tells run.py that the interesting part begins."""
    print("ready", flush=True)


def last_line():
    """The program has done its work; what comes now is the exit. Says when, and how much memory this process took at most."""
    import time

    with open("/proc/self/status") as status:
        peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
    print(f"last_line {time.monotonic()} {peak}", flush=True)


def checkpoint(path, size):
    """A file of the program's own, as torch.save would write it."""
    with open(path, "wb") as file:
        for _ in range(size >> 16):
            file.write(b"x" * 65536)
        file.flush()
        os.fsync(file.fileno())
    print("checkpoint written", flush=True)


def profile(**options):
    import lanescope

    return lanescope.profile(
        activities=[lanescope.ProfilerActivity.CPU], output_dir=os.environ["RELIABILITY_OUT"], **options
    )


def dropped(prof):
    """What the recorder itself says that it lost, for run.py."""
    print(f"dropped {prof.stats()['dropped_records']}", flush=True)
    sys.stdout.flush()
