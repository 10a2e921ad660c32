"""The profiler was asked for the CPU alone.

Wrong: activities=[ProfilerActivity.CPU], in the recording and not in the program: the GPU's side is missing.
In the trace: operators and `[memory]` records of the GPU, and not one kernel.
Fix: activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], which is also the default.
"""

import torch


def program(s):
    width = s.pick(4096, 16)
    x, weight = s.randn(width, width), s.randn(width, width)

    @torch.inference_mode()
    def step():
        return torch.relu(x @ weight)

    return step


def bad(s):
    return program(s)


def good(s):
    return program(s)
