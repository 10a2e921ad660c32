"""Each batch is a little longer than all before.

Wrong: what the allocator keeps from earlier batches is too small for this one, piece by piece, and it asks the driver for
more, again and again, although much more than that is unused.
In the trace (recorded with profile_memory): reserved memory grows and allocated memory does not; cudaMalloc in each step.
Fix: pad to the longest length from the start (or PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True).
"""

import torch


def program(s, padded):
    width, first, more, most = s.pick(16384, 16), s.pick(1024, 8), s.pick(64, 8), s.pick(4096, 1024)
    x, rows = s.randn(most, width), [first]

    @torch.inference_mode()
    def step():
        rows[0] += more
        y = x if padded else x[: rows[0]]
        activations = []
        for _ in range(8):
            y = torch.relu(y) * 0.5
            activations.append(y)
        return sum(each[0] for each in activations)

    return step


def bad(s):
    return program(s, False)


def good(s):
    return program(s, True)
