"""Attention that needs a little more than the whole GPU.

Wrong: FlashAttention 2 gives a block 128 queries. 17 heads of 2048 are 272 blocks; an H200 has room for 264 at once, two on
each of its 132 multiprocessors: 264 run, then 8 with the rest idle.
In the trace: `flash_fwd_kernel` with a grid just above what fits at once, much longer than one of 16 heads.
Fix: 16 heads a call: 256 blocks, one wave. The same heads in all, in 17 calls instead of 16.
"""

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

BACKENDS = [SDPBackend.FLASH_ATTENTION, SDPBackend.MATH]


def program(s, heads):
    q, k, v = (s.randn(1, 16 * 17, s.pick(2048, 4), s.pick(128, 8)) for _ in range(3))
    parts = list(zip(*(each.split(heads, 1) for each in (q, k, v))))

    @torch.inference_mode()
    @sdpa_kernel(BACKENDS)
    def step():
        return torch.cat([torch.nn.functional.scaled_dot_product_attention(*part)[:, :, 0] for part in parts], 1)

    return step


def bad(s):
    return program(s, 17)


def good(s):
    return program(s, 16)
