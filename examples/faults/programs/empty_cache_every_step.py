"""The memory cache is emptied in every step, "to save memory".

Wrong: torch.cuda.empty_cache() gives all free blocks back to the driver, which waits for the GPU; the next step asks for all
of them again.
In the trace: cudaFree and cudaMalloc in every step, milliseconds of them, the GPU idle.
Fix: leave the cache alone; its blocks are used again in the next step.
"""

import torch


def program(s, empty):
    width = s.pick(2048, 16)
    layers = [part for _ in range(s.pick(6, 2)) for part in (torch.nn.Linear(width, width), torch.nn.GELU())]
    model = torch.nn.Sequential(*layers).to(s.device, torch.bfloat16)
    x = s.randn(s.pick(8192, 4), width)

    def step():
        loss = model(x).float().square().mean()
        loss.backward()
        model.zero_grad()
        if empty and s.device == "cuda":
            torch.cuda.empty_cache()
        return loss

    return step


def bad(s):
    return program(s, True)


def good(s):
    return program(s, False)
