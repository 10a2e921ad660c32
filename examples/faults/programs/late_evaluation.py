"""The first evaluation falls into the measurement.

Wrong: from the eighth step on each step also computes statistics, with operators that have not run before: their code is
brought to the GPU when they are first called.
In the trace: in that step many launches take a hundred times as long as usual, and the GPU waits for them.
Fix: run everything once before measuring.
"""

import torch


def statistics(y):
    return [each[0] for each in (
        y.sort(-1).values, y.topk(8).values, y.cumsum(-1), y.logcumsumexp(-1), y.median(-1).values, y.flip(-1), y.tril(),
        y.roll(1, -1), y.frac(), y.sinh(), y.lgamma(), y.erfinv(), torch.fft.rfft(y).abs())]


def program(s, before):
    width = s.pick(2048, 16)
    x, weight = (s.randn(width, width, dtype=torch.float32) for _ in range(2))
    weight, steps = weight / width, [0]
    if before:
        statistics(x @ weight)

    @torch.inference_mode()
    def step():
        steps[0] += 1
        y = x
        for _ in range(8):
            y = torch.relu(y @ weight)
        return statistics(y) if steps[0] >= 8 else y

    return step


def bad(s):
    return program(s, False)


def good(s):
    return program(s, True)
