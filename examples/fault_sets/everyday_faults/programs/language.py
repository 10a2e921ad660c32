"""Faults of language models."""

import torch
import torch.nn.functional as F
from common import Attention, pair, sgd, train
from torch import nn


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm, self.attention = nn.LayerNorm(width), Attention(width, heads)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x, **options):
        x = x + self.attention(self.norm(x), **options)
        return x + self.narrow(F.gelu(self.wide(x)))


@pair
def generation_without_cache(s, good):
    """Each new token runs the whole sequence through the model again. The good twin keeps the length of one token."""
    width, tokens = s.pick(1024, 64), 16
    blocks = nn.ModuleList([Block(width, 4) for _ in range(2)]).to(s.device)
    head = nn.Linear(width, s.pick(32000, 256)).to(s.device)
    start = torch.randn(s.pick(8, 1), s.pick(512, 32), width, device=s.device)

    @torch.inference_mode()
    def step():
        x = start
        for _ in range(tokens):
            h = x[:, -1:] if good else x
            for block in blocks:
                h = block(h)
            h = h[:, -1:] + head(h[:, -1:]).mean()
            x = torch.cat([x, h], dim=1)
        return x

    return step


@pair
def sentences_of_all_lengths(s, good):
    """40 sentences of different lengths run one by one through the encoder, not as one padded batch."""
    width = s.pick(512, 32)
    block = Block(width, 4).to(s.device)
    lengths = [16 + 7 * number % 50 for number in range(40)]
    words = torch.randn(40, max(lengths), width, device=s.device)

    @torch.inference_mode()
    def step():
        if good:
            return block(words).mean()
        return torch.stack([block(words[i : i + 1, :length]).mean() for i, length in enumerate(lengths)]).mean()

    return step


@pair
def mask_of_minus_infinity(s, good):
    """A float mask of the whole score matrix is passed where the attention is causal."""
    width, length = s.pick(512, 64), s.pick(4096, 128)
    block = Block(width, 4).to(s.device, torch.bfloat16 if s.device == "cuda" else torch.float32)
    x = torch.randn(s.pick(4, 1), length, width, device=s.device, dtype=next(block.parameters()).dtype)
    mask = torch.full((length, length), float("-inf"), device=s.device, dtype=x.dtype).triu(1)

    @torch.inference_mode()
    def step():
        return block(block(x, **({"causal": True} if good else {"mask": mask})),
                     **({"causal": True} if good else {"mask": mask}))

    return step


@pair
def head_over_all_positions(s, good):
    """The head makes scores of all words for each position of the prompt; the last position is used."""
    width, words = s.pick(1024, 64), s.pick(64000, 1000)
    block, head = Block(width, 4).to(s.device), nn.Linear(width, words).to(s.device)
    x = torch.randn(s.pick(4, 2), s.pick(1024, 64), width, device=s.device)

    @torch.inference_mode()
    def step():
        h = block(x, causal=True)
        if good:
            return head(h[:, -1]).softmax(dim=-1)
        return head(h)[:, -1].softmax(dim=-1)

    return step


@pair
def positions_made_each_layer(s, good):
    """Sines and cosines of the positions are made again in each of 12 layers."""
    width, length, layers = s.pick(512, 64), s.pick(1024, 64), 12
    linear = nn.ModuleList([nn.Linear(width, width) for _ in range(layers)]).to(s.device)
    x = torch.randn(s.pick(4, 1), length, width, device=s.device)

    def table():
        at = torch.arange(length, device=s.device, dtype=torch.float32)
        steps = torch.exp(torch.arange(0, width, 2, device=s.device) * (-9.2 / width))
        angles = at[:, None] * steps
        return torch.cat([angles.sin(), angles.cos()], dim=-1)

    kept = table()

    @torch.inference_mode()
    def step():
        h = x
        for layer in linear:
            h = F.relu(layer(h + (kept if good else table())))
        return h.mean()

    return step


@pair
def tokens_one_hot(s, good):
    """Embedding by a product with a one-hot matrix."""
    words, width = s.pick(32000, 1000), s.pick(512, 32)
    table = nn.Parameter(torch.randn(words, width, device=s.device))
    tokens = torch.randint(0, words, (s.pick(4096, 64),), device=s.device)
    head = nn.Linear(width, width).to(s.device)

    def loss_of():
        x = F.embedding(tokens, table) if good else F.one_hot(tokens, words).to(table.dtype) @ table
        return head(x).square().mean()

    return train(sgd([table, *head.parameters()]), loss_of)


@pair
def greedy_in_python(s, good):
    """The next token of each row is taken to Python, looked up, and sent back."""
    width, rows, words = s.pick(1024, 64), 32, s.pick(32000, 500)
    cell, head = nn.GRUCell(width, width).to(s.device), nn.Linear(width, words).to(s.device)
    table = torch.randn(words, width, device=s.device)

    @torch.inference_mode()
    def step():
        h, x = torch.zeros(rows, width, device=s.device), torch.zeros(rows, width, device=s.device)
        for _ in range(8):
            h = cell(x, h)
            best = head(h).argmax(dim=-1)
            if good:
                x = table[best]
            else:
                chosen = [int(best[row]) for row in range(rows)]
                x = table[torch.tensor(chosen, device=s.device)]
        return h

    return step
