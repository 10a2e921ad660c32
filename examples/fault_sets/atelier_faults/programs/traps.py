"""Programs that look faulty and are not. Each says what would be false of it."""

import random

import torch
import torch.nn.functional as F
from common import half, recorded, tower, trap, update
from torch import nn
from torch.profiler import record_function


@recorded(stacks=True)
@trap
def copy_that_pays_back(s, good):
    """A convolution leaves channels first. Its columns are picked twelve times, so it is turned once. Not: leave the copy out."""
    length, channels, sets = s.pick(262_144, 64), s.pick(128, 8), 12
    signal = torch.randn(1, 8, length, device=s.device, dtype=half(s.device))
    filters = nn.Conv1d(8, channels, 9, padding=4).to(s.device, half(s.device)).eval()
    places = [torch.randint(0, length, (length,), device=s.device) for _ in range(sets)]

    @torch.inference_mode()
    def step():
        with record_function("turn"):
            table = filters(signal)[0].t().contiguous()
        total = torch.zeros(channels, device=s.device)
        with record_function("pick"):
            for chosen in places:
                total += table.index_select(0, chosen).amax(dim=0).float()
        return total

    return step


@recorded(stacks=True)
@trap
def optimizer_is_most_of_it(s, good):
    """268 million weights of 16 bits, 64 rows, AdamW in one kernel. All weights learn. Not: fuse it, or update fewer."""
    width, rows = s.pick(8192, 16), s.pick(64, 4)
    with torch.device(s.device):
        model = tower(width, width, 4, 10).to(half(s.device))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-6, fused=True)
    x = torch.randn(rows, width, device=s.device, dtype=half(s.device))

    def step():
        with record_function("train"):
            return update(optimizer, model(x).float().square().mean())

    return step


@recorded(stacks=True)
@trap
def layers_dropped_at_random(s, good):
    """Training that leaves out some of 16 layers in each step, on purpose. Not: something slows down single steps."""
    width, rows = s.pick(2048, 16), s.pick(8192, 8)
    enter, leave = nn.Linear(64, width), nn.Linear(width, 10)
    layers = nn.ModuleList(nn.Sequential(nn.Linear(width, width), nn.ReLU()) for _ in range(16))
    nn.ModuleList([enter, leave, layers]).to(s.device, half(s.device))
    optimizer = torch.optim.SGD([*enter.parameters(), *leave.parameters(), *layers.parameters()], lr=1e-5)
    x, dice = torch.randn(rows, 64, device=s.device, dtype=half(s.device)), random.Random(0)

    def step():
        h = enter(x)
        for layer in layers:
            if dice.random() > 0.3:
                h = h + layer(h)
        return update(optimizer, leave(h).float().square().mean())

    return step


@recorded(stacks=True, active=3)
@trap
def critic_updated_three_times(s, good):
    """The critic learns three times, each from new noise and other pictures, then the generator. Not: the same is done again."""
    width, rows, noise = s.pick(2048, 16), s.pick(8192, 8), 64
    generator, critic = tower(noise, width, 3, width).to(s.device, half(s.device)), tower(width, width, 3, 1).to(s.device, half(s.device))
    first = torch.optim.SGD(generator.parameters(), lr=1e-5)
    second = torch.optim.SGD(critic.parameters(), lr=1e-5)
    pictures = torch.randn(4 * rows, width, device=s.device, dtype=half(s.device))

    def drawn():
        return torch.randn(rows, noise, device=s.device, dtype=half(s.device))

    def step():
        for number in range(3):
            with record_function("critic"):
                with torch.no_grad():
                    made = generator(drawn())
                true = critic(pictures[number * rows:(number + 1) * rows]).float()
                update(second, F.softplus(-true).mean() + F.softplus(critic(made).float()).mean())
        with record_function("generator"):
            critic.requires_grad_(False)
            loss = update(first, F.softplus(-critic(generator(drawn())).float()).mean())
            critic.requires_grad_(True)
        return loss

    return step
