"""One kernel takes nearly all the time.

Wrong: sums per group with index_add_, where all rows go to 8 groups: a million atomic additions wait for each other.
In the trace: one kernel (`indexFunc...`) with most of the GPU's time; everything else hardly shows.
Fix: the same sums as a product with a matrix of ones and zeros.
"""

import torch

GROUPS = 8


def program(s, sums_of):
    rows, width = s.pick(131072, 64), s.pick(256, 8)
    x = s.randn(rows, width, dtype=torch.float32)
    norm = torch.nn.LayerNorm(width).to(s.device)
    groups = (torch.arange(rows) % GROUPS).to(s.device)

    @torch.inference_mode()
    def step():
        return sums_of(torch.nn.functional.gelu(norm(x)).softmax(-1), groups)

    return step


def bad(s):
    return program(s, lambda y, groups: y.new_zeros(GROUPS, y.shape[1]).index_add_(0, groups, y))


def good(s):
    def sums_of(y, groups):
        members = (groups == torch.arange(GROUPS, device=groups.device)[:, None]).to(y.dtype)
        return members @ y

    return program(s, sums_of)
