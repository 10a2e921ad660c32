"""Attention of long sequences by a backend that was written for older GPUs.

Wrong: a forced backend (memory-efficient attention) uses the tensor cores as an A100 has them.
In the trace: aten::_scaled_dot_product_efficient_attention with `fmha_cutlassF_..._sm80`, below half of the GPU's peak.
Fix: the backend that knows this GPU: cuDNN's on an H100 or H200, or FlashAttention 3.
"""

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel


def program(s, backend):
    backend = backend if s.device == "cuda" else SDPBackend.MATH
    q, k, v = (s.randn(s.pick(4, 1), s.pick(16, 2), s.pick(8192, 16), s.pick(128, 8)) for _ in range(3))

    @torch.inference_mode()
    def step():
        with sdpa_kernel(backend):
            return torch.nn.functional.scaled_dot_product_attention(q, k, v)

    return step


def bad(s):
    return program(s, SDPBackend.EFFICIENT_ATTENTION)


def good(s):
    return program(s, SDPBackend.CUDNN_ATTENTION)
