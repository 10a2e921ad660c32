"""Programs that look faulty and are not. The docstring says what must not be said."""

import torch
import torch.nn.functional as F
from common import half, recorded, tower, trap, update
from torch import nn


@trap
def one_layer_used_six_times(s, good):
    """ALBERT's layers share their weights. Not: the same layer runs again, use its first result."""
    width = s.pick(1024, 64)
    layer = nn.TransformerEncoderLayer(width, 8, 4 * width, dropout=0.0, batch_first=True, norm_first=True).to(s.device, half(s.device))
    optimizer = torch.optim.AdamW(layer.parameters(), lr=1e-4)
    x = torch.randn(s.pick(16, 2), 256, width, device=s.device, dtype=half(s.device))

    def step():
        h = x
        for _ in range(6):
            h = layer(h)
        return update(optimizer, h.float().square().mean())

    return step


@recorded(stacks=True)
@trap
def two_views_by_dropout(s, good):
    """SimCSE: one batch passes twice, dropout makes the difference. Not: the second pass gives what the first gave."""
    width = s.pick(1024, 64)
    encoder = nn.Sequential(*[part for _ in range(6) for part in (nn.Linear(width, width), nn.GELU(), nn.Dropout(0.1))])
    encoder.to(s.device, half(s.device))
    optimizer = torch.optim.AdamW(encoder.parameters(), lr=1e-4)
    x = torch.randn(s.pick(8192, 64), width, device=s.device, dtype=half(s.device))
    same = torch.arange(len(x), device=s.device)

    def step():
        first, second = F.normalize(encoder(x), dim=1), F.normalize(encoder(x), dim=1)
        return update(optimizer, F.cross_entropy((first @ second.T).float() * 20, same))

    return step


@trap
def numbers_read_on_the_cpu(s, good):
    """Lengths and schedules are CPU tensors and are read there. Not: item() waits for the GPU, keep the value on the GPU."""
    width = s.pick(2048, 128)
    model = tower(width, width, 6, width).to(s.device, half(s.device))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    x = torch.randn(s.pick(8192, 64), width, device=s.device, dtype=half(s.device))
    lengths, rates = torch.randint(len(x) // 2, len(x), (16,)), torch.linspace(1e-4, 1e-5, 1000)
    at = [0]

    def step():
        at[0] = (at[0] + 1) % 1000
        for group in optimizer.param_groups:
            group["lr"] = rates[at[0]].item()
        longest = max(length.item() for length in lengths)
        return update(optimizer, model(x[:longest]).float().square().mean())

    return step


@recorded(marks=True, shapes=False)
@trap
def four_large_micro_batches(s, good):
    """Gradients are accumulated over micro batches that fill the GPU. Not: launches, a CUDA graph, a larger batch."""
    width = s.pick(4096, 128)
    model = tower(width, width, 4, width).to(s.device, half(s.device))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    x = torch.randn(4, s.pick(8192, 64), width, device=s.device, dtype=half(s.device))

    def step():
        optimizer.zero_grad()
        for part in x:
            loss = model(part).float().square().mean() / 4
            loss.backward()
        optimizer.step()
        return loss.detach()

    return step
