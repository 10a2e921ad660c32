"""Starts and stops profiles and shows what a start leaves: memory, open files, maps, threads, spools.

    python python/tests/restarts.py 10000

One JSON object a line, after the warm-up and after each tenth of the starts.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile

import lanescope

WARM_UP = 300


def restart() -> None:
    with lanescope.profile(schedule=lanescope.schedule(wait=0, warmup=1, active=1, repeat=1), on_trace_ready=str) as prof:
        prof.add_metadata("settings", os.urandom(8).hex())
        for _ in range(2):
            with lanescope.record_function("work"):
                pass
            prof.step()
    assert prof.stats()["dropped_records"] == 0


def resident_bytes() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def count_of(name: str) -> int:
    return len(os.listdir(f"/proc/self/{name}"))


def now(starts: int) -> dict[str, int]:
    with open("/proc/self/maps") as file:
        maps = sum(1 for _ in file)
    spools = sum(name.endswith(".lspool") for name in os.listdir(tempfile.gettempdir()))
    return {
        "starts": starts,
        "resident_bytes": resident_bytes(),
        "files": count_of("fd"),
        "maps": maps,
        "threads": count_of("task"),
        "spools": spools,
    }


def main(starts: int) -> None:
    for _ in range(WARM_UP):
        restart()
    print(json.dumps(now(0)), flush=True)
    for number in range(1, starts + 1):
        restart()
        if number % max(starts // 10, 1) == 0:
            print(json.dumps(now(number)), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
