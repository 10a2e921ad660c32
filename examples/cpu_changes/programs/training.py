"""Training loops whose Python, operators or reports hold the GPU up."""

import json
import math
import os
import tempfile

import torch
import torch.nn.functional as F
from common import Named, half, pair, recorded, trained, update


@pair
def metrics_read_one_by_one(s, good):
    """Sixteen metrics are read with .item(), one after the other."""
    rows, width, classes = s.pick(512, 4), s.pick(1024, 16), 16
    model, optimizer = trained(s, width, 6, classes)
    x, y = s.randn(rows, width, dtype=half(s.device)), torch.randint(0, classes, (rows,), device=s.device)

    def step():
        scores = model(x).float()
        loss = update(optimizer, F.cross_entropy(scores, y))
        right = scores.detach().argmax(dim=1) == y
        if good:
            sums = torch.zeros(classes, device=s.device).index_add_(0, y, right.float())
            report = sums.tolist()
        else:
            report = [((y == number) & right).sum().item() for number in range(classes)]
        return loss if report else None

    return step


@pair
def one_optimizer_group_a_parameter(s, good):
    """Each parameter has a group of its own, with the same settings."""
    rows, width = s.pick(256, 4), s.pick(512, 16)
    model = torch.nn.Sequential(*(Named(width) for _ in range(s.pick(12, 2)))).to(s.device, half(s.device))
    weights = list(model.parameters())
    optimizer = torch.optim.AdamW(weights if good else [{"params": [weight]} for weight in weights], lr=1e-5, foreach=True)
    x = s.randn(rows, width, dtype=half(s.device))

    def step():
        return update(optimizer, model(x).float().square().mean())

    return step


@recorded(stacks=True)
@pair
def report_written_as_json(s, good):
    """A report of 3000 numbers that do not change is made JSON and written in each step; the good twin writes the loss alone, each step."""
    rows, width = s.pick(256, 4), s.pick(1024, 16)
    model, optimizer = trained(s, width, 6)
    x = s.randn(rows, width, dtype=half(s.device))
    settings = {f"setting{number}": math.sin(number) for number in range(s.pick(3000, 20))}
    file = open(os.path.join(tempfile.mkdtemp(), "report.jsonl"), "w", encoding="utf-8")
    number = 0

    def step():
        nonlocal number
        number += 1
        loss = update(optimizer, model(x).float().square().mean())
        file.write(json.dumps({"step": number} if good else {"step": number, **settings}) + "\n")
        file.flush()
        if number % 64 == 0:
            file.seek(0)
            file.truncate()
        return loss

    return step


@recorded(stacks=True)
@pair
def equations_made_as_text(s, good):
    """48 small contractions: the text of their einsum is put together anew; the good twin multiplies with bmm."""
    count, width = s.pick(48, 3), s.pick(64, 8)
    left, right = s.randn(count, 8, width, width, dtype=half(s.device)), s.randn(count, 8, width, width, dtype=half(s.device))

    def equation(ranks):
        letters = [chr(ord("a") + place) for place in range(ranks)]
        first, second = [*letters, "x", "y"], [*letters, "y", "z"]
        return "".join(first) + "," + "".join(second) + "->" + "".join(each for each in [*letters, "x", "y", "z"] if each != "y")

    @torch.no_grad()
    def step():
        if good:
            return torch.matmul(left, right).float().mean()
        parts = [torch.einsum(equation(1), one, other) for one, other in zip(left, right)]
        return torch.stack(parts).float().mean()

    return step


@pair
def gradients_clipped_one_by_one(s, good):
    """clip_grad_norm_ for each parameter by itself, with its own limit; the good twin clips all at once by value."""
    rows, width = s.pick(256, 4), s.pick(512, 16)
    model = torch.nn.Sequential(*(Named(width) for _ in range(s.pick(12, 2)))).to(s.device, half(s.device))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-5, foreach=True)
    weights = list(model.parameters())
    x = s.randn(rows, width, dtype=half(s.device))

    def step():
        optimizer.zero_grad()
        loss = model(x).float().square().mean()
        loss.backward()
        if good:
            torch.nn.utils.clip_grad_norm_(weights, 1.0)
        else:
            for weight in weights:
                torch.nn.utils.clip_grad_norm_([weight], 1.0)
        optimizer.step()
        return loss.detach()

    return step


@pair
def average_kept_in_a_loop(s, good):
    """An average of the weights is updated parameter by parameter; the good twin uses one call for all."""
    rows, width = s.pick(256, 4), s.pick(512, 16)
    model = torch.nn.Sequential(*(Named(width) for _ in range(s.pick(16, 2)))).to(s.device, half(s.device))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-5, foreach=True)
    weights = list(model.parameters())
    kept = [weight.detach().clone() for weight in weights]
    x = s.randn(rows, width, dtype=half(s.device))

    def step():
        loss = update(optimizer, model(x).float().square().mean())
        with torch.no_grad():
            if good:
                torch._foreach_lerp_(kept, weights, 0.01)
            else:
                for mean, weight in zip(kept, weights):
                    mean.mul_(0.99).add_(weight, alpha=0.01)
        return loss

    return step


@pair
def layers_watched_by_hooks(s, good):
    """Each of 16 layers has a hook that keeps mean, spread and largest value of its output."""
    rows, width = s.pick(256, 4), s.pick(512, 16)
    model = torch.nn.Sequential(*(Named(width) for _ in range(s.pick(16, 2)))).to(s.device, half(s.device))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-5, foreach=True)
    x = s.randn(rows, width, dtype=half(s.device))
    kept = {}
    if not good:
        for number, layer in enumerate(model):
            def watch(module, inputs, output, number=number):
                value = output.detach().float()
                kept[number] = (value.mean(), value.std(), value.abs().max())
            layer.register_forward_hook(watch)

    def step():
        return update(optimizer, model(x).float().square().mean())

    return step
