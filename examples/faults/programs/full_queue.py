"""More launches than the driver's queue holds.

Wrong: 800 kernels a step, each far longer than its launch: the CPU runs ahead until about a thousand of them wait.
In the trace: `cudaLaunchKernel` takes as long as a kernel, again and again, and the GPU has no gap. It looks alarming and is
normal: the GPU is the limit, and the CPU waits for room.
Fix: none is needed. The same work in 50 launches keeps the queue short, and the step takes the same time.
"""

import torch


def program(s, pieces):
    x = torch.ones(s.pick(2**30, 2**10), dtype=torch.bfloat16, device=s.device)
    parts = x.chunk(pieces)

    @torch.inference_mode()
    def step():
        for _ in range(s.pick(50, 2)):
            for part in parts:
                part.neg_()
        return x[:1024]

    return step


def bad(s):
    return program(s, 16)


def good(s):
    return program(s, 1)
