"""The moving average of the weights is updated tensor by tensor.

Wrong: two launches for each of 128 tensors. Each kernel takes the GPU less time than its launch takes the CPU.
In the trace: hundreds of kernels of a few microseconds under aten::mul_ and aten::add_, with a hole before each.
Fix: torch._foreach_lerp_ (torch.optim.swa_utils has it ready) works on the whole list with a handful of launches.
"""

import torch


def parts(s):
    count, size = s.pick(128, 6), s.pick(65536, 64)
    weights, averages = ([s.randn(size, dtype=torch.float32) for _ in range(count)] for _ in range(2))
    return weights, averages


def bad(s):
    weights, averages = parts(s)

    @torch.no_grad()
    def step():
        for weight, average in zip(weights, averages):
            average.mul_(0.99).add_(weight, alpha=0.01)
        return averages[-1]

    return step


def good(s):
    weights, averages = parts(s)

    @torch.no_grad()
    def step():
        torch._foreach_lerp_(averages, weights, 0.01)
        return averages[-1]

    return step
