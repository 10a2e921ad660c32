"""Recommenders and agents."""

import torch
import torch.nn.functional as F
from common import pair, recorded, tower, update
from torch import nn


@pair
def bags_by_lookup_and_sum(s, good):
    """A user is the sum of the items in the history. All their rows are looked up, written out, and then summed."""
    items, users, history, width = s.pick(1_000_000, 1000), s.pick(32_768, 16), s.pick(64, 8), s.pick(128, 16)
    table = nn.Embedding(items, width, device=s.device)
    model = tower(width, s.pick(256, 32), 2, 64).to(s.device)
    seen = torch.randint(0, items, (users, history), device=s.device)

    @torch.inference_mode()
    def step():
        if good:
            user = F.embedding_bag(seen, table.weight, mode="sum")
        else:
            user = F.embedding(seen, table.weight).sum(dim=1)
        return F.normalize(model(user), dim=1).square().mean()

    return step


@recorded(stacks=True)
@pair
def weights_copied_by_matmul(s, good):
    """Eight critics judge a batch of states at once. matmul broadcasts their weights over the batch."""
    critics, rows, width = 8, s.pick(1024, 8), s.pick(128, 16)
    weights = [nn.Parameter(torch.randn(critics, width, out, device=s.device) / width**0.5) for out in (width, width, 1)]
    optimizer = torch.optim.Adam(weights, lr=3e-4)
    states, wanted = torch.randn(rows, width, device=s.device), torch.randn(rows, 1, 1, device=s.device)

    def judged():
        h = states.unsqueeze(1).expand(rows, critics, width)
        for number, weight in enumerate(weights):
            h = F.relu(h) if number else h
            if good:
                h = torch.einsum("bed,edh->beh", h, weight)
            else:
                h = torch.matmul(h.unsqueeze(2), weight).squeeze(2)
        return h

    def step():
        return update(optimizer, (judged() - wanted).square().mean())

    return step
