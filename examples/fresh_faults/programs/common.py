"""What the programs share: their list, how each is recorded, and the end of a training step."""

from __future__ import annotations

from typing import Any, Callable

import torch
from torch import nn

from pair_list import PAIRS, Step, pair  # noqa: F401  of examples/faults, for the programs and record.py


def trap(function: Callable[..., Step]) -> Callable[..., Step]:
    """Enters a program that looks faulty and is not. There is one of it, called good."""
    function.variants = ("good",)  # type: ignore[attr-defined]
    return pair(function)


def recorded(**options: Any) -> Callable[[Callable[..., Step]], Callable[..., Step]]:
    """How a program is recorded: shapes, stacks, memory, and marks (of steps); see record.py of examples/blind_faults."""

    def enter(function: Callable[..., Step]) -> Callable[..., Step]:
        function.recording = options  # type: ignore[attr-defined]
        return function

    return enter


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
