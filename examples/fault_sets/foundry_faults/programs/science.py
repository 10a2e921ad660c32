"""Science: traces, particles, graphs, and products with one weight."""

import torch
import torch.nn.functional as F
from common import half, pair, recorded, tower
from torch import nn
from torch.profiler import record_function


@recorded(stacks=True)
@pair
def trace_of_a_whole_product(s, good):
    """How alike are two sets of features? The trace of a product of two Gram matrices says it."""
    rows, width = s.pick(4096, 16), s.pick(1024, 8)
    model = tower(width, width, 2, width).to(s.device, half(s.device)).eval()
    x = torch.randn(rows, width, device=s.device, dtype=half(s.device))

    def centred(features):
        features = features.float()
        features = features - features.mean(dim=0)
        return features @ features.t() / features.shape[1]

    @torch.inference_mode()
    def step():
        with record_function("features"):
            left, right = x.float(), model(x)
        with record_function("grams"):
            one, two = centred(left), centred(right)
        with record_function("alignment"):
            if good:
                return (one * two.t()).sum() / (one.norm() * two.norm())
            return torch.trace(one @ two) / (one.norm() * two.norm())

    return step


class Rows:
    """A particle is a row of 16 numbers: place, speed, force, mass, charge, age and more."""

    def __init__(self, count, device):
        self.table = torch.rand(count, 16, device=device)

    def field(self, number):
        return self.table[:, number]


class Columns(Rows):
    def __init__(self, count, device):
        super().__init__(count, device)
        self.table = self.table.t().contiguous()

    def field(self, number):
        return self.table[number]


@recorded(stacks=True)
@pair
def particles_stored_as_rows(s, good):
    """Eight million particles move and bounce from walls; then the energy is summed."""
    particles = (Columns if good else Rows)(s.pick(8_000_000, 100), s.device)
    time_step = 1e-3

    @torch.no_grad()
    def step():
        energy = torch.zeros((), device=s.device)
        mass = particles.field(9)
        for axis in range(3):
            place, speed, force = particles.field(axis), particles.field(3 + axis), particles.field(6 + axis)
            with record_function("kick"):
                speed.addcdiv_(force, mass + 1.0, value=time_step)
            with record_function("drift"):
                place.add_(speed, alpha=time_step)
                speed.mul_(torch.where((place < 0) | (place > 1), -1.0, 1.0))
            with record_function("energy"):
                energy += torch.dot(speed * speed, mass) / 2
        return energy

    return step


class Convolution(nn.Module):
    """Nodes hear their neighbours, and what goes back follows the edges the other way."""

    def __init__(self, width, forward, backward, keep):
        super().__init__()
        self.along, self.back = nn.Linear(width, width), nn.Linear(width, width)
        self.adjacency, self.reverse, self.keep = forward, backward, keep

    def forward(self, x):
        reverse = self.reverse if self.keep else self.adjacency.t().to_sparse_csr()
        return torch.relu(torch.sparse.mm(self.adjacency, self.along(x)) + torch.sparse.mm(reverse, self.back(x)))


@recorded(stacks=True)
@pair
def adjacency_transposed_anew(s, good):
    """A graph with directed edges that never change. Each of three layers sends along the edges and against them."""
    nodes, edges, width = s.pick(200_000, 50), s.pick(4_000_000, 200), s.pick(64, 8)
    places = torch.randint(0, nodes, (2, edges), device=s.device)
    values = torch.full((edges,), 0.05, device=s.device)
    with torch.no_grad():
        adjacency = torch.sparse_coo_tensor(places, values, (nodes, nodes)).coalesce().to_sparse_csr()
        reverse = adjacency.t().to_sparse_csr()
    layers = nn.Sequential(*(Convolution(width, adjacency, reverse, good) for _ in range(3))).to(s.device).eval()
    x = torch.randn(nodes, width, device=s.device)

    @torch.no_grad()
    def step():
        with record_function("graph"):
            return layers(x).mean()

    return step


class Mixer(nn.Module):
    """Each row is multiplied by the weight of its group; as it happens there is one group."""

    def __init__(self, width, good):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width, width) / width ** 0.5)
        self.good = good

    def forward(self, x):
        if self.good:
            return x @ self.weight
        weights = self.weight.expand(x.shape[0], -1, -1)
        return torch.bmm(x.unsqueeze(1), weights).squeeze(1)


@recorded(stacks=True)
@pair
def one_weight_multiplied_row_by_row(s, good):
    """A network whose layers multiply rows by a weight, which all rows share."""
    rows, width = s.pick(2048, 8), s.pick(512, 16)
    layers = nn.Sequential(*(layer for _ in range(6) for layer in (Mixer(width, good), nn.LayerNorm(width), nn.GELU())))
    layers.to(s.device, half(s.device)).eval()
    x = torch.randn(rows, width, device=s.device, dtype=half(s.device))

    @torch.inference_mode()
    def step():
        with record_function("mix"):
            return F.normalize(layers(x).float(), dim=1).mean()

    return step
