"""Tensors are transposed and written out again around every product.

Wrong: `.transpose(1, 2).contiguous()` so that the axis to multiply over comes last, and the same on the way back.
In the trace: two aten::contiguous (aten::clone, aten::copy_) kernels as long as the matmul between them.
Fix: multiply from the left; a matmul reads either layout, and nothing needs to be written again.
"""

import torch


def parts(s):
    batch, tokens, width = s.pick(64, 2), s.pick(512, 8), s.pick(1024, 8)
    return s.randn(batch, tokens, width), [s.randn(tokens, tokens) / tokens**0.5 for _ in range(4)]


def bad(s):
    x, weights = parts(s)

    @torch.inference_mode()
    def step():
        y = x
        for weight in weights:
            y = (y.transpose(1, 2).contiguous() @ weight.T).transpose(1, 2).contiguous()
        return y

    return step


def good(s):
    x, weights = parts(s)

    @torch.inference_mode()
    def step():
        y = x
        for weight in weights:
            y = torch.bmm(weight.expand(y.shape[0], -1, -1), y)
        return y

    return step
