"""Graphs, chains of states, and regression by kernels."""

import torch
from common import half, pair, recorded, tower
from torch import nn
from torch.profiler import record_function


class MessagePassing(nn.Module):
    """Each node gets the sum of what its neighbours send."""

    def __init__(self, size, repeats):
        super().__init__()
        self.send, self.repeats = nn.Linear(size, size), repeats

    def forward(self, h, source, target):
        sent, whole = self.send(h), torch.zeros_like(h)
        if self.repeats:
            message = sent.gather(0, source.view(-1, 1).repeat(1, h.shape[1]))
            whole.scatter_add_(0, target.view(-1, 1).repeat(1, h.shape[1]), message)
        else:
            whole.index_add_(0, target, sent.index_select(0, source))
        return torch.relu(whole * 0.1 + h)


@recorded(stacks=True)
@pair
def index_repeated_for_each_feature(s, good):
    """Two rounds of messages in a road network of 1.5 million edges."""
    nodes, edges, size = s.pick(200_000, 20), s.pick(1_500_000, 60), 64
    source, target = torch.randint(0, nodes, (2, edges), device=s.device)
    h = torch.randn(nodes, size, device=s.device)
    layers = nn.ModuleList(MessagePassing(size, not good) for _ in range(2)).to(s.device).eval()

    @torch.inference_mode()
    def step():
        x = h
        for layer in layers:
            with record_function("propagate"):
                x = layer(x, source, target)
        return x.mean(dim=0)

    return step


@recorded(stacks=True)
@pair
def power_by_repeated_products(s, good):
    """Where is a walker after 64 moves? A chain of states, whose moves are drawn anew for each world."""
    states, moves = s.pick(1024, 12), 64
    worlds = [torch.randn(states, states, device=s.device) for _ in range(2)]

    def after(chances):
        if good:
            return torch.linalg.matrix_power(chances, moves)
        power = chances
        for _ in range(moves - 1):
            power = power @ chances
        return power

    @torch.inference_mode()
    def step():
        total = 0.0
        for world in worlds:
            total = total + after(torch.softmax(3 * world, dim=1)).amax(dim=0)
        return total * states

    return step


@recorded(stacks=True)
@pair
def matrix_factored_for_each_right_side(s, good):
    """Regression by a Gaussian process. The places measured stay; the measurements are new in each step."""
    count, asked, fields = s.pick(3072, 20), s.pick(8192, 10), 16
    places, queries = torch.rand(count, 3, device=s.device), torch.rand(asked, 3, device=s.device)
    kernel = torch.exp(-8 * torch.cdist(places, places).square()) + 0.1 * torch.eye(count, device=s.device)
    across = torch.exp(-8 * torch.cdist(queries, places).square())
    factor = torch.linalg.cholesky(kernel) if good else None
    measured, reader = torch.randn(count, fields, device=s.device), tower(fields, s.pick(1024, 8), 2, 4)
    reader.to(s.device, half(s.device)).eval()

    @torch.inference_mode()
    def step():
        measured.add_(0.01)
        with record_function("posterior"):
            if good:
                weights = torch.cholesky_solve(measured, factor)
            else:
                weights = torch.linalg.solve(kernel, measured)
            mean = across @ weights
        return reader(mean.to(half(s.device))).float().mean(dim=0)

    return step
