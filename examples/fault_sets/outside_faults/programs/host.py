"""What the host does besides: tools that were left on."""

import contextlib
import os

import torch
from common import half, pair, recorded, tower, update
from torch import nn
from torch.utils.flop_counter import FlopCounterMode


@recorded(stacks=True, active=2)
@pair
def flop_counter_left_on(s, good):
    """Each step counts its operations, to write the achieved rate into the log."""
    width = s.pick(512, 64)
    model = tower(width, width, 6, width).to(s.device, half(s.device))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    x = torch.randn(s.pick(1024, 32), width, device=s.device, dtype=half(s.device))
    counted = []

    def step():
        counter = FlopCounterMode(display=False)
        with contextlib.nullcontext() if good else counter:
            loss = update(optimizer, model(x).float().square().mean())
        if not good:
            counted.append(counter.get_total_flops())
        return loss

    return step


@recorded(stacks=True)
@pair
def memory_summary_each_step(s, good):
    """The log keeps a table of the allocator after each layer. On a CPU there is no such table, and no fault."""
    width = s.pick(1024, 64)
    model = tower(width, width, 8, width).to(s.device, half(s.device))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    x = torch.randn(s.pick(1024, 32), width, device=s.device, dtype=half(s.device))
    notes = []

    def note(module, inputs, output):
        notes[:] = [torch.cuda.memory_summary(abbreviated=True)]

    for module in model:
        if not good and s.device == "cuda" and isinstance(module, nn.Linear):
            module.register_forward_hook(note)

    def step():
        return update(optimizer, model(x).float().square().mean())

    return step


@recorded(stacks=True)
@pair
def launches_blocking(s, good):
    """A variable of the environment from the last search for an error. CUDA reads it once, so it needs a process of its own."""
    os.environ["CUDA_LAUNCH_BLOCKING"] = "0" if good else "1"
    width = s.pick(1024, 64)
    model = tower(width, width, 12, width).to(s.device, half(s.device))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    x = torch.randn(s.pick(4096, 32), width, device=s.device, dtype=half(s.device))

    def step():
        return update(optimizer, model(x).float().square().mean())

    return step
