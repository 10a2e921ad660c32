"""Operators where others do the same for less."""

import torch
import torch.nn.functional as F
from common import half, pair, recorded, tower, update
from torch import nn


class Product(nn.Bilinear):
    """nn.Bilinear as one product with the weight and one of batches."""

    def forward(self, a, b):
        mixed = torch.mm(a, self.weight.permute(1, 0, 2).flatten(1)).view(len(a), *self.weight.shape[::2])
        return torch.bmm(mixed, b[:, :, None])[:, :, 0] + self.bias


@recorded(active=5)
@pair
def bilinear_layer(s, good):
    """Pairs of embeddings are scored by nn.Bilinear."""
    width, rows = s.pick(128, 32), s.pick(4096, 64)
    left, right = (nn.Linear(width, width).to(s.device) for _ in range(2))
    mix = (Product if good else nn.Bilinear)(width, width, width).to(s.device)
    optimizer = torch.optim.AdamW([*left.parameters(), *right.parameters(), *mix.parameters()], lr=1e-4)
    a, b = (torch.randn(rows, width, device=s.device) for _ in range(2))

    def step():
        return update(optimizer, mix(left(a).relu(), right(b).relu()).square().mean())

    return step


@recorded(stacks=True)
@pair
def diagonal_as_matrix(s, good):
    """Weights whose rows have learned scales."""
    width = s.pick(4096, 128)
    weights = nn.ParameterList(torch.randn(width, width) * 0.01 for _ in range(4)).to(s.device, half(s.device))
    scales = nn.ParameterList(torch.ones(width) for _ in range(4)).to(s.device, half(s.device))
    optimizer = torch.optim.SGD([*weights, *scales], lr=1e-3)
    x = torch.randn(s.pick(2048, 64), width, device=s.device, dtype=half(s.device))

    def scaled(weight, scale):
        return scale[:, None] * weight if good else torch.diag(scale) @ weight

    def step():
        h = x
        for weight, scale in zip(weights, scales):
            h = (h @ scaled(weight, scale)).relu()
        return update(optimizer, h.float().square().mean())

    return step


@pair
def chain_from_the_left(s, good):
    """Two large linear maps of a thin batch, as the formula has them: A B x."""
    size, columns = s.pick(8192, 256), 16
    a, b = (torch.randn(size, size, device=s.device, dtype=half(s.device)) / size ** 0.5 for _ in range(2))
    x = torch.randn(size, columns, device=s.device, dtype=half(s.device))

    def step():
        return (a @ (b @ x) if good else a @ b @ x).tanh()

    return step


def echo_by_fft(sound, response):
    length = sound.shape[-1] + len(response) - 1
    spectrum = torch.fft.rfft(sound, length) * torch.fft.rfft(response, length)
    return torch.fft.irfft(spectrum, length)[..., :sound.shape[-1]]


@pair
def long_filter_direct(s, good):
    """Reverberation: sound is convolved with the response of a room."""
    rows, length, taps = s.pick(8, 4), s.pick(65536, 2048), s.pick(4096, 256)
    sound = torch.randn(rows, 1, length, device=s.device)
    response = torch.randn(taps, device=s.device) * torch.linspace(0, -6, taps, device=s.device).exp()

    def step():
        if good:
            wet = echo_by_fft(sound, response)
        else:
            wet = F.conv1d(F.pad(sound, (taps - 1, 0)), response.flip(0)[None, None])
        return (0.7 * sound + 0.3 * wet).clamp(-1, 1)

    return step


class Groups(nn.Module):
    """A convolution of groups of channels, one at a time."""

    def __init__(self, channels, groups):
        super().__init__()
        self.parts = nn.ModuleList(nn.Conv2d(channels // groups, channels // groups, 3, padding=1) for _ in range(groups))

    def forward(self, x):
        return torch.cat([conv(part) for conv, part in zip(self.parts, x.chunk(len(self.parts), dim=1))], dim=1)


@recorded(active=4)
@pair
def groups_convolved_one_by_one(s, good):
    """ResNeXt's cardinality: 32 paths."""
    channels, size = s.pick(512, 64), s.pick(28, 8)
    layers = [nn.Conv2d(channels, channels, 3, padding=1, groups=32) if good else Groups(channels, 32) for _ in range(2)]
    model = nn.Sequential(*[part for layer in layers for part in (layer, nn.ReLU())]).to(s.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    x = torch.randn(s.pick(32, 2), channels, size, size, device=s.device)

    def step():
        return update(optimizer, model(x).square().mean())

    return step


@recorded(active=5)
@pair
def windows_stacked_in_python(s, good):
    """Overlapping windows of sound become frames of a spectrum."""
    rows, length, size, hop = s.pick(8, 2), s.pick(65536, 2048), s.pick(1024, 128), s.pick(128, 16)
    sound, shape = torch.randn(rows, length, device=s.device), torch.hann_window(size, device=s.device)
    model = tower(size // 2 + 1, s.pick(256, 32), 2, 10).to(s.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)

    def frames():
        if good:
            return sound.unfold(1, size, hop)
        return torch.stack([sound[:, at:at + size] for at in range(0, length - size + 1, hop)], dim=1)

    def step():
        spectrum = torch.fft.rfft(frames() * shape).abs()
        return update(optimizer, model(spectrum).square().mean())

    return step
