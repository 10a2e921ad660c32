"""Jobs in which all GPUs wait for their CPUs, and near misses."""
from __future__ import annotations

import torch
from torch import nn

from training import CLASSES, DEVICE, LAYERS, ON_GPU, WIDTH, Job, in_parallel, keep_busy, make_model


class SmallOperators(Job):
    """61 layers of 256 x 256: a CPU needs longer to launch their kernels than a GPU to run them."""

    width, batch_size = (WIDTH // 16, 64) if ON_GPU else (WIDTH // 4, 16)

    def __init__(self):
        super().__init__()
        self.inputs = torch.randn(self.batch_size, self.width, device=DEVICE)
        self.labels = torch.randint(0, CLASSES, (self.batch_size,), device=DEVICE)

    def wrap(self, model):
        return in_parallel(make_model(self.width, layers=60))


class _Busy(nn.Module):
    def forward(self, hidden):
        keep_busy(0.0004)
        return hidden


class PythonBetweenLayers(Job):
    """0.4 ms of Python before each layer, and a twelfth of the batch, so that the GPU has nothing to do meanwhile."""

    def wrap(self, model):
        return in_parallel(nn.Sequential(*[part for layer in make_model(WIDTH // 4, layers=4 * LAYERS) for part in (_Busy(), layer)]))

    def batch(self):
        return self.inputs[:128, : WIDTH // 4], self.labels[:128]


class OperatorsThatFit(SmallOperators):
    """As many operators, and matrices for which a GPU needs a little longer than a CPU to launch them without a profiler."""

    width, batch_size = (WIDTH // 4, 1024) if ON_GPU else (WIDTH, 32)
