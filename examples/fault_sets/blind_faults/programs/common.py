"""What the programs share: small models, and the step that trains one."""

from __future__ import annotations

from typing import Callable

import torch
from torch import nn

from pair_list import PAIRS, Step, pair  # noqa: F401  of examples/faults, for the programs and record.py


def mlp(s, width: int, layers: int, out: int = 0) -> nn.Sequential:
    parts = []
    for _ in range(layers):
        parts += [nn.Linear(width, width), nn.GELU()]
    return nn.Sequential(*parts, nn.Linear(width, out or width)).to(s.device, torch.bfloat16)


def adamw(parameters) -> torch.optim.Optimizer:
    return torch.optim.AdamW(parameters, lr=1e-4, fused=True)


def train(model: nn.Module, optimizer: torch.optim.Optimizer, loss_of: Callable[[], torch.Tensor]) -> Step:
    """A step: loss, backward, optimizer."""

    def step():
        loss = loss_of()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    return step
