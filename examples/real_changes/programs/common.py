"""What the programs share. Each function takes a Setting and whether the change is made, and returns its step."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from pair_list import PAIRS, Step, pair  # noqa: F401  of examples/faults, for the programs and record.py

VARIANTS = ("before", "after")


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)

    def forward(self, x, cache=None):
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        if cache is not None:  # the newest position of a cache of fixed length
            cache[0][:, :, -length:].copy_(k)
            cache[1][:, :, -length:].copy_(v)
            mixed = F.scaled_dot_product_attention(q, *cache)
        else:
            mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))


class GatedMlp(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.gate, self.up = nn.Linear(width, inner, bias=False), nn.Linear(width, inner, bias=False)
        self.down = nn.Linear(inner, width, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class HandmadeNorm(nn.Module):
    """RMSNorm as Llama's first code had it."""

    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        wide = x.float()
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-5)
        return wide.to(x.dtype) * self.weight


class LlamaBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm, self.norm2 = HandmadeNorm(width), HandmadeNorm(width)
        self.attention, self.mlp = Attention(width, heads), GatedMlp(width, width * 8 // 3)

    def forward(self, x, cache=None):
        x = x + self.attention(self.norm(x), cache)
        return x + self.mlp(self.norm2(x))


def conv_net(s):
    """A residual CNN with batch norm, of 9 convolutions."""

    def part(inside, outside, stride):
        return nn.Sequential(nn.Conv2d(inside, outside, 3, stride, 1, bias=False), nn.BatchNorm2d(outside), nn.ReLU())

    wide = s.pick(64, 4)
    layers = [part(3, wide, 2)]
    for stage in range(4):
        layers += [part(wide << stage, wide << stage, 1), part(wide << stage, wide << stage + 1, 2)]
    net = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(wide << 4, 100))
    return net.to(s.device, memory_format=torch.channels_last)


def graphed(s, function):
    """A CUDA graph of a function without arguments; on a CPU the function itself."""
    if s.device != "cuda":
        return function
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            function()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kept = function()

    def replay():
        graph.replay()
        return kept

    replay.function = function  # whose tensors the graph reads

    return replay
