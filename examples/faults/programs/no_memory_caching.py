"""torch's memory cache was switched off, as one does to look for memory errors, and never switched on again.

Wrong: PYTORCH_NO_CUDA_MEMORY_CACHING=1 turns every tensor into a cudaMalloc and its end into a cudaFree, which waits.
In the trace: cudaMalloc and cudaFree inside almost every operator.
Fix: do not set it.
"""

import os

import torch


def program(s):
    width = s.pick(1024, 16)
    layers = [part for _ in range(s.pick(8, 2)) for part in (torch.nn.Linear(width, width), torch.nn.GELU())]
    model = torch.nn.Sequential(*layers).to(s.device, torch.bfloat16)
    x = s.randn(s.pick(8192, 4), width)

    @torch.inference_mode()
    def step():
        return model(x)

    return step


def bad(s):
    os.environ["PYTORCH_NO_CUDA_MEMORY_CACHING"] = "1"  # read when the first tensor is made
    return program(s)


def good(s):
    return program(s)
