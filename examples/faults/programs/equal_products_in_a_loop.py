"""Each expert's input is multiplied with its weight in a loop of its own.

Wrong: 64 products of one small size, one call each: 64 launches, and each kernel is too small to fill the GPU.
In the trace: aten::mm 64 times in a row, with the same shapes, each with one short kernel.
Fix: torch.bmm over the stacked weights: one call for all.
"""

import torch


def parts(s):
    experts, tokens, width = s.pick(64, 4), s.pick(64, 4), s.pick(256, 8)
    x = s.randn(experts, tokens, width)
    up, down = s.randn(experts, width, width) / width**0.5, s.randn(experts, width, width) / width**0.5
    return x, up, down


def bad(s):
    x, up, down = parts(s)

    @torch.inference_mode()
    def step():
        outs = []
        for expert in range(x.shape[0]):
            outs.append(torch.relu(x[expert] @ up[expert]) @ down[expert])
        return torch.stack(outs)

    return step


def good(s):
    x, up, down = parts(s)

    @torch.inference_mode()
    def step():
        return torch.bmm(torch.relu(torch.bmm(x, up)), down)

    return step
