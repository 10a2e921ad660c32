"""Faults of the Python around the step."""

import copy
import gc
import io
import logging
import threading
import time

import torch
import torch.nn.functional as F
from common import mlp, pair, sgd


RUNNING = []


def training(s, width, layers, rows=64):
    """A model, its optimizer, and a step that trains it and returns logits and loss."""
    model = mlp(s, width, layers)
    x, optimizer = torch.randn(rows, width, device=s.device), sgd(model.parameters())
    y = torch.randn_like(x)

    def step():
        out = model(x)
        loss = F.mse_loss(out, y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return out.detach(), loss.detach()

    return model, optimizer, step


@pair
def checkpoint_each_step(s, good):
    """The state of the model is saved in each step."""
    model, _, one = training(s, s.pick(1024, 128), 6)

    def step():
        loss = one()[1]
        if not good:
            torch.save(model.state_dict(), io.BytesIO())
        return loss

    return step


@pair
def confusion_in_python(s, good):
    """The confusion matrix is counted in Python, one prediction at a time."""
    _, _, one = training(s, s.pick(512, 64), 3, 512)
    truth = torch.randint(0, 10, (512,), device=s.device)
    counts = torch.zeros(10, 10, dtype=torch.long, device=s.device)

    def step():
        out, loss = one()
        guess = out[:, :10].argmax(dim=1)
        if good:
            counts.view(-1).add_(torch.bincount(truth * 10 + guess, minlength=100))
        else:
            for wanted, made in zip(truth, guess):
                counts[wanted, made] += 1
        return loss

    return step


@pair
def tensors_in_the_log(s, good):
    """Each step logs the statistics of all weights, at a level that is off."""
    model, _, one = training(s, s.pick(512, 64), 12)
    log = logging.getLogger("everyday")

    def step():
        loss = one()[1]
        if not good:
            for name, weight in model.named_parameters():
                log.debug(f"{name}: {weight.mean():.4f} {weight.std():.4f} {weight.abs().max():.4f}")
        return loss

    return step


@pair
def average_by_deepcopy(s, good):
    """The averaged model is made by a deep copy and a loop over its parameters in each step."""
    model, _, one = training(s, s.pick(512, 64), 24)
    kept = copy.deepcopy(model)
    averaged = [parameter.detach() for parameter in kept.parameters()]

    def step():
        nonlocal kept
        loss = one()[1]
        with torch.no_grad():
            if good:
                torch._foreach_lerp_(averaged, list(model.parameters()), 0.01)
            else:
                before, kept = kept, copy.deepcopy(model)
                for new, old in zip(kept.parameters(), before.parameters()):
                    new.mul_(0.01).add_(old, alpha=0.99)
        return loss

    return step


@pair
def schedule_of_tensors(s, good):
    """The learning rate of each of 60 parameter groups is worked out with tensors."""
    width = s.pick(512, 32)
    model = mlp(s, width, 29)
    groups = [{"params": [parameter]} for parameter in model.parameters()]
    optimizer = torch.optim.SGD(groups if not good else model.parameters(), lr=1e-3)
    x = torch.randn(64, width, device=s.device)

    def step():
        loss = model(x).square().mean()
        loss.backward()
        for number, group in enumerate(optimizer.param_groups):
            if not good:
                share = torch.cos(torch.tensor(number / 60.0)) * 0.5 + 0.5
                group["lr"] = float(torch.clamp(share * 1e-3, 1e-5, 1e-3))
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    return step


@pair
def compressing_thread(s, good):
    """A thread of pure Python packs log records all the time, so the step's own Python waits for the lock."""
    _, _, one = training(s, s.pick(256, 32), 24)
    for earlier in RUNNING:  # of the twin, in the same process
        earlier.set()
    RUNNING.append(ends := threading.Event())

    def pack():
        while not ends.is_set():
            total = 0
            for number in range(2000):
                total = (total * 31 + number) % 65521

    def rest():
        while not ends.is_set():
            time.sleep(0.05)

    threading.Thread(target=rest if good else pack, daemon=True).start()

    def step():
        return one()[1]

    return step


@pair
def collected_each_step(s, good):
    """gc.collect() in each step, with many Python objects alive."""
    _, _, one = training(s, s.pick(512, 64), 6)
    alive = [{"number": number, "next": [number]} for number in range(60000)]

    def step():
        loss = one()[1]
        if not good:
            gc.collect()
        return loss, len(alive)

    return step


@pair
def solves_one_by_one(s, good):
    """A small system is solved for each of 64 samples, in a Python loop."""
    size, count = 16, 64
    systems = torch.randn(count, size, size, device=s.device) + 8 * torch.eye(size, device=s.device)
    sides = torch.randn(count, size, 1, device=s.device)
    model = mlp(s, s.pick(512, 64), 2)
    x = torch.randn(64, s.pick(512, 64), device=s.device)

    @torch.inference_mode()
    def step():
        if good:
            solved = torch.linalg.solve(systems, sides)
        else:
            solved = torch.stack([torch.linalg.solve(a, b) for a, b in zip(systems, sides)])
        return solved.mean() + model(x).mean()

    return step


@pair
def losses_added_by_sum(s, good):
    """The losses of 48 tasks are computed and added one by one."""
    width, tasks = s.pick(512, 64), 48
    model, x = mlp(s, width, 2, tasks), torch.randn(256, width, device=s.device)
    y, optimizer = torch.randn(256, tasks, device=s.device), sgd(model.parameters())

    def step():
        out = model(x)
        loss = (F.mse_loss(out, y) * tasks if good
                else sum(F.mse_loss(out[:, task], y[:, task]) for task in range(tasks)))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    return step


@pair
def micro_batches_of_four(s, good):
    """Gradients are accumulated over 16 micro batches of four rows, though all fit at once."""
    width = s.pick(512, 64)
    model, x = mlp(s, width, 4), torch.randn(64, width, device=s.device)
    y, optimizer = torch.randn_like(x), sgd(model.parameters())

    def step():
        for rows, wanted in [(x, y)] if good else zip(x.split(4), y.split(4)):
            loss = F.mse_loss(model(rows), wanted) * (len(rows) / 64)
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    return step
