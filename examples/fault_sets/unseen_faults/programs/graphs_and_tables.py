"""Graph networks and recommenders."""

import torch
import torch.nn.functional as F
from common import pair, recorded, update
from torch import nn


@pair
def adjacency_coalesced_each_layer(s, good):
    """Node embeddings at evaluation: each layer makes the same sparse matrix from the edges and sorts it."""
    nodes, width = s.pick(65536, 512), s.pick(64, 16)
    edges = torch.randint(0, nodes, (2, nodes * 16), device=s.device)
    weights = torch.full((nodes * 16,), 1 / 16, device=s.device)
    maps = nn.ModuleList([nn.Linear(width, width) for _ in range(6)]).to(s.device)
    x = torch.randn(nodes, width, device=s.device)

    def adjacency():
        return torch.sparse_coo_tensor(edges, weights, (nodes, nodes), check_invariants=False).coalesce()

    once = adjacency()

    @torch.no_grad()
    def step():
        h = x
        for layer in maps:
            h = F.relu(layer(torch.sparse.mm(once if good else adjacency(), h)))
        return h.mean()

    return step


@recorded(stacks=True)
@pair
def ragged_repeat_waits(s, good):
    """Each layer hands the state of a graph to all its nodes. How many nodes a graph has is known; the operator is not told the sum."""
    graphs, width = s.pick(256, 16), s.pick(256, 32)
    counts = torch.randint(20, 60, (graphs,))
    total, counts = int(counts.sum()), counts.to(s.device)
    of_node = torch.repeat_interleave(torch.arange(graphs, device=s.device), counts)
    maps = nn.ModuleList([nn.Linear(width, width) for _ in range(8)]).to(s.device)
    optimizer = torch.optim.AdamW(maps.parameters(), lr=1e-3)
    x = torch.randn(total, width, device=s.device)

    def step():
        h = x
        for layer in maps:
            mean = torch.zeros(graphs, width, device=s.device).index_add(0, of_node, h) / counts[:, None]
            spread = mean.repeat_interleave(counts, dim=0, output_size=total) if good else mean.repeat_interleave(counts, dim=0)
            h = F.relu(layer(h + spread))
        return update(optimizer, h.square().mean())

    return step


@pair
def sparse_gradients(s, good):
    """The table is small and each batch meets most of its rows; its gradient is sparse all the same."""
    rows, width, batch = s.pick(4096, 256), s.pick(128, 16), s.pick(8192, 128)
    table, top = nn.Embedding(rows, width, sparse=not good).to(s.device), nn.Linear(width, 1).to(s.device)
    dense = torch.optim.Adam(top.parameters(), lr=1e-3)
    tables = torch.optim.Adam(table.parameters(), lr=1e-3) if good else torch.optim.SparseAdam(list(table.parameters()), lr=1e-3)
    seen = torch.randint(0, rows, (batch, 8), device=s.device)
    clicked = torch.randint(0, 2, (batch, 1), device=s.device).float()

    def step():
        tables.zero_grad()
        loss = update(dense, F.binary_cross_entropy_with_logits(top(table(seen).sum(dim=1)), clicked))
        tables.step()
        return loss

    return step
