"""A part of the step builds a table when it is entered first.

Wrong: augmentation begins in the eighth step, and makes its table of 300,000 factors in Python there, before its first
operator.
In the trace: the first `augment` is many times as long as the others, and begins with nothing at all.
Fix: none if it happens once; here the table is made before the loop.
"""

import functools
import math

import torch


@functools.lru_cache()
def table(size):
    return [1 + math.sin(number) / size for number in range(size)]


def program(s, before):
    size, width = s.pick(300_000, 1000), s.pick(4096, 16)
    steps = [0]
    with torch.profiler.record_function("set-up"):  # the first range of a process costs something by itself
        x, weight = s.randn(width, width), s.randn(width, width)
    if before:
        table(size)

    @torch.inference_mode()
    def step():
        steps[0] += 1
        y = x * 0.5
        if steps[0] >= 8:
            with torch.profiler.record_function("augment"):
                y = y * table(size)[steps[0] % size]
        return torch.relu(y @ weight)

    return step


def bad(s):
    return program(s, False)


def good(s):
    return program(s, True)
