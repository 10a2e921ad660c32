"""Graph networks and recommenders: lookups, gathers, samples."""

import numpy as np
import torch
import torch.nn.functional as F
from common import pair, recorded, tower, update
from torch import nn


class Convolution(nn.Module):
    """Messages along edges: a linear map, a nonlinearity, a sum at each target."""

    def __init__(self, width: int, nodes_first: bool = True) -> None:
        super().__init__()
        self.map, self.nodes_first = nn.Linear(width, width), nodes_first

    def forward(self, x, sources, targets):
        messages = F.relu(self.map(x))[sources] if self.nodes_first else F.relu(self.map(x[sources]))
        return x + torch.zeros_like(x).index_add(0, targets, messages)


def graph(s, nodes, per_node):
    sources = torch.randint(0, nodes, (nodes * per_node,), device=s.device)
    return sources, torch.randint(0, nodes, (nodes * per_node,), device=s.device)


@recorded(memory=True)
@pair
def linear_after_gather(s, good):
    """The message of each edge goes through the linear layer, though it depends on the edge's source node alone."""
    nodes, width = s.pick(32768, 512), s.pick(128, 32)
    layers = nn.ModuleList([Convolution(width, nodes_first=good) for _ in range(2)]).to(s.device)
    sources, targets = graph(s, nodes, 16)
    x, classes = torch.randn(nodes, width, device=s.device), torch.randint(0, width, (nodes,), device=s.device)
    optimizer = torch.optim.Adam(layers.parameters(), lr=1e-3)

    def step():
        h = x
        for layer in layers:
            h = layer(h, sources, targets)
        return update(optimizer, F.cross_entropy(h, classes))

    return step


@pair
def deterministic_left_on(s, good):
    """use_deterministic_algorithms was switched on to reproduce a run, and sums at nodes sort their edges since."""
    nodes, width = s.pick(32768, 512), s.pick(64, 32)
    layers = nn.ModuleList([Convolution(width) for _ in range(3)]).to(s.device)
    sources, targets = graph(s, nodes, 16)
    x, wanted = torch.randn(nodes, width, device=s.device), torch.randn(nodes, width, device=s.device)
    optimizer = torch.optim.Adam(layers.parameters(), lr=1e-3)

    def step():
        torch.use_deterministic_algorithms(not good, warn_only=True)
        h = x
        for layer in layers:
            h = layer(h, sources, targets)
        loss = update(optimizer, F.mse_loss(h, wanted))
        torch.use_deterministic_algorithms(False)
        return loss

    return step


class Ranker(nn.Module):
    """26 categorical features, each with its table, and a tower over all of them. Served, not trained."""

    def __init__(self, features: int, rows: int, width: int, one_table: bool) -> None:
        super().__init__()
        self.tables = nn.ModuleList() if one_table else nn.ModuleList([nn.Embedding(rows, width) for _ in range(features)])
        self.table = nn.Embedding(rows * features, width) if one_table else None
        self.register_buffer("begins", torch.arange(features) * rows)
        self.top = tower(features * width, 256, 2, 1)

    def forward(self, ids):
        if self.table is not None:
            found = self.table(ids + self.begins).flatten(1)
        else:
            found = torch.cat([table(ids[:, number]) for number, table in enumerate(self.tables)], dim=1)
        return torch.sigmoid(self.top(found))


@recorded(shapes=False)
@pair
def tables_one_by_one(s, good):
    """26 embedding tables of equal width are read one after the other."""
    rows = s.pick(100_000, 2_000)
    model = Ranker(26, rows, 16, good).to(s.device)
    ids = torch.randint(0, rows, (s.pick(2048, 64), 26), device=s.device)

    @torch.inference_mode()
    def step():
        return model(ids).mean()

    return step


@recorded(stacks=True, marks=False)
@pair
def negatives_by_numpy(s, good):
    """Negative items are drawn by their popularity with numpy's choice, which adds up all probabilities at each call."""
    items, batch = s.pick(500_000, 60_000), s.pick(2048, 128)
    rng = np.random.default_rng(0)
    chance = rng.pareto(1.5, items)
    chance /= chance.sum()
    upto = np.cumsum(chance)
    vectors = torch.randn(items, 64, device=s.device)
    user, seen = tower(64, 256, 2, 64).to(s.device), torch.randn(batch, 64, device=s.device)
    liked = torch.randint(0, items, (batch,), device=s.device)
    optimizer = torch.optim.Adam(user.parameters(), lr=1e-3)

    def step():
        drawn = np.searchsorted(upto, rng.random(batch)) if good else rng.choice(items, batch, p=chance)
        negative = torch.from_numpy(drawn).clamp_(max=items - 1).to(s.device)
        taste = user(seen)
        gap = (taste * (vectors[liked] - vectors[negative])).sum(dim=1)
        return update(optimizer, -F.logsigmoid(gap).mean())

    return step


@pair
def embedding_with_max_norm(s, good):
    """The word vectors have a max_norm, so each lookup first sorts its words and scales their rows."""
    words, width = s.pick(20_000, 1_000), s.pick(256, 32)
    table = nn.Embedding(words, width, max_norm=None if good else 1.0).to(s.device)
    top = tower(width, width, 2, 10).to(s.device)
    text = torch.randint(0, words, (s.pick(512, 32), 64), device=s.device)
    label = torch.randint(0, 10, (len(text),), device=s.device)
    optimizer = torch.optim.SGD(top.parameters(), lr=1e-2)

    def step():
        with torch.no_grad():
            mean = table(text).mean(dim=1)
        return update(optimizer, F.cross_entropy(top(mean), label))

    return step


@recorded(memory=True, shapes=False)
@pair
def shuffle_the_whole_set(s, good):
    """Each step shuffles the numbers of all samples, to take the first few hundred."""
    samples, batch = s.pick(8_000_000, 100_000), 512
    features = torch.randn(samples, 8, device=s.device)
    model = tower(8, s.pick(512, 64), 3, 1).to(s.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

    def step():
        if good:
            picked = torch.randint(0, samples, (batch,), device=s.device)
        else:
            picked = torch.randperm(samples, device=s.device)[:batch]
        rows = features[picked]
        return update(optimizer, F.mse_loss(model(rows).squeeze(1), rows.sum(dim=1)))

    return step
