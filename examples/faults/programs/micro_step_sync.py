"""Gradients of four micro-batches are accumulated, and summed over the ranks after each of them.

Wrong: DistributedDataParallel sums the gradients in every backward pass, unless no_sync() is used. Only the last sum is used.
In the trace: four backward passes a step, each with the same all-reduces, and one optimizer step.
Fix: all micro-batches but the last run under no_sync().
"""

import contextlib

import torch
from torch.nn.parallel import DistributedDataParallel

MICRO_BATCHES = 4


def program(s, sync_each):
    width = s.pick(8192, 16)
    layers = [torch.nn.Linear(width, width, bias=False, device=s.device, dtype=torch.bfloat16) for _ in range(s.pick(4, 2))]
    model = DistributedDataParallel(torch.nn.Sequential(*layers), gradient_as_bucket_view=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    batches = [s.randn(s.pick(512, 4), width) * (1 + s.rank) for _ in range(MICRO_BATCHES)]  # each rank has its own

    def step():
        optimizer.zero_grad()
        for number, x in enumerate(batches, 1):
            last = number == MICRO_BATCHES
            with contextlib.nullcontext() if sync_each or last else model.no_sync():
                loss = model(x).float().square().mean() / MICRO_BATCHES
                loss.backward()
        optimizer.step()
        return loss, model.module[0].weight.grad

    return step


def bad(s):
    return program(s, sync_each=True)


def good(s):
    return program(s, sync_each=False)
