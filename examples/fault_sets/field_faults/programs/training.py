"""The Python around training."""

import collections
import concurrent.futures
import inspect

import numpy as np
import torch
import torch.nn.functional as F
from common import half, pair, recorded, tower, update
from torch import nn


@recorded(stacks=True)
@pair
def optimizer_kept_on_cpu(s, good):
    """Adam's moments and the weights in float32 live on the CPU, to save memory of the GPU."""
    width, rows = s.pick(1024, 64), s.pick(4096, 16)
    model = tower(width, width, 6, width).to(s.device, half(s.device))
    weights = list(model.parameters())
    copies = [weight.detach().to(s.device if good else "cpu", torch.float32).clone().requires_grad_() for weight in weights]
    optimizer = torch.optim.AdamW(copies, lr=1e-4, fused=good and s.device == "cuda")
    x = torch.randn(rows, width, device=s.device, dtype=half(s.device))

    def step():
        loss = model(x).float().square().mean()
        loss.backward()
        for kept, weight in zip(copies, weights):
            kept.grad = weight.grad.to(kept.device).float()
            weight.grad = None
        optimizer.step()
        with torch.no_grad():
            for kept, weight in zip(copies, weights):
                weight.copy_(kept.to(weight.dtype))
        return loss.detach()

    return step


@recorded(stacks=True)
@pair
def optimizer_inside_backward(s, good):
    """Each parameter has an optimizer of its own, which a hook calls as soon as the gradient is there. Memory was short once."""
    width, rows, layers = s.pick(256, 16), s.pick(256, 4), s.pick(12, 6)
    model = tower(width, width, layers, width).to(s.device)
    x = torch.randn(rows, width, device=s.device)
    if good:
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    else:
        own = {parameter: torch.optim.AdamW([parameter], lr=1e-4) for parameter in model.parameters()}

        def renew(parameter):
            own[parameter].step()
            own[parameter].zero_grad()

        for parameter in model.parameters():
            parameter.register_post_accumulate_grad_hook(renew)

    def step():
        loss = F.mse_loss(model(x), x)
        if good:
            return update(optimizer, loss)
        loss.backward()
        return loss.detach()

    return step


@recorded(stacks=True)
@pair
def names_looked_up_anew(s, good):
    """A running average of the weights, kept by name."""
    width, rows, layers = s.pick(128, 16), s.pick(128, 4), s.pick(11, 8)
    model = tower(width, width, layers, width).to(s.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    average = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    known = dict(model.named_parameters())
    x = torch.randn(rows, width, device=s.device)

    @torch.no_grad()
    def follow():
        for name, mean in average.items():
            parameter = known[name] if good else dict(model.named_parameters())[name]
            mean.lerp_(parameter, 0.01)

    def step():
        loss = update(optimizer, F.mse_loss(model(x), x))
        follow()
        return loss

    return step


class Noted(nn.Module):
    """A layer that notes the shape of its input, and who asked for it, in a short log."""

    log = collections.deque(maxlen=100)

    def __init__(self, width, good):
        super().__init__()
        self.good, self.norm, self.work = good, nn.LayerNorm(width), tower(width, 2 * width, 1, width, nn.GELU)

    def note(self, x):
        asked = inspect.currentframe().f_back.f_code.co_name if self.good else inspect.stack()[1].function
        self.log.append((asked, tuple(x.shape)))

    def forward(self, x):
        self.note(x)
        return x + self.work(self.norm(x))


@recorded(stacks=True)
@pair
def caller_found_by_inspect(s, good):
    """A log of shapes that was of use while the model was written."""
    width = s.pick(512, 32)
    model = nn.Sequential(*[Noted(width, good) for _ in range(s.pick(4, 3))]).to(s.device, half(s.device))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=s.device == "cuda")
    x = torch.randn(s.pick(2048, 8), width, device=s.device, dtype=half(s.device))

    def step():
        return update(optimizer, model(x).float().square().mean())

    return step


@recorded(stacks=True)
@pair
def prefetch_awaited_at_once(s, good):
    """Predictions for all records. A thread prepares the next batch - but its answer is awaited where it is asked for."""
    rows, inputs, width = s.pick(8192, 512), s.pick(256, 64), s.pick(8192, 256)
    model = tower(inputs, width, 3, 10).to(s.device, half(s.device)).eval()
    records = np.random.default_rng(0).standard_normal((20_000, inputs), dtype=np.float32)
    batches = [s.pinned(torch.empty(rows, inputs)) for _ in range(2)]
    pool, turn, coming = concurrent.futures.ThreadPoolExecutor(1), [0], []

    def load(number):
        x = records[(np.arange(rows) * 7 + number) % len(records)]
        x = (x - x.mean(axis=1, keepdims=True)) / x.std(axis=1, keepdims=True)
        return batches[number % 2].copy_(torch.from_numpy(x))

    @torch.inference_mode()
    def step():
        turn[0] += 1
        if good:
            batch = coming.pop().result() if coming else load(turn[0])
            coming.append(pool.submit(load, turn[0] + 1))
        else:
            batch = pool.submit(load, turn[0]).result()
        x = batch.to(s.device, non_blocking=True).to(half(s.device))
        return model(x).argmax(dim=1).cpu().float().mean()

    return step
