"""Each layer casts to float32 for its activation, and back.

Wrong: bfloat16 -> float32 -> bfloat16 around an operator that works in bfloat16 as well.
In the trace: aten::to / aten::copy_ whose input and output have different types, twice a layer.
Fix: stay in bfloat16.
"""

import torch


def parts(s):
    width, rows = s.pick(1024, 8), s.pick(32768, 8)
    layers = [torch.nn.Linear(width, width, bias=False).to(s.device, torch.bfloat16) for _ in range(s.pick(8, 2))]
    return layers, s.randn(rows, width)


def bad(s):
    layers, x = parts(s)

    @torch.inference_mode()
    def step():
        y = x
        for layer in layers:
            y = torch.relu(layer(y).float()).to(torch.bfloat16)
        return y.float().mean(0)

    return step


def good(s):
    layers, x = parts(s)

    @torch.inference_mode()
    def step():
        y = x
        for layer in layers:
            y = torch.relu(layer(y))
        return y.float().mean(0)

    return step
