"""A mask is made on the CPU in every step and then moved.

Wrong: torch.ones(...).to("cuda") fills 64 MB on the CPU, and copies them through pageable memory.
In the trace: aten::ones without any kernel, then aten::to with a long `Memcpy HtoD (Pageable -> Device)`.
Fix: make it where it is used: device="cuda". (Better still: make it once.)
"""

import torch


def program(s, mask_of):
    length, width = s.pick(4096, 8), s.pick(1024, 8)
    x = s.randn(length, width, dtype=torch.float32)

    @torch.inference_mode()
    def step():
        scores = (x @ x.T).masked_fill(mask_of(length) == 0, float("-inf"))
        return scores.softmax(-1)

    return step


def bad(s):
    return program(s, lambda length: torch.ones(length, length).to(s.device).tril())


def good(s):
    return program(s, lambda length: torch.ones(length, length, device=s.device).tril())
