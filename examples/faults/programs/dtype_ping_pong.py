"""Activations go to float32 and back around every operation, "for safety".

Wrong: ReLU and clamp give the same in bfloat16, but each cast reads and writes the whole tensor.
In the trace: pairs of aten::to with the same shape, bfloat16 to float and float to bfloat16, around every small operator.
Fix: stay in bfloat16; cast once where the range matters (softmax, norms, the loss).
"""

import torch


def program(s, activate):
    width = s.pick(1024, 8)
    x, weights = s.randn(s.pick(65536, 16), width), [0.04 * s.randn(width, width) for _ in range(4)]

    @torch.inference_mode()
    def step():
        y = x
        for weight in weights:
            y = activate(y @ weight)
        return y

    return step


def bad(s):
    return program(s, lambda y: y.float().relu().to(torch.bfloat16).float().clamp(max=8).to(torch.bfloat16))


def good(s):
    return program(s, lambda y: y.relu().clamp(max=8))
