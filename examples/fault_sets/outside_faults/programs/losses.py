"""Losses over many words."""

import torch
import torch.nn.functional as F
from common import half, pair, recorded, update
from torch import nn


def language_model(s):
    width, words, rows, length = s.pick(512, 64), s.pick(32000, 500), s.pick(8, 2), s.pick(512, 32)
    model = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, words)).to(s.device, half(s.device))
    x = torch.randn(rows, length, width, device=s.device, dtype=half(s.device))
    return model, torch.optim.AdamW(model.parameters(), lr=1e-4), x, torch.randint(0, words, (rows, length), device=s.device)


@recorded(stacks=True)
@pair
def logits_transposed_for_loss(s, good):
    """cross_entropy wants the classes in the second dimension, so the logits are transposed for it."""
    model, optimizer, x, words = language_model(s)

    def step():
        logits = model(x)
        if good:
            return update(optimizer, F.cross_entropy(logits.flatten(0, 1), words.flatten()))
        return update(optimizer, F.cross_entropy(logits.transpose(1, 2), words))

    return step


@pair
def smoothed_targets_built(s, good):
    """Label smoothing as in an annotated paper: the wanted distribution over all words is written out."""
    model, optimizer, x, words = language_model(s)
    target, smoothing = words.flatten(), 0.1

    def step():
        logits = model(x).flatten(0, 1).float()
        if good:
            return update(optimizer, F.cross_entropy(logits, target, label_smoothing=smoothing))
        smoothed = torch.full_like(logits, smoothing / (logits.shape[1] - 1))
        smoothed.scatter_(1, target[:, None], 1 - smoothing)
        return update(optimizer, F.kl_div(F.log_softmax(logits, dim=1), smoothed, reduction="batchmean"))

    return step
