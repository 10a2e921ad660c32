"""Python's garbage collector walks over a large data set in memory, again and again.

Wrong: gc.collect() every third step (or, unasked, the collector's own full runs) looks at each of two million objects.
In the trace: every third step a hole of some tens of milliseconds with no event on the CPU.
Fix: gc.freeze() after loading and after each run of the collector: it leaves what exists by then alone.
"""

import gc

import torch


def program(s, freeze):
    samples = [[number] for number in range(s.pick(2_000_000, 1000))]
    width = s.pick(4096, 8)
    model = torch.nn.Linear(width, width).to(s.device, torch.bfloat16)
    x, steps = s.randn(s.pick(8192, 4), width), [0]

    def collect():
        gc.collect()
        if freeze:
            gc.freeze()

    collect()

    def step():
        steps[0] += 1
        for _ in range(4):
            loss = model(x).float().square().mean()
            loss.backward()
            model.zero_grad()
        if steps[0] % 3 == 0:
            collect()
        return loss if samples else None

    return step


def bad(s):
    return program(s, False)


def good(s):
    return program(s, True)
