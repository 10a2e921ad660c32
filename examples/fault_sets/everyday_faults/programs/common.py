"""What the programs share: small models, and the step that trains one."""

from __future__ import annotations

from typing import Callable

import torch
from torch import nn

from pair_list import PAIRS, Step, pair  # noqa: F401  of examples/faults, for the programs and record.py


def mlp(s, width: int, layers: int, out: int = 0) -> nn.Sequential:
    parts = []
    for _ in range(layers):
        parts += [nn.Linear(width, width), nn.ReLU()]
    return nn.Sequential(*parts, nn.Linear(width, out or width)).to(s.device)


def sgd(parameters) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=1e-3)


def train(optimizer: torch.optim.Optimizer, loss_of: Callable[[], torch.Tensor]) -> Step:
    """A step: loss, backward, optimizer."""

    def step():
        loss = loss_of()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    return step


class Attention(nn.Module):
    """Attention over x, with a mask or causal."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads, self.qkv, self.out = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x, mask=None, causal=False):
        rows, length, width = x.shape
        q, k, v = self.qkv(x).view(rows, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        made = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal)
        return self.out(made.transpose(1, 2).reshape(rows, length, width))
