"""Faults of precision, of data, and of the Python around the step."""

import pickle
import threading
import time

import torch
import torch.nn.functional as F
from common import adamw, mlp, pair, train
from torch import nn


class ScaledBlock(nn.Module):
    """Linear, activation, a learned scale of each channel, a residual."""

    def __init__(self, width, scale_type):
        super().__init__()
        self.linear = nn.Linear(width, width, dtype=torch.bfloat16)
        self.scale = nn.Parameter(torch.ones(width, dtype=scale_type))
        self.shift = nn.Parameter(torch.zeros(width, dtype=scale_type))

    def forward(self, x):
        y = F.silu(self.linear(x.bfloat16()))
        return torch.tanh(y * self.scale + self.shift) + x


@pair
def promoted_by_a_parameter(s, good):
    """A scale that was left in float32 makes all later activations of a bf16 model float32."""
    width = s.pick(1024, 16)
    model = nn.Sequential(*[ScaledBlock(width, torch.bfloat16 if good else torch.float32) for _ in range(6)]).to(s.device)
    x = s.randn(s.pick(16384, 8), width)
    return train(model, adamw(model.parameters()), lambda: model(x).float().square().mean())


@pair
def autocast_per_layer(s, good):
    """autocast is entered anew in each of 16 rounds of a shared layer, so the weight is cast 16 times."""
    width, rounds = s.pick(4096, 16), s.pick(16, 3)
    cell, x = nn.Linear(width, width).to(s.device), torch.randn(s.pick(128, 4), width, device=s.device)

    def run(h):
        for _ in range(rounds):
            if good:
                h = torch.tanh(cell(h))
            else:
                with torch.autocast(s.device, torch.bfloat16):
                    h = torch.tanh(cell(h))
        return h

    def loss_of():
        if good:
            with torch.autocast(s.device, torch.bfloat16):
                return run(x).float().square().mean()
        return run(x).float().square().mean()

    return train(cell, adamw(cell.parameters()), loss_of)


@pair
def augment_before_crop(s, good):
    """Colours of whole images are changed, and a ninth of each is cropped and used."""
    size, crop = s.pick(672, 48), s.pick(224, 16)
    images = torch.randint(0, 256, (s.pick(64, 2), 3, size, size), dtype=torch.uint8, device=s.device)
    conv = nn.Conv2d(3, 64, 7, stride=2).to(s.device, torch.bfloat16)

    def coloured(x):
        x = x.float() / 255
        x = (x * 1.2).clamp(0, 1)
        grey = x.mean(dim=1, keepdim=True)
        x = (grey + (x - grey) * 0.8).clamp(0, 1)
        return ((x - 0.45) / 0.25).bfloat16()

    @torch.inference_mode()
    def step():
        if good:
            x = coloured(images[:, :, :crop, :crop])
        else:
            x = coloured(images)[:, :, :crop, :crop].contiguous()
        return conv(x)[0]

    return step


@pair
def float_images(s, good):
    """Images travel to the GPU as float32, four times the bytes that they have as uint8."""
    shape = (s.pick(128, 2), 3, s.pick(224, 32), s.pick(224, 32))
    raw = torch.randint(0, 256, shape, dtype=torch.uint8)
    batch = s.pinned(raw if good else raw.float())
    convs = nn.Sequential(nn.Conv2d(3, 64, 7, stride=4), nn.ReLU(), nn.Conv2d(64, 64, 3)).to(s.device, torch.bfloat16)
    optimizer = adamw(convs.parameters())

    def loss_of():
        x = batch.to(s.device, non_blocking=True)
        return convs((x.float() / 255).bfloat16()).float().square().mean()

    return train(convs, optimizer, loss_of)


@pair
def formatting_a_tensor(s, good):
    """A message for the debug log is made from a tensor in each step, though nobody reads the log."""
    width = s.pick(1024, 16)
    model, x = mlp(s, width, 4), s.randn(s.pick(2048, 8), width)
    messages = [""]

    @torch.inference_mode()
    def step():
        h = x
        for number, layer in enumerate(model):
            h = layer(h)
            if not good and number == 3:
                messages[0] = f"after layer {number}: {h}"
        return h[0]

    return step


@pair
def pickling_thread(s, good):
    """A thread of Python that pickles records of the run holds the interpreter's lock, so the step's own Python waits."""
    width = s.pick(256, 16)
    model, x = mlp(s, width, 24), s.randn(64, width)

    def keep_writing():
        records = [{"step": number, "values": [float(number)] * 20} for number in range(2000)]
        while True:
            for record in records:
                pickle.loads(pickle.dumps(record, protocol=0))
            time.sleep(0.0001)

    if not good:
        threading.Thread(target=keep_writing, daemon=True).start()

    @torch.inference_mode()
    def step():
        return model(x)

    return step
