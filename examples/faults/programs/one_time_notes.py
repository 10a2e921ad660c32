"""One step writes down what was done so far, with the GPU waiting.

Wrong: a summary in JSON in the middle of the ninth step. It happens once: no reason to make anything faster.
In the trace: one long gap with no event on the CPU, at a place where every other step has none.
Fix: none is needed, but to know that it is not part of a usual step. Here the summary is written before the loop.
"""

import json

import torch


def program(s, in_step):
    width, numbers = s.pick(4096, 16), list(range(s.pick(2_000_000, 1000)))
    weight, x, steps = s.randn(width, width), s.randn(s.pick(8192, 4), width), [0]
    if not in_step:
        json.dumps(numbers)

    @torch.inference_mode()
    def step():
        steps[0] += 1
        y = x @ weight
        if steps[0] == in_step:
            json.dumps(numbers)
        return torch.relu(y)

    return step


def bad(s):
    return program(s, 9)


def good(s):
    return program(s, None)
