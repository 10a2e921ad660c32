"""Rows are picked with a boolean mask, layer after layer.

Wrong: x[mask] has a size that only the GPU knows: aten::nonzero counts, and the CPU waits for the count.
In the trace: aten::index with aten::nonzero in it, a copy of 8 bytes to the CPU, and a wait; the GPU idles afterwards.
Fix: keep the size: torch.where(mask, new, x).
"""

import torch


def parts(s):
    width, rows = s.pick(512, 8), s.pick(8192, 8)
    layers = [s.randn(width, width) / width**0.5 for _ in range(s.pick(16, 2))]
    return layers, s.randn(rows, width)


def bad(s):
    layers, x = parts(s)

    @torch.inference_mode()
    def step():
        y = x.clone()
        for weight in layers:
            mask = y[:, 0] > 0
            y[mask] = torch.tanh(y[mask] @ weight)
        return y

    return step


def good(s):
    layers, x = parts(s)

    @torch.inference_mode()
    def step():
        y = x.clone()
        for weight in layers:
            mask = y[:, :1] > 0
            y = torch.where(mask, torch.tanh(y @ weight), y)
        return y

    return step
