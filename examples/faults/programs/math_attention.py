"""Attention that writes out its matrix of scores.

Wrong: a forced backend (often left over from debugging) takes the plain path: two matmuls and a softmax, with a matrix of
length times length between them.
In the trace: aten::_scaled_dot_product_attention_math with aten::matmul, aten::_softmax and copies below it.
Fix: let torch choose; a fused kernel keeps the scores on the chip.
"""

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel


def parts(s):
    shape = (s.pick(4, 1), s.pick(16, 2), s.pick(2048, 16), s.pick(64, 8))
    return [s.randn(*shape) for _ in range(3)]


def bad(s):
    q, k, v = parts(s)

    @torch.inference_mode()
    def step():
        with sdpa_kernel(SDPBackend.MATH):
            return torch.nn.functional.scaled_dot_product_attention(q, k, v)

    return step


def good(s):
    q, k, v = parts(s)

    @torch.inference_mode()
    def step():
        return torch.nn.functional.scaled_dot_product_attention(q, k, v)

    return step
