"""Models and data that need no network."""

from __future__ import annotations

import torch
from torch import nn


class Block(nn.Module):
    """A residual block of two convolutions."""

    def __init__(self, channels_in: int, channels_out: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels_in, channels_out, 3, stride, 1, bias=False)
        self.second = nn.Conv2d(channels_out, channels_out, 3, 1, 1, bias=False)
        self.norm_1, self.norm_2 = nn.BatchNorm2d(channels_out), nn.BatchNorm2d(channels_out)
        self.shortcut = nn.Conv2d(channels_in, channels_out, 1, stride, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm_2(self.second(torch.relu(self.norm_1(self.first(x)))))
        return torch.relu(y + self.shortcut(x))


def resnet() -> nn.Module:
    """A ResNet of four blocks for 64x64 images."""
    blocks = [Block(a, b, 2) for a, b in ((8, 8), (8, 16), (16, 32), (32, 64))]
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)]
    return nn.Sequential(nn.Conv2d(3, 8, 7, 2, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU(), *blocks, *head)


def images(count: int = 5) -> torch.Tensor:
    return torch.randn(count, 3, 64, 64)
