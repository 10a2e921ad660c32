#!/usr/bin/env python3
"""A program that is hard to sample: threads that start and end, deep recursion, generators, coroutines, modules that come and go, forks.

    python3.9 bench/busy_python.py      goes on until its standard input ends; prints the number of its rounds

Needs nothing but Python 3.9 or newer; the child process of `python_samples.py outside`.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import sys
import tempfile
import threading
from typing import Any, Callable

WAITERS = 16  # threads that wait all the time: each sample of them counts as well


def deep(depth: int) -> int:
    return 0 if depth == 0 else 1 + deep(depth - 1)


def numbers(count: int) -> Any:
    for i in range(count):
        yield i


async def coroutine(depth: int) -> int:
    if depth == 0:
        await asyncio.sleep(0)
        return 1
    return await coroutine(depth - 1)


async def many() -> None:
    await asyncio.gather(*(coroutine(10) for _ in range(20)))


def load_and_unload(folder: str, index: int) -> None:
    path = os.path.join(folder, f"loaded_{index % 7}.py")
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"def f{index}(n):\n" + "    n += 1\n" * (index % 40) + "    return sum(range(n % 500))\n")
    spec = importlib.util.spec_from_file_location(f"loaded_{index}", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for _ in range(20):
        getattr(module, f"f{index}")(1000)


def fork_once(check: Callable[[], int]) -> None:
    pid = os.fork()
    if pid == 0:
        deep(50)
        os._exit(check())
    status = os.waitpid(pid, 0)[1]
    assert status == 0, f"a forked child ended with {status}"


def one_round(folder: str, index: int, check: Callable[[], int] = int) -> None:
    """`check`: what a forked child ends with; 0 is well."""
    threads = [threading.Thread(target=deep, args=(200 + 50 * (i % 8),)) for i in range(6)]
    for thread in threads:
        thread.start()
    deep(800)
    sum(numbers(2000))
    asyncio.run(many())
    load_and_unload(folder, index)
    if index % 50 == 0:
        fork_once(check)
    for thread in threads:
        thread.join()


def main() -> int:
    stop = threading.Event()
    waiters = [threading.Thread(target=stop.wait) for _ in range(WAITERS)]
    ended = threading.Thread(target=sys.stdin.read)
    for thread in [*waiters, ended]:
        thread.start()
    rounds = 0
    with tempfile.TemporaryDirectory() as folder:
        while ended.is_alive():
            rounds += 1
            one_round(folder, rounds)
    stop.set()
    print(rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
