"""A Triton kernel for a sum over rows is launched with one program for all columns of a block.

Wrong: 16 programs for a GPU of 132 multiprocessors: the others have nothing to do.
In the trace: a kernel with the user's own name, a grid of 16 blocks, and a long time.
Fix: a finer grid: split the rows over programs too, then add the parts.
"""

import torch

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None

if triton is not None:

    @triton.jit
    def sum_columns(x, out, rows, columns, rows_each, BLOCK: tl.constexpr):
        column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        first = tl.program_id(1) * rows_each
        total = tl.zeros((BLOCK,), tl.float32)
        for row in range(first, min(first + rows_each, rows)):
            total += tl.load(x + row * columns + column)
        tl.store(out + tl.program_id(1) * columns + column, total)


def program(s, parts):
    rows, columns, block = s.pick(16384, 16), 2048, 128
    x = s.randn(rows, columns, dtype=torch.float32)
    out = torch.empty(parts, columns, device=s.device)

    @torch.inference_mode()
    def step():
        if triton is None or s.device == "cpu":
            return x.sum(0)
        sum_columns[(columns // block, parts)](x, out, rows, columns, -(-rows // parts), BLOCK=block)
        return out.sum(0)

    return step


def bad(s):
    return program(s, 1)


def good(s):
    return program(s, 64)
