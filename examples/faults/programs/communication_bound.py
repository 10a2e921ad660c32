"""All gradients go into one bucket, so that their sum begins when the backward pass is over.

Wrong: DistributedDataParallel sends a bucket when all of its gradients are there. One bucket for the whole model is there at
the end, and nothing is left to compute meanwhile.
In the trace: one NCCL kernel of more than a millisecond after the backward pass, while no other kernel runs.
Fix: the usual buckets (25 MiB): all but the last are sent while the backward pass runs.
"""

import torch
from torch.nn.parallel import DistributedDataParallel


def program(s, bucket_cap_mb):
    width = s.pick(6144, 16)
    layers = [torch.nn.Linear(width, width, bias=False, device=s.device, dtype=torch.bfloat16) for _ in range(s.pick(6, 2))]
    model = DistributedDataParallel(torch.nn.Sequential(*layers), gradient_as_bucket_view=True, bucket_cap_mb=bucket_cap_mb)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = s.randn(s.pick(2048, 4), width) * (1 + s.rank)  # each rank has its own batch

    def step():
        optimizer.zero_grad()
        loss = model(x).float().square().mean()
        loss.backward()
        optimizer.step()
        return loss, model.module[0].weight.grad

    return step


def bad(s):
    return program(s, bucket_cap_mb=10_000)


def good(s):
    return program(s, bucket_cap_mb=25)
