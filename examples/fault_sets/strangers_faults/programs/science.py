"""Physics, graphs, sound."""

import torch
import torch.nn.functional as F
from common import pair, recorded, tower, update
from torch import nn


@recorded(stacks=True)
@pair
def derivatives_one_at_a_time(s, good):
    """A network that obeys the heat equation in a plane. Each derivative is asked of autograd by itself."""
    network = tower(3, s.pick(256, 32), 3, 1, nn.Tanh).to(s.device)
    points = torch.rand(s.pick(32_768, 64), 3, device=s.device).requires_grad_()
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-4)

    def derivative(u, axis):
        return torch.autograd.grad(u.sum(), points, create_graph=True)[0][:, axis]

    def step():
        u = network(points)
        if good:
            slopes = torch.autograd.grad(u.sum(), points, create_graph=True)[0].unbind(1)
            u_t, u_xx, u_yy = slopes[2], derivative(slopes[0], 0), derivative(slopes[1], 1)
        else:
            u_t, u_xx, u_yy = derivative(u, 2), derivative(derivative(u, 0), 0), derivative(derivative(u, 1), 1)
        return update(optimizer, (u_t - 0.1 * (u_xx + u_yy)).square().mean())

    return step


@recorded(stacks=True)
@pair
def laplacian_by_rolls(s, good):
    """Gray-Scott: two substances react and spread. The eight neighbours of each cell come by torch.roll."""
    side = s.pick(4096, 64)
    field = torch.rand(2, side, side, device=s.device)
    rates = torch.tensor([1.0, 0.5], device=s.device).view(2, 1, 1)

    def by_rolls(x):
        straight = torch.roll(x, 1, 1) + torch.roll(x, -1, 1) + torch.roll(x, 1, 2) + torch.roll(x, -1, 2)
        slanted = sum(torch.roll(x, (down, right), (1, 2)) for down in (-1, 1) for right in (-1, 1))
        return 0.2 * straight + 0.05 * slanted - x

    def by_slices(x):
        p = F.pad(x[None], (1, 1, 1, 1), mode="circular")[0]
        straight = p[:, :-2, 1:-1] + p[:, 2:, 1:-1] + p[:, 1:-1, :-2] + p[:, 1:-1, 2:]
        slanted = p[:, :-2, :-2] + p[:, :-2, 2:] + p[:, 2:, :-2] + p[:, 2:, 2:]
        return 0.2 * straight + 0.05 * slanted - x

    @torch.inference_mode()
    def step():
        for _ in range(2):
            spread = (by_slices if good else by_rolls)(field).mul_(rates)
            reaction = field[0] * field[1].square()
            field.add_(spread)
            field[0].add_(0.055 * (1 - field[0]) - reaction)
            field[1].add_(reaction - 0.117 * field[1])
        return field[:, 0, 0].clone()

    return step


class Attention(nn.Module):
    """A layer of a graph network: each edge is weighed by scores of both its ends."""

    def __init__(self, width, heads, take):
        super().__init__()
        self.heads, self.take = heads, take
        self.values, self.scores = nn.Linear(width, width), nn.Linear(width, 2 * heads)

    def forward(self, x, sources, targets):
        from_source, from_target = self.scores(x).chunk(2, dim=1)
        weight = torch.sigmoid(self.take(from_source, sources) + self.take(from_target, targets))
        values = self.take(self.values(x), sources).view(len(sources), self.heads, -1)
        message = (values * weight.unsqueeze(2)).flatten(1)
        return F.relu(torch.zeros_like(x).index_add_(0, targets, message))


@recorded(stacks=True)
@pair
def rows_taken_by_brackets(s, good):
    """A graph network in training: scores and values of the edges' ends are taken by x[index]."""
    nodes, edges, width = s.pick(65_536, 64), s.pick(1_000_000, 256), s.pick(32, 16)

    def take(x, index):
        return x.index_select(0, index) if good else x[index]

    layers = nn.ModuleList([Attention(width, 4, take) for _ in range(2)]).to(s.device)
    sources, targets = torch.randint(0, nodes, (2, edges), device=s.device)
    x, labels = torch.randn(nodes, width, device=s.device), torch.randint(0, width, (nodes,), device=s.device)
    optimizer = torch.optim.Adam(layers.parameters(), lr=1e-3)

    def step():
        h = x
        for layer in layers:
            h = layer(h, sources, targets)
        return update(optimizer, F.cross_entropy(h, labels))

    return step


@pair
def complex_transform_of_sound(s, good):
    """Spectrograms made by hand: torch.fft.fft of the frames, of which the first half is used."""
    size, hop, bins, bands = 1024, 160, 513, 80
    sound = torch.randn(s.pick(64, 2), s.pick(160_000, 8_000), device=s.device)
    window, filters = torch.hann_window(size, device=s.device), torch.rand(bins, bands, device=s.device)
    encoder = nn.Sequential(nn.Conv1d(bands, 128, 3, stride=2, padding=1), nn.GELU(), nn.Conv1d(128, 64, 3, stride=2, padding=1))
    encoder.to(s.device)

    @torch.inference_mode()
    def step():
        frames = sound.unfold(1, size, hop) * window
        spectrum = torch.fft.rfft(frames) if good else torch.fft.fft(frames)[..., :bins]
        energy = (spectrum.abs() @ filters).clamp_(min=1e-5).log_()
        return encoder(energy.transpose(1, 2)).mean()

    return step
