"""RMSNorm written out by hand.

Wrong: cast, square, mean, add, rsqrt, multiply, cast, multiply: most of them read and write the whole tensor.
In the trace: aten::to, aten::pow, aten::mean, aten::rsqrt, aten::mul, aten::to, aten::mul, again and again.
Fix: torch.compile makes one kernel of them.
"""

import torch


def rms_norm(x, weight):
    wide = x.float()
    return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype) * weight


def program(s, function):
    width = s.pick(4096, 16)
    x, weights = s.randn(s.pick(8192, 8), width), [s.randn(width) for _ in range(4)]

    @torch.inference_mode()
    def step():
        y = x
        for weight in weights:
            y = function(y, weight)
        return y

    return step


def bad(s):
    return program(s, rms_norm)


def good(s):
    return program(s, s.compile(rms_norm))
