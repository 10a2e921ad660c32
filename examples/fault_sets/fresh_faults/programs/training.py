"""The training step around the model: norms, penalties, metrics, gradients of other processes."""

import os
import subprocess
import sys
import tempfile

import numpy as np
import torch
import torch.distributed as dist
import torch.nn.functional as F
from common import pair, recorded, tower, update
from torch import nn


class LoraLinear(nn.Module):
    """A frozen weight and a trained change of low rank."""

    def __init__(self, width: int, rank: int, merged: bool) -> None:
        super().__init__()
        self.base = nn.Linear(width, width).requires_grad_(False)
        self.a, self.b = nn.Parameter(torch.randn(rank, width) / width), nn.Parameter(torch.zeros(width, rank))
        self.merged = merged

    def forward(self, x):
        if self.merged:
            return F.linear(x, self.base.weight + 2.0 * (self.b @ self.a), self.base.bias)
        return self.base(x) + 2.0 * F.linear(F.linear(x, self.a), self.b)


@recorded(memory=True)
@pair
def lora_makes_the_whole_weight(s, good):
    """LoRA layers add the change to the whole weight at each call, so backward makes a gradient of the whole weight too."""
    width, kind = s.pick(4096, 128), torch.bfloat16 if s.device == "cuda" else torch.float32
    layers = nn.Sequential(*[part for _ in range(4) for part in (LoraLinear(width, 16, not good), nn.GELU())])
    layers.to(s.device, kind)
    x = torch.randn(s.pick(256, 16), width, device=s.device, dtype=kind)
    optimizer = torch.optim.AdamW([p for p in layers.parameters() if p.requires_grad], lr=1e-4)

    def step():
        return update(optimizer, layers(x).float().square().mean())

    return step


@recorded(marks=False)
@pair
def clipped_each_micro_step(s, good):
    """Gradients are gathered over 6 micro batches and clipped after each of them, not once before the optimizer."""
    model = tower(s.pick(512, 64), s.pick(512, 64), 24, 10).to(s.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    parts = torch.randn(6, s.pick(1024, 16), s.pick(512, 64), device=s.device)
    label = torch.zeros(parts.shape[1], dtype=torch.long, device=s.device)

    def step():
        optimizer.zero_grad()
        for x in parts:
            loss = F.cross_entropy(model(x), label) / len(parts)
            loss.backward()
            if not good:
                nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=False)
        if good:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.detach()

    return step


@recorded(shapes=False, stacks=True)
@pair
def weight_decay_in_the_loss(s, good):
    """The squares of all weights are added to the loss; the optimizer could shrink the weights by itself."""
    model = tower(s.pick(1024, 64), s.pick(1024, 64), 20, 10).to(s.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2, weight_decay=2e-4 if good else 0.0)
    x = torch.randn(256, s.pick(1024, 64), device=s.device)
    label = torch.zeros(256, dtype=torch.long, device=s.device)

    def step():
        loss = F.cross_entropy(model(x), label)
        if not good:
            loss = loss + 1e-4 * sum(p.pow(2).sum() for p in model.parameters())
        return update(optimizer, loss)

    return step


@pair
def norm_by_singular_values(s, good):
    """The largest singular value of each weight, for a Lipschitz penalty, is found by decomposing the whole weight."""
    width = s.pick(512, 64)
    model = tower(width, width, 3, 10).to(s.device)
    layers = [part for part in model if isinstance(part, nn.Linear)]
    kept = [F.normalize(torch.randn(layer.out_features, device=s.device), dim=0) for layer in layers]
    x, label = torch.randn(256, width, device=s.device), torch.zeros(256, dtype=torch.long, device=s.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

    def largest(number, weight):
        if not good:
            return torch.linalg.matrix_norm(weight, ord=2)
        with torch.no_grad():
            v = F.normalize(weight.t() @ kept[number], dim=0)
            kept[number] = F.normalize(weight @ v, dim=0)
        return kept[number] @ weight @ v

    def step():
        loss = F.cross_entropy(model(x), label)
        return update(optimizer, loss + 1e-3 * sum(largest(number, layer.weight) for number, layer in enumerate(layers)))

    return step


@recorded(stacks=True)
@pair
def jacobian_row_by_row(s, good):
    """A penalty needs the Jacobian of 24 outputs, and a backward pass runs for each of its rows."""
    width, outputs = s.pick(512, 64), 24
    model = tower(width, width, 4, outputs, nn.Tanh).to(s.device)
    x = torch.randn(s.pick(256, 16), width, device=s.device, requires_grad=True)
    units = torch.eye(outputs, device=s.device)[:, None].expand(-1, len(x), -1)

    def step():
        y = model(x)
        if good:
            (rows,) = torch.autograd.grad(y, x, units, is_grads_batched=True)
        else:
            rows = torch.stack([torch.autograd.grad(y[:, number].sum(), x, retain_graph=True)[0] for number in range(outputs)])
        return rows.square().mean()

    return step


@recorded(stacks=True, shapes=False, marks=False)
@pair
def histograms_each_step(s, good):
    """Histograms of all weights go to the log in each step: copies to the CPU, and numpy."""
    model = tower(s.pick(1024, 96), s.pick(1024, 96), 6, 10).to(s.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    x = torch.randn(256, s.pick(1024, 96), device=s.device)
    label, count = torch.zeros(256, dtype=torch.long, device=s.device), [0]

    def step():
        loss = update(optimizer, F.cross_entropy(model(x), label))
        count[0] += 1
        if not good or count[0] % 1000 == 0:
            for weight in model.parameters():
                np.histogram(weight.detach().cpu().numpy(), bins=64)
        return loss

    return step


PEER = """
import datetime, itertools, sys, torch, torch.distributed as dist
dist.init_process_group("gloo", store=dist.FileStore(sys.argv[1], 2), rank=1, world_size=2, timeout=datetime.timedelta(seconds=120))
torch.set_num_threads(1)
for size in itertools.cycle([int(size) for size in sys.argv[2].split(",")]):
    dist.all_reduce(torch.zeros(size))
"""


def join(sizes):
    """Starts the other process, which takes part in a sum of each of these sizes again and again, and meets it."""
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    if dist.is_initialized():
        dist.destroy_process_group()
    store = os.path.join(tempfile.mkdtemp(), "store")
    subprocess.Popen([sys.executable, "-c", PEER, store, ",".join(map(str, sizes))], stderr=subprocess.DEVNULL)
    dist.init_process_group("gloo", store=dist.FileStore(store, 2), rank=0, world_size=2)


@pair
def gradients_through_gloo(s, good):
    """Two processes average their gradients by hand: each gradient goes to the CPU, is summed with gloo, and comes back."""
    model = tower(s.pick(256, 64), s.pick(256, 64), 12, 10).to(s.device)
    parameters = list(model.parameters())
    optimizer = torch.optim.SGD(parameters, lr=1e-3)
    x, label = torch.randn(256, s.pick(256, 64), device=s.device), torch.zeros(256, dtype=torch.long, device=s.device)
    sizes = [p.numel() for p in parameters]
    join([sum(sizes)] if good else sizes)

    def average():
        if good:
            flat = torch.cat([p.grad.flatten() for p in parameters]).cpu()
            dist.all_reduce(flat)
            for p, part in zip(parameters, (flat.to(s.device) / 2).split(sizes)):
                p.grad.copy_(part.view_as(p))
            return
        for p in parameters:
            grad = p.grad.cpu()
            dist.all_reduce(grad)
            p.grad.copy_(grad.view_as(p) / 2)

    def step():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), label)
        loss.backward()
        average()
        optimizer.step()
        return loss.detach()

    return step
