"""A vocabulary of 50257 words.

Wrong: rows of 50257 numbers do not begin at multiples of 16 bytes, so matmuls over them cannot load their data in wide
pieces, and slow kernels take over.
In the trace: aten::mm with 50257 among its dims, kernels with `align1` in their names or much slower than their neighbours.
Fix: pad to a multiple of 64 (50304); a bias of -1e4 gives the added words no probability, the loss is the same.
"""

import torch


def program(s, padded):
    words = s.pick(50257, 63)
    rows = -(-words // 64) * 64 if padded else words
    width, tokens = s.pick(768, 16), s.pick(4096, 8)
    weight, bias = torch.zeros(rows, width), torch.full((rows,), -1e4)
    weight[:words], bias[:words] = 0.02 * torch.randn(words, width), 0
    weight, bias = (t.to(s.device, torch.bfloat16).requires_grad_() for t in (weight, bias))
    x = s.randn(tokens, width).requires_grad_()
    target = (torch.arange(tokens) * 7 % words).to(s.device)

    def step():
        logits = torch.nn.functional.linear(x, weight, bias)
        loss = torch.nn.functional.cross_entropy(logits, target)
        loss.backward()
        gradient = x.grad.float().square().mean()
        x.grad = weight.grad = bias.grad = None
        return loss, gradient

    return step


def bad(s):
    return program(s, False)


def good(s):
    return program(s, True)
