"""Training loops: optimizer, gradients, what a step keeps."""

import contextlib

import torch
import torch.distributed as dist
import torch.nn.functional as F
from common import half, join_alone, pair, recorded, tower, update
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def encoder(s, layers):
    width = s.pick(256, 64)
    layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.0, batch_first=True, norm_first=True)
    stack = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
    return stack.to(s.device), torch.randn(s.pick(16, 2), s.pick(128, 32), width, device=s.device)


@recorded(stacks=True, active=3)
@pair
def group_per_parameter(s, good):
    """No weight decay for biases and norms: each parameter is entered with its own settings."""
    model, x = encoder(s, 6)
    decayed = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() <= 1]
    if good:
        groups = [{"params": decayed, "weight_decay": 0.05}, {"params": others, "weight_decay": 0.0}]
    else:
        groups = [{"params": [p], "weight_decay": 0.05 if p.dim() > 1 else 0.0} for p in model.parameters()]
    optimizer = torch.optim.AdamW(groups, lr=1e-4)

    def step():
        return update(optimizer, model(x).square().mean())

    return step


@recorded(stacks=True)
@pair
def activations_saved_on_cpu(s, good):
    """The memory was short once, on another GPU. Now all would fit."""
    width = s.pick(2048, 64)
    model = tower(width, width, 6, width, nn.GELU).to(s.device, half(s.device))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    x = torch.randn(s.pick(1024, 64), width, device=s.device, dtype=half(s.device))

    def step():
        with contextlib.nullcontext() if good else torch.autograd.graph.save_on_cpu():
            loss = model(x).float().square().mean()
        return update(optimizer, loss)

    return step


@recorded(stacks=True)
@pair
def backward_for_each_loss(s, good):
    """A trunk with four heads. Each head's loss has its own backward pass, through the whole trunk."""
    width = s.pick(2048, 128)
    trunk = tower(width, width, 5, width).to(s.device, half(s.device))
    heads = nn.ModuleList(nn.Linear(width, 16) for _ in range(4)).to(s.device, half(s.device))
    optimizer = torch.optim.AdamW([*trunk.parameters(), *heads.parameters()], lr=1e-4)
    x = torch.randn(s.pick(8192, 128), width, device=s.device, dtype=half(s.device))

    def step():
        h = trunk(x)
        losses = [head(h).float().square().mean() for head in heads]
        optimizer.zero_grad()
        if good:
            torch.stack(losses).sum().backward()
        else:
            for loss in losses:
                loss.backward(retain_graph=True)
        optimizer.step()
        return torch.stack(losses).detach()

    return step


@pair
def queue_of_keys_copied(s, good):
    """Contrastive learning with a queue of old keys: the new ones go in at one end, the oldest fall out at the other."""
    count, width, rows = s.pick(1 << 20, 1024), s.pick(256, 32), s.pick(64, 16)
    model, slow = (tower(width, width, 2, width).to(s.device, half(s.device)) for _ in range(2))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    x = torch.randn(rows, width, device=s.device, dtype=half(s.device))
    state = {"queue": F.normalize(torch.randn(count, width, device=s.device, dtype=half(s.device)), dim=1), "at": 0}

    def remember(keys):
        if good:
            state["queue"][state["at"]:state["at"] + rows] = keys
            state["at"] = (state["at"] + rows) % count
        else:
            state["queue"] = torch.cat([keys, state["queue"][:-rows]])

    def step():
        queries = F.normalize(model(x), dim=1)
        with torch.no_grad():
            keys = F.normalize(slow(x), dim=1)
        same = (queries * keys).sum(dim=1, keepdim=True)
        others = torch.logsumexp(queries @ state["queue"].T / 0.2, dim=1, keepdim=True)
        loss = update(optimizer, (torch.logaddexp(same / 0.2, others) - same / 0.2).float().mean())
        remember(keys)
        return loss

    return step


@recorded(stacks=True, shapes=False)
@pair
def barrier_each_step(s, good):
    """Data-parallel training whose ranks meet at a barrier after each step."""
    join_alone(s.device)
    width = s.pick(1024, 64)
    model = DistributedDataParallel(tower(width, width, 8, width).to(s.device))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    x = torch.randn(s.pick(512, 32), width, device=s.device)

    def step():
        loss = update(optimizer, model(x).square().mean())
        if not good:
            dist.barrier()
        return loss

    return step
