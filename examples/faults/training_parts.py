"""Parts of training steps that programs of several folders share."""

from __future__ import annotations

from typing import Callable

import torch
from torch import nn


def update(optimizer: torch.optim.Optimizer, loss: torch.Tensor) -> torch.Tensor:
    """Backward pass and optimizer; the loss, without its graph."""
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.detach()


def tower(inputs: int, width: int, layers: int, outputs: int, act: Callable[[], nn.Module] = nn.ReLU) -> nn.Sequential:
    parts: list[nn.Module] = [nn.Linear(inputs, width), act()]
    for _ in range(layers - 1):
        parts += [nn.Linear(width, width), act()]
    return nn.Sequential(*parts, nn.Linear(width, outputs))
