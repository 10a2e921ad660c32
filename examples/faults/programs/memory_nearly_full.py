"""A pool of memory sized so that nothing is left.

Wrong: the pool of a server's key-value cache takes 92 % of the GPU: the next longer prompt does not fit.
In the trace (recorded with profile_memory): `Total Reserved` of the `[memory]` records, compared with the device's memory.
Fix: a pool that leaves room for the rest.
"""

import torch


def program(s, share):
    size = int(share * torch.cuda.get_device_properties(0).total_memory) if s.device == "cuda" else 2**16
    pool = torch.empty(size, dtype=torch.uint8, device=s.device).zero_()
    width = s.pick(4096, 16)
    weight, x = s.randn(width, width), s.randn(s.pick(4096, 4), width)

    @torch.inference_mode()
    def step():
        pool[: x.numel()] = 1
        return x @ weight + pool[: x.numel()].view_as(x)

    return step


def bad(s):
    return program(s, 0.92)


def good(s):
    return program(s, 0.6)
