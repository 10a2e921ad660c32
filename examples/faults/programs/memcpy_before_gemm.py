"""A bias that was written out as a whole matrix.

Wrong: addmm with a matrix to add first copies that matrix into its output, then multiplies on top of it.
In the trace: `Memcpy DtoD` right before each matmul kernel, under the same aten::addmm.
Fix: a bias of one row (torch.nn.Linear): the matmul kernel adds it while it stores its result.
"""

import torch


def parts(s):
    rows, width, inner, layers = s.pick(16384, 8), s.pick(4096, 16), s.pick(256, 8), s.pick(6, 2)
    x = s.randn(rows, inner)
    return x, [s.randn(inner, width) for _ in range(layers)], [s.randn(width) for _ in range(layers)]


def bad(s):
    x, weights, biases = parts(s)
    matrices = [bias.expand(x.shape[0], -1).contiguous() for bias in biases]

    @torch.inference_mode()
    def step():
        return [torch.addmm(matrix, x, weight) for matrix, weight in zip(matrices, weights)]

    return step


def good(s):
    x, weights, biases = parts(s)

    @torch.inference_mode()
    def step():
        return [torch.addmm(bias, x, weight) for bias, weight in zip(biases, weights)]

    return step
