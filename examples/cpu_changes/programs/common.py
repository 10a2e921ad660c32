"""What the programs share. Each function takes a Setting and whether it is the good twin, and returns its step."""

from __future__ import annotations

import torch
from torch import nn

from pair_list import PAIRS, pair, recorded  # noqa: F401  of examples/faults, for the programs and record.py
from training_parts import tower, update  # noqa: F401  of examples/faults


def half(device: str) -> torch.dtype:
    return torch.bfloat16 if device == "cuda" else torch.float32


def trained(s, inputs: int, layers: int, outputs: int = 16):
    """A tower in half precision, and an optimizer that spends little time on the CPU."""
    model = tower(inputs, s.pick(2048, 16), layers, outputs).to(s.device, half(s.device))
    return model, torch.optim.SGD(model.parameters(), lr=1e-5, fused=s.device == "cuda")


class Named(nn.Module):
    """Layers that a user would write: a norm, a product, an activation."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.product = nn.LayerNorm(width), nn.Linear(width, width)

    def forward(self, x):
        return x + torch.relu(self.product(self.norm(x)))
