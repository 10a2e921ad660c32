"""The recording begins while the GPU still has work to do.

Wrong: profiler.start() in a running program, in the recording and not in the program: what was launched before is not
recorded, and what is launched then has to wait for it.
In the trace: calls from the first moment, and the first kernel long after; the GPU looks idle and was not.
Fix: torch.cuda.synchronize() before the start (or a start that is earlier than what matters).
"""

import torch


def program(s):
    width = s.pick(4096, 16)
    x, weight = s.randn(s.pick(8192, 16), width), s.randn(width, width) / width**0.5

    @torch.inference_mode()
    def step():
        y = x
        for _ in range(8):
            y = y @ weight
        return y

    return step


def bad(s):
    return program(s)


def good(s):
    return program(s)
