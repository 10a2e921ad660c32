"""Batches are copied to the GPU from ordinary, pageable memory.

Wrong: the driver copies such memory through a small buffer of its own. The call blocks, and the bus runs at a fraction of
its speed.
In the trace: `Memcpy HtoD (Pageable -> Device)` of some milliseconds, and cudaMemcpyAsync as long as it on the CPU.
Fix: pinned memory (DataLoader(pin_memory=True) or tensor.pin_memory()) and non_blocking=True.
"""

import torch


def parts(s):
    side = s.pick(128, 8)
    batch = torch.randn(s.pick(256, 2), 3, side, side)
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * side * side, s.pick(1024, 8)))
    return batch, model.to(s.device)


def bad(s):
    batch, model = parts(s)

    @torch.inference_mode()
    def step():
        return model(batch.to(s.device)).sum(1)

    return step


def good(s):
    batch, model = parts(s)
    batch = s.pinned(batch)

    @torch.inference_mode()
    def step():
        return model(batch.to(s.device, non_blocking=True)).sum(1)

    return step
