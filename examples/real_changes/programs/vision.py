"""Image models, and plain networks: loaders, copies, optimizers, graphs."""

import torch
import torch.nn.functional as F
from common import conv_net, graphed, pair
from torch import nn


class Images(torch.utils.data.Dataset):
    """Images made by some arithmetic, as decoding would."""

    def __init__(self, size, count):
        self.size, self.count = size, count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        x = torch.full((3, self.size, self.size), float(index % 255))
        for _ in range(3):
            x = (x * 1.01 + 1).clamp_(0, 255)
        return x, index % 100


def cnn_step(s):
    net = conv_net(s)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3, foreach=True)

    def train_on(x, y):
        with torch.autocast(s.device, torch.bfloat16):
            loss = F.cross_entropy(net(x.contiguous(memory_format=torch.channels_last)).float(), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    return train_on


@pair
def cnn_loader_workers(s, changed):
    """A CNN fed by a DataLoader without workers; the change: 8 workers that persist."""
    train_on, size, rows = cnn_step(s), s.pick(128, 16), s.pick(64, 2)
    workers = s.pick(8, 1) if changed else 0
    loader = torch.utils.data.DataLoader(Images(size, rows * 2000), batch_size=rows, num_workers=workers, pin_memory=s.device == "cuda")
    batches = iter(loader)

    def step():
        x, y = next(batches)
        return train_on(x.to(s.device, non_blocking=True), y.to(s.device, non_blocking=True))

    return step


def host_batches(s, pinned):
    rows, size = s.pick(256, 2), s.pick(160, 16)
    batches = [(torch.randn(rows, 3, size, size), torch.randint(0, 100, (rows,))) for _ in range(2)]
    return [(s.pinned(x), s.pinned(y)) for x, y in batches] if pinned else batches


@pair
def cnn_pinned(s, changed):
    """A CNN fed from pageable memory; the change: pinned memory and non_blocking=True."""
    train_on, batches, count = cnn_step(s), host_batches(s, changed), [0]

    def step():
        x, y = batches[count[0] % 2]
        count[0] += 1
        return train_on(x.to(s.device, non_blocking=changed), y.to(s.device, non_blocking=changed))

    return step


@pair
def cnn_prefetch_stream(s, changed):
    """A CNN whose pinned batches are copied when they are needed; the change: the next one is copied on a second stream."""
    train_on, batches, count = cnn_step(s), host_batches(s, True), [0]
    side = torch.cuda.Stream() if s.device == "cuda" else None

    def copied():
        x, y = batches[count[0] % 2]
        count[0] += 1
        return x.to(s.device, non_blocking=True), y.to(s.device, non_blocking=True)

    def fetched():
        with torch.cuda.stream(side):
            return copied()

    kept = [fetched() if changed and side else None]

    def step():
        if not (changed and side):
            return train_on(*copied())
        torch.cuda.current_stream().wait_stream(side)
        x, y = kept[0]
        x.record_stream(torch.cuda.current_stream())
        y.record_stream(torch.cuda.current_stream())
        kept[0] = fetched()
        return train_on(x, y)

    return step


def deep_mlp(s, layers):
    width = s.pick(512, 16)
    parts = [part for _ in range(layers) for part in (nn.Linear(width, width), nn.LayerNorm(width), nn.ReLU())]
    return width, nn.Sequential(*parts, nn.Linear(width, 10)).to(s.device)


@pair
def mlp_training_fused_adam(s, changed):
    """An MLP of 16 layers with AdamW parameter by parameter; the change: fused=True."""
    width, net = deep_mlp(s, s.pick(16, 2))
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4, **({"fused": True} if changed else {"foreach": False}))
    x, y = torch.randn(256, width, device=s.device), torch.randint(0, 10, (256,), device=s.device)

    def step():
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    return step


@pair
def mlp_training_graph(s, changed):
    """Forward, backward and optimizer of an MLP of 16 layers; the change: one CUDA graph of all."""
    width, net = deep_mlp(s, s.pick(16, 2))
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-4, momentum=0.9, foreach=True)
    x, y = torch.randn(256, width, device=s.device), torch.randint(0, 10, (256,), device=s.device)

    def step():
        optimizer.zero_grad(set_to_none=not changed)
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return graphed(s, step) if changed else step
