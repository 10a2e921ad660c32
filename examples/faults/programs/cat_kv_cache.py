"""The cache of a decoder grows by torch.cat.

Wrong: for each new word the whole cache is copied to a place that is one word longer, in every layer.
In the trace: aten::cat with a kernel longer than the attention that follows it, and longer from step to step.
Fix: room for all words from the start, and one small write for each new one.
"""

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

BACKENDS = [SDPBackend.FLASH_ATTENTION, SDPBackend.MATH]  # not cuDNN's, which prepares again for each length
LAYERS, PROMPT, MOST = 4, 2048, 256  # after MOST words the prompt comes again


def parts(s):
    prompt = s.pick(PROMPT, 8)
    shape = (s.pick(16, 1), s.pick(16, 2), prompt, s.pick(128, 8))
    cache = [(s.randn(*shape), s.randn(*shape)) for _ in range(LAYERS)]
    return cache, prompt, s.randn(shape[0], shape[1], 1, shape[3])


def bad(s):
    start, prompt, word = parts(s)
    cache = list(start)

    @torch.inference_mode()
    @sdpa_kernel(BACKENDS)
    def step():
        if cache[0][0].shape[2] == prompt + MOST:
            cache[:] = start
        y = word
        for layer, (k, v) in enumerate(cache):
            k, v = torch.cat([k, y], 2), torch.cat([v, y], 2)
            cache[layer] = k, v
            y = torch.nn.functional.scaled_dot_product_attention(y, k, v)
        return y

    return step


def good(s):
    start, prompt, word = parts(s)
    cache = [[torch.cat([part, part.new_zeros(*part.shape[:2], MOST, part.shape[3])], 2) for part in pair] for pair in start]
    length = [prompt]

    @torch.inference_mode()
    @sdpa_kernel(BACKENDS)
    def step():
        if length[0] == prompt + MOST:
            length[0] = prompt
        at, y = length[0], word
        length[0] += 1
        for k, v in cache:
            k[:, :, at] = v[:, :, at] = y[:, :, 0]
            y = torch.nn.functional.scaled_dot_product_attention(y, k[:, :, : at + 1], v[:, :, : at + 1])
        return y

    return step
