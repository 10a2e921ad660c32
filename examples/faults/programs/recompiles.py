"""A compiled function that is compiled again for every new length.

Wrong: dynamic=False makes code for exactly the shapes it has seen; here each batch has another length.
In the trace: `(dynamo_timed)` compile events, and the GPU idle for most of a second, in every step.
Fix: dynamic=True (or mark_dynamic): one code for all lengths. Padding to a few lengths does as well.
"""

import torch


def program(s, dynamic):
    width = s.pick(1024, 16)

    def activation(x, scale):
        return torch.nn.functional.silu(x) * scale + x

    compiled = s.compile(activation, dynamic=dynamic)
    scale, lengths = s.randn(width), [s.pick(512, 8)]

    @torch.no_grad()
    def step():
        lengths[0] += 8
        return compiled(torch.ones(lengths[0], width, dtype=scale.dtype, device=s.device), scale)

    return step


def bad(s):
    return program(s, False)


def good(s):
    return program(s, True)
