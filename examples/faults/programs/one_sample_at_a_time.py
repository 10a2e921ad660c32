"""The model runs for one sample after the other.

Wrong: a Python loop over the batch: every layer is launched 32 times with work for a small part of the GPU.
In the trace: hundreds of calls of aten::linear and aten::relu, kernels of a few microseconds, the GPU idle between them.
Fix: one call for the whole batch.
"""

import torch


def parts(s):
    width = s.pick(2048, 16)
    layers = [part for _ in range(s.pick(4, 2)) for part in (torch.nn.Linear(width, width), torch.nn.ReLU())]
    return torch.nn.Sequential(*layers).to(s.device, torch.bfloat16), s.randn(s.pick(32, 3), s.pick(128, 2), width)


def bad(s):
    model, batch = parts(s)

    @torch.inference_mode()
    def step():
        return torch.stack([model(sample) for sample in batch])

    return step


def good(s):
    model, batch = parts(s)

    @torch.inference_mode()
    def step():
        return model(batch)

    return step
