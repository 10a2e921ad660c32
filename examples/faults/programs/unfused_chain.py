"""A chain of element-wise operations, each of which reads and writes everything.

Wrong: an activation written out as eight operators makes eight trips through memory.
In the trace: a run of `elementwise_kernel`s with the same number of elements, the GPU busy all along.
Fix: torch.compile makes one kernel of them (or use the ready operator: gelu(approximate="tanh")).
"""

import torch


def gelu(x):
    return 0.5 * x * (1 + torch.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))


def program(s, function):
    x = s.randn(s.pick(16384, 16), s.pick(8192, 16))

    @torch.inference_mode()
    def step():
        return function(x)

    return step


def bad(s):
    return program(s, gelu)


def good(s):
    return program(s, s.compile(gelu))
