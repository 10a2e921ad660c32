"""Sixty small tensors are averaged over the ranks one by one.

Wrong: each all-reduce pays the latency of a launch, of the links and of waiting for the other rank, whatever its size.
In the trace: dozens of NCCL kernels of some microseconds in a row, each with a few thousand elements.
Fix: one flat tensor, one all-reduce.
"""

import torch
import torch.distributed as dist


def parts(s):
    width = s.pick(8192, 16)
    weight = s.randn(width, width) / width**0.5
    x = s.randn(s.pick(4096, 4), width)
    sizes = [s.pick(1024, 2) * (1 + i % 16) for i in range(60)]  # 4 to 64 KiB
    averages = [torch.zeros(size, device=s.device) for size in sizes]
    fresh = [torch.full((size,), 1.0 + s.rank, device=s.device) for size in sizes]  # what this rank saw

    def work():
        h = x
        for _ in range(s.pick(14, 2)):
            h = h @ weight
        torch._foreach_lerp_(averages, fresh, 0.1)
        return h

    return averages, work


def bad(s):
    averages, work = parts(s)

    @torch.inference_mode()
    def step():
        h = work()
        for average in averages:
            dist.all_reduce(average)
        torch._foreach_div_(averages, dist.get_world_size())
        return h[0], averages[0]

    return step


def good(s):
    averages, work = parts(s)
    flat = torch.cat(averages)
    averages[:] = flat.split([average.numel() for average in averages])  # each is a part of the flat one

    @torch.inference_mode()
    def step():
        h = work()
        dist.all_reduce(flat)
        flat.div_(dist.get_world_size())
        return h[0], averages[0]

    return step
