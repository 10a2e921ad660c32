"""Rows of a table are gathered with an index in Python.

Wrong: `out[i] = table[rows[i]] * scale[i]` launches two kernels for a row.
In the trace: hundreds of aten::select with aten::mul and aten::copy_ below the same range, all of them tiny.
Fix: index with the whole list at once.
"""

import random

import torch


def parts(s):
    count, width = s.pick(120, 6), s.pick(1024, 8)
    rows = [random.Random(0).randrange(64) for _ in range(count)]
    return s.randn(64, width), rows, s.randn(count, 1)


def bad(s):
    table, rows, scale = parts(s)

    @torch.inference_mode()
    def step():
        out = torch.empty(len(rows), table.shape[1], dtype=table.dtype, device=table.device)
        for i, row in enumerate(rows):
            out[i] = table[row] * scale[i]
        return out

    return step


def good(s):
    table, rows, scale = parts(s)
    index = torch.tensor(rows, device=s.device)

    @torch.inference_mode()
    def step():
        return table[index] * scale

    return step
