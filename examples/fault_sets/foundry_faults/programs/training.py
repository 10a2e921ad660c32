"""Training: gradients of micro batches, chances, convolutions, states that leave the GPU, a teacher and its pupil."""

import torch
import torch.nn.functional as F
from common import half, pair, recorded, tower, update
from torch import nn
from torch.profiler import record_function


@recorded(stacks=True, active=3)
@pair
def gradients_stacked_to_be_averaged(s, good):
    """Four micro batches make one update. Their gradients are averaged."""
    rows, width, parts = s.pick(256, 4), s.pick(4096, 16), 4
    model = tower(width, width, 5, 100).to(s.device, half(s.device))
    weights = list(model.parameters())
    optimizer = torch.optim.SGD(weights, lr=1e-5)
    pictures = torch.randn(parts, rows, width, device=s.device, dtype=half(s.device))
    labels = torch.randint(0, 100, (parts, rows), device=s.device)

    def accumulated():
        for x, y in zip(pictures, labels):
            (F.cross_entropy(model(x).float(), y) / parts).backward()

    def collected():
        made = []
        for x, y in zip(pictures, labels):
            F.cross_entropy(model(x).float(), y).backward()
            made.append([weight.grad.clone() for weight in weights])
            optimizer.zero_grad()
        with record_function("average"):
            for weight, *gradients in zip(weights, *made):
                weight.grad = torch.stack(gradients).mean(dim=0)

    def step():
        optimizer.zero_grad()
        (accumulated if good else collected)()
        optimizer.step()
        return weights[-1].detach().float().mean()

    return step


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.wide, self.narrow = nn.LayerNorm(width), nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x):
        return x + self.narrow(F.gelu(self.wide(self.norm(x))))


@recorded(stacks=True)
@pair
def coin_tossed_on_the_gpu(s, good):
    """Stochastic depth: each of 32 layers is kept with a chance of 0.8."""
    rows, width, device = s.pick(4096, 4), s.pick(1024, 16), s.device
    layers = nn.ModuleList(Residual(width) for _ in range(32)).to(device, half(device))
    optimizer = torch.optim.SGD(layers.parameters(), lr=1e-5)
    x = torch.randn(rows, width, device=device, dtype=half(device))
    toss_on = "cpu" if good else device

    def step():
        h = x
        with record_function("forward"):
            for layer in layers:
                if torch.rand((), device=toss_on) < 0.8:
                    h = layer(h)
            loss = h.float().square().mean()
        with record_function("backward"):
            optimizer.zero_grad()
            if loss.requires_grad:
                loss.backward()
                optimizer.step()
        return loss.detach()

    return step


class Down(nn.Module):
    """A convolution, of which every second row and column goes on."""

    def __init__(self, inputs, outputs, good):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, 3, padding=1, stride=2 if good else 1)
        self.good = good

    def forward(self, x):
        x = self.conv(x)
        return F.relu(x if self.good else x[:, :, ::2, ::2])


@recorded(stacks=True)
@pair
def picked_after_convolution(s, good):
    """An encoder of pictures that halves their sides four times."""
    rows, side = s.pick(64, 1), s.pick(224, 32)
    widths = [3, 64, 128, 256, 512] if not s.small else [3, 4, 4, 4, 4]
    encoder = nn.Sequential(*(Down(a, b, good) for a, b in zip(widths, widths[1:])), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                            nn.Linear(widths[-1], 100)).to(s.device, half(s.device), memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(encoder.parameters(), lr=1e-5)
    pictures = torch.randn(rows, 3, side, side, device=s.device, dtype=half(s.device)).to(memory_format=torch.channels_last)
    labels = torch.randint(0, 100, (rows,), device=s.device)

    def step():
        with record_function("train"):
            return update(optimizer, F.cross_entropy(encoder(pictures).float(), labels))

    return step


@recorded(stacks=True)
@pair
def states_offloaded_in_the_way(s, good):
    """The hidden states of each batch go to pinned memory, for a later analysis. Two buffers take turns."""
    rows, width = s.pick(16_384, 8), s.pick(2048, 16)
    model = tower(width, width, 8, width).to(s.device, half(s.device)).eval()
    x = torch.randn(rows, width, device=s.device, dtype=half(s.device))
    buffers = [s.pinned(torch.empty(rows, width, dtype=half(s.device))) for _ in range(2)]
    apart = torch.cuda.Stream() if good and s.device == "cuda" else None
    last = [None, None]

    def send(states, number):
        if apart is None:
            buffers[number].copy_(states, non_blocking=True)
            return
        if last[number] is not None:
            last[number].synchronize()
        apart.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(apart):
            buffers[number].copy_(states, non_blocking=True)
            last[number] = apart.record_event()
        states.record_stream(apart)

    count = [0]

    @torch.inference_mode()
    def step():
        count[0] += 1
        with record_function("states"):
            states = model(x)
        with record_function("offload"):
            send(states, count[0] % 2)

    return step


class Network(nn.Module):
    def __init__(self, pixels, width, device):
        super().__init__()
        self.layers, self.device = tower(pixels, width, 3, 100).to(device, half(device)), device

    def forward(self, pictures):
        x = pictures.to(self.device, non_blocking=True)
        return self.layers(x).float()


@recorded(stacks=True)
@pair
def batch_sent_to_the_gpu_twice(s, good):
    """A pupil learns from a teacher. Both see the same batch, which comes from pinned memory."""
    rows, pixels, width = s.pick(1024, 4), s.pick(3 * 96 * 96, 48), s.pick(1024, 16)
    teacher, pupil = Network(pixels, width, s.device).requires_grad_(False), Network(pixels, width, s.device)
    optimizer = torch.optim.SGD(pupil.parameters(), lr=1e-5)
    batch = s.pinned(torch.randn(rows, pixels).to(half(s.device)))

    def step():
        seen = batch.to(s.device, non_blocking=True) if good else batch
        with record_function("teacher"), torch.no_grad():
            wanted = teacher(seen).softmax(dim=1)
        with record_function("pupil"):
            return update(optimizer, F.cross_entropy(pupil(seen), wanted))

    return step
