"""Graphs, physics, statistics, pruning."""

import torch
import torch.nn.functional as F
from common import pair, recorded, tower, update
from torch import nn


@pair
def adjacency_as_dense_matrix(s, good):
    """A graph network in training. Each node takes the mean of its eight neighbours by a product with the adjacency."""
    nodes, width, classes = s.pick(12_288, 64), s.pick(128, 16), 16
    rows = torch.arange(nodes).repeat_interleave(8)
    columns = torch.randint(0, nodes, (nodes * 8,))
    edges, share = torch.stack([rows, columns]), torch.full((nodes * 8,), 0.125)
    sparse = torch.sparse_coo_tensor(edges, share, (nodes, nodes)).coalesce().to(s.device)
    adjacency = sparse.to_sparse_csr() if good else sparse.to_dense()
    back = sparse.t().coalesce().to_sparse_csr() if good else None

    class Mean(torch.autograd.Function):
        """The product, and the one with the transpose for the gradient."""

        @staticmethod
        def forward(ctx, x):
            return adjacency @ x

        @staticmethod
        def backward(ctx, gradient):
            return back @ gradient

    layers = nn.ModuleList([nn.Linear(width, width) for _ in range(3)] + [nn.Linear(width, classes)]).to(s.device)
    optimizer = torch.optim.Adam(layers.parameters(), lr=1e-3)
    x, labels = torch.randn(nodes, width, device=s.device), torch.randint(0, classes, (nodes,), device=s.device)

    def step():
        h = x
        for layer in layers[:-1]:
            h = torch.relu(Mean.apply(layer(h)) if good else adjacency @ layer(h))
        return update(optimizer, F.cross_entropy(layers[-1](h), labels))

    return step


@recorded(stacks=True)
@pair
def kronecker_formed(s, good):
    """A Gaussian process on a grid: its covariance is the Kronecker product of one for each axis. Conjugate gradients, ten rounds."""
    down, across = s.pick(128, 8), s.pick(96, 6)

    def covariance(size):
        apart = torch.arange(size, device=s.device, dtype=torch.float32)
        return torch.exp(-0.5 * (apart[:, None] - apart[None, :]).square() / 4) + 0.1 * torch.eye(size, device=s.device)

    left, right = covariance(down), covariance(across)
    values = torch.randn(down * across, 4, device=s.device)

    def product(x):
        if not good:
            return torch.kron(left, right) @ x
        grid = x.t().reshape(-1, down, across)
        return (left @ grid @ right.t()).reshape(-1, down * across).t()

    @torch.inference_mode()
    def step():
        x, rest = torch.zeros_like(values), values
        way, size = rest, rest.square().sum(dim=0)
        for _ in range(10):
            turned = product(way) + 0.5 * way
            reach = size / (way * turned).sum(dim=0)
            x, rest = x + reach * way, rest - reach * turned
            new = rest.square().sum(dim=0)
            way, size = rest + new / size * way, new
        return x.square().mean(dim=0)

    return step


@recorded(stacks=True)
@pair
def least_squares_by_pinv(s, good):
    """Few-shot learning: a linear head is fitted to each task's features in closed form, and the encoder learns through it."""
    tasks, shots, width, ways = s.pick(16, 2), s.pick(256, 24), s.pick(64, 8), 5
    encoder = nn.Sequential(tower(s.pick(256, 16), s.pick(512, 16), 3, width), nn.LayerNorm(width)).to(s.device)
    optimizer = torch.optim.Adam(encoder.parameters(), lr=1e-5)
    x = torch.randn(tasks, 2 * shots, s.pick(256, 16), device=s.device)
    targets = F.one_hot(torch.randint(0, ways, (tasks, 2 * shots), device=s.device), ways).float()
    little = 0.1 * torch.eye(width, device=s.device)

    def fit(features, wanted):
        if good:
            turned = features.transpose(1, 2)
            return torch.linalg.solve(turned @ features + little @ little, turned @ wanted)
        features = torch.cat([features, little.expand(tasks, -1, -1)], dim=1)
        return torch.linalg.pinv(features) @ F.pad(wanted, (0, 0, 0, width))

    def step():
        features = encoder(x)
        head = fit(features[:, :shots], targets[:, :shots])
        return update(optimizer, (features[:, shots:] @ head - targets[:, shots:]).square().mean())

    return step


@recorded(stacks=True)
@pair
def pruned_by_sorting(s, good):
    """Training with a mask: in each step about the smaller half of each layer's weights is set to zero."""
    width, rows = s.pick(2048, 64), s.pick(512, 8)
    model = tower(width, width, 3, width).to(s.device)
    layers = [part for part in model if isinstance(part, nn.Linear)]
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    x = torch.randn(rows, width, device=s.device)

    def step():
        with torch.no_grad():
            for layer in layers:
                size = layer.weight.abs().flatten()
                size = size[::64] if good else size
                least = size.sort().values[len(size) // 2]
                layer.weight.mul_(layer.weight.abs() > least)
        return update(optimizer, model(x).square().mean())

    return step
