"""Casts, layouts and copies."""

import torch
import torch.nn.functional as F
from common import mlp, pair, sgd, train
from torch import nn


@pair
def weights_cast_each_call(s, good):
    """Float32 weights are cast to bf16 at each use, in each of 8 micro batches."""
    width = s.pick(2048, 128)
    layers = nn.ModuleList([nn.Linear(width, width) for _ in range(4)]).to(s.device)
    if good:
        layers = layers.to(torch.bfloat16)
    parts = torch.randn(8, s.pick(64, 16), width, device=s.device, dtype=torch.bfloat16)

    @torch.inference_mode()
    def step():
        for x in parts:
            for layer in layers:
                weight, bias = layer.weight.to(torch.bfloat16), layer.bias.to(torch.bfloat16)
                x = F.linear(x, weight, bias)
        return x.float().mean()

    return step


@pair
def autocast_without_cache(s, good):
    """autocast with its cache off casts a shared weight in each of 12 rounds."""
    width = s.pick(4096, 256)
    cell = nn.Linear(width, width).to(s.device)
    x = torch.randn(s.pick(128, 16), width, device=s.device)

    def loss_of():
        h = x
        with torch.autocast(s.device, torch.bfloat16, cache_enabled=good):
            for _ in range(12):
                h = torch.tanh(cell(h))
        return h.float().square().mean()

    return train(sgd(cell.parameters()), loss_of)


@pair
def norm_upcast(s, good):
    """LayerNorm of a bf16 model works on a float32 copy of its input, and its result is cast back."""
    width, rows = s.pick(2048, 128), s.pick(16384, 128)
    norms = nn.ModuleList([nn.LayerNorm(width) for _ in range(8)]).to(s.device)
    if good:
        norms = norms.to(torch.bfloat16)
    linear = nn.Linear(width, width).to(s.device, torch.bfloat16)
    x = torch.randn(rows, width, device=s.device, dtype=torch.bfloat16)

    @torch.inference_mode()
    def step():
        h = linear(x)
        for norm in norms:
            h = h + (norm(h) if good else norm(h.float()).bfloat16())
        return h.float().mean()

    return step


@pair
def contiguous_everywhere(s, good):
    """Each layer turns the layout around with contiguous(), and turns it back."""
    channels, side = s.pick(256, 32), s.pick(56, 16)
    mixes = nn.ModuleList([nn.Linear(channels, channels) for _ in range(6)]).to(s.device)
    x = torch.randn(s.pick(64, 2), channels, side, side, device=s.device)

    @torch.inference_mode()
    def step():
        h = x
        if good:
            h = h.permute(0, 2, 3, 1).contiguous()
            for mix in mixes:
                h = F.relu(mix(h))
            return h.mean()
        for mix in mixes:
            h = F.relu(mix(h.permute(0, 2, 3, 1).contiguous())).permute(0, 3, 1, 2).contiguous()
        return h.mean()

    return step


@pair
def sum_down_the_columns(s, good):
    """A table is stored with the wrong axis last: each softmax walks through memory in large strides."""
    rows, columns = s.pick(32768, 1024), s.pick(1024, 256)
    table = torch.randn(rows, columns, device=s.device) if good else torch.randn(columns, rows, device=s.device).t()

    @torch.inference_mode()
    def step():
        return torch.softmax(table, dim=1).cumsum(dim=1)[:, -1].mean()

    return step


@pair
def numpy_in_between(s, good):
    """Activations leave as NumPy arrays, are scaled there, and come back."""
    width = s.pick(1024, 128)
    layers = nn.ModuleList([nn.Linear(width, width) for _ in range(6)]).to(s.device)
    x = torch.randn(s.pick(4096, 128), width, device=s.device)

    @torch.inference_mode()
    def step():
        h = x
        for layer in layers:
            h = layer(h)
            h = h / h.std() if good else torch.from_numpy(h.cpu().numpy() / h.cpu().numpy().std()).to(s.device)
        return h.mean()

    return step


@pair
def assignment_row_by_row(s, good):
    """A padded batch is filled row by row: 64 times a slice and a copy."""
    rows, width = 64, s.pick(2048, 128)
    sources = [torch.randn(width, device=s.device) for _ in range(rows)]
    model = mlp(s, width, 2)

    @torch.inference_mode()
    def step():
        if good:
            batch = torch.stack(sources)
        else:
            batch = torch.zeros(rows, width, device=s.device)
            for row, source in enumerate(sources):
                batch[row, :] = source
        return model(batch).mean()

    return step


@pair
def padding_to_the_longest(s, good):
    """Images of all sizes are resized one by one before they make a batch."""
    side = s.pick(224, 32)
    sizes = [side + 8 * (number % 7) for number in range(24)]
    images = [torch.rand(1, 3, size, size, device=s.device) for size in sizes]
    ready = torch.rand(24, 3, side + 24, side + 24, device=s.device)
    conv = nn.Conv2d(3, 16, 3).to(s.device)

    @torch.inference_mode()
    def step():
        if good:
            batch = F.interpolate(ready, size=(side, side), mode="bilinear", align_corners=False)
        else:
            batch = torch.cat([F.interpolate(image, size=(side, side), mode="bilinear", align_corners=False)
                               for image in images])
        return conv(batch).mean()

    return step
