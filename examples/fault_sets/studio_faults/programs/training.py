"""Networks of graphs, tables, and parts; weights that are averaged or observed."""

import random

import numpy as np
import torch
import torch.nn.functional as F
from common import half, pair, recorded, tower, update
from torch import nn
from torch.profiler import record_function


class Sage(nn.Module):
    """A layer that reads a node and the mean of its neighbours."""

    def __init__(self, width):
        super().__init__()
        self.own, self.others = nn.Linear(width, width), nn.Linear(width, width, bias=False)

    def forward(self, x, source, target, nodes, each):
        sums = x.new_zeros(nodes, x.shape[1]).index_add_(0, target, x.index_select(0, source))
        return F.relu(self.own(x[:nodes]) + self.others(sums / each))


@recorded(stacks=True)
@pair
def hops_nobody_reads(s, good):
    """Three layers on a sampled graph. The nodes of a hop follow those before it; the loss is that of the first 2048."""
    fan, seeds, width = s.pick(8, 2), s.pick(2048, 4), s.pick(128, 8)
    ends = [seeds]  # nodes up to each hop
    for _ in range(3):
        ends.append(ends[-1] + (ends[-1] - (ends[-2] if len(ends) > 1 else 0)) * fan)
    ends[3] = ends[2] + (ends[3] - ends[2]) // 4  # of the last hop, many are the same
    target = torch.arange(ends[2], device=s.device).repeat_interleave(fan)
    source = seeds + torch.arange(len(target), device=s.device) % (ends[3] - seeds)
    x = torch.randn(ends[3], width, device=s.device)
    layers = nn.ModuleList([Sage(width) for _ in range(3)]).to(s.device)
    optimizer = torch.optim.SGD(layers.parameters(), lr=1e-5)

    def step():
        h = x
        for number, layer in enumerate(layers):
            hop = 2 - number if good else 2
            edges = ends[hop] * fan
            nodes = ends[hop] if good else ends[3]
            h = layer(h, source[:edges], target[:edges], nodes, fan)
        return update(optimizer, h[:seeds].square().mean())

    return step


@recorded(stacks=True)
@pair
def whole_table_for_few_rows(s, good):
    """A recommender: 8 million items have a vector each, of which a batch uses at most 16384. Plain SGD, without momentum."""
    items, size, rows = s.pick(8_000_000, 1000), s.pick(64, 8), s.pick(4096, 8)
    table = nn.Embedding(items, size, sparse=good, device=s.device)
    model = tower(4 * size, s.pick(512, 16), 2, 1).to(s.device)
    optimizer = torch.optim.SGD([*table.parameters(), *model.parameters()], lr=1e-3)
    index = torch.randint(0, items, (rows, 4), device=s.device)
    wanted = torch.rand(rows, 1, device=s.device)

    def step():
        return update(optimizer, F.binary_cross_entropy_with_logits(model(table(index).flatten(1)), wanted))

    return step


class WithSecondTask(torch.autograd.Function):
    """Two layers on one input, of which the second serves another task."""

    @staticmethod
    def forward(ctx, x, first, second, skip):
        ctx.save_for_backward(x, first, second)
        ctx.set_materialize_grads(not skip)
        return x @ first, x @ second

    @staticmethod
    def backward(ctx, of_first, of_second):
        x, first, second = ctx.saved_tensors
        of_x = of_first @ first.mT
        if of_second is None:
            return of_x, x.mT @ of_first, None, None
        return of_x + of_second @ second.mT, x.mT @ of_first, x.mT @ of_second, None


@recorded(stacks=True)
@pair
def zeros_for_an_unused_output(s, good):
    """Two tasks share a function with a backward pass of its own. In this phase only the first is trained; the other is watched."""
    width, rows = s.pick(4096, 16), s.pick(8192, 8)
    weights = [nn.Parameter(torch.randn(width, width, device=s.device, dtype=half(s.device)) / width ** 0.5) for _ in range(4)]
    optimizer = torch.optim.SGD(weights, lr=1e-5)
    x = torch.randn(rows, width, device=s.device, dtype=half(s.device))

    def step():
        h, watched = x, []
        for first, second in zip(weights[::2], weights[1::2]):
            h, other = WithSecondTask.apply(h, first, second, good)
            watched.append(other.detach().square().mean())
        return update(optimizer, h.float().square().mean()), torch.stack(watched)

    return step


@recorded(stacks=True)
@pair
def neighbours_sampled_in_python(s, good):
    """For each of 512 nodes eight neighbours are drawn, with replacement."""
    nodes, seeds, fan, width = s.pick(100_000, 50), s.pick(512, 4), 8, s.pick(512, 16)
    rng, dice = np.random.default_rng(0), random.Random(0)
    degree = rng.integers(4, 32, nodes)
    begin = np.concatenate([[0], degree.cumsum()])
    end_of = rng.integers(0, nodes, begin[-1])
    neighbours = {node: end_of[begin[node]:begin[node + 1]].tolist() for node in range(nodes)}
    features = torch.randn(nodes, width, device=s.device, dtype=half(s.device))
    model = tower(width, s.pick(2048, 16), 3, 10).to(s.device, half(s.device))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-5)
    sent, count = s.pinned(torch.empty(seeds, fan, dtype=torch.int64)), [0]

    def sample(chosen):
        if good:
            at = rng.random((seeds, fan)) * degree[chosen][:, None]
            return end_of[begin[chosen][:, None] + at.astype(np.int64)]
        return np.array([dice.choices(neighbours[node], k=fan) for node in chosen.tolist()])

    def step():
        count[0] += 1
        chosen = (np.arange(seeds) * 7919 + count[0]) % nodes
        with record_function("sample"):
            index = sample(chosen)
        sent.copy_(torch.from_numpy(index))
        chosen_features = features[sent.to(s.device, non_blocking=True)]
        return float(update(optimizer, model(chosen_features.mean(dim=1)).float().square().mean()))

    return step


@recorded(stacks=True)
@pair
def average_of_frozen_weights(s, good):
    """The last four of 28 layers learn. An average of the weights is kept for evaluation."""
    width = s.pick(4096, 16)
    with torch.device(s.device):
        layers = nn.Sequential(*[nn.Linear(width, width, bias=False) for _ in range(28)]).to(half(s.device))
    layers[:24].requires_grad_(False)
    optimizer = torch.optim.SGD(layers[24:].parameters(), lr=1e-5)
    averages = [weight.detach().clone() for weight in layers.parameters()]
    x = torch.randn(s.pick(256, 4), width, device=s.device, dtype=half(s.device))
    kept = [(average, weight) for average, weight in zip(averages, layers.parameters()) if weight.requires_grad or not good]

    def step():
        loss = update(optimizer, layers(x).float().square().mean())
        with torch.no_grad(), record_function("average"):
            torch._foreach_lerp_([average for average, _ in kept], [weight for _, weight in kept], 0.001)
        return loss

    return step


@recorded(stacks=True)
@pair
def ranges_observed_while_serving(s, good):
    """Before a model got few bits, hooks measured the range of each channel. The model is served since."""
    width, rows = s.pick(1024, 16), s.pick(65_536, 8)
    with torch.device(s.device):
        model = nn.Sequential(*[part for _ in range(6) for part in (nn.Linear(width, width), nn.GELU())]).to(half(s.device)).eval()
    x = torch.randn(rows, width, device=s.device, dtype=half(s.device))

    def observe(module, inputs):
        module.largest = torch.maximum(module.largest, inputs[0].abs().amax(dim=0))

    for layer in model[::2]:
        layer.largest = torch.zeros(width, device=s.device, dtype=half(s.device))
        handle = layer.register_forward_pre_hook(observe)
        if good:
            handle.remove()

    @torch.inference_mode()
    def step():
        return model(x).float().mean(dim=1)

    return step
