"""Programs that look faulty and are not. Each says what would be false of it."""

import copy

import torch
import torch.nn.functional as F
from common import half, recorded, tower, trap
from torch import nn
from torch.profiler import record_function


@recorded(stacks=True)
@trap
def zeros_that_are_added_to(s, good):
    """Points are summed into the cells of a grid, which begin at zero. Not: leave the zeros out."""
    cells, points, size = s.pick(1_000_000, 50), s.pick(2_000_000, 100), 64
    x = torch.randn(points, size, device=s.device)
    cell = torch.randint(0, cells, (points,), device=s.device)
    reader = nn.Linear(size, 32).to(s.device, half(s.device)).eval()

    @torch.inference_mode()
    def step():
        with record_function("voxels"):
            grid = torch.zeros(cells, size, device=s.device).index_add_(0, cell, x)
        return reader(grid.to(half(s.device))).float().mean(dim=0)

    return step


@recorded(stacks=True)
@trap
def master_weights_in_float32(s, good):
    """The optimizer works on float32 weights, and the model computes with copies of 16 bits. Not: casts that can be left out."""
    width, rows = s.pick(4096, 16), s.pick(8192, 8)
    model = tower(width, width, 6, 100).to(s.device, half(s.device))
    masters = [weight.detach().float() for weight in model.parameters()]
    optimizer = torch.optim.SGD(masters, lr=1e-5)
    x = torch.randn(rows, width, device=s.device, dtype=half(s.device))

    def step():
        model.zero_grad()
        loss = model(x).float().square().mean()
        loss.backward()
        weights = list(model.parameters())
        with torch.no_grad(), record_function("masters"):
            for master, weight in zip(masters, weights):
                master.grad = weight.grad.float()
            optimizer.step()
            torch._foreach_copy_(weights, masters)
        return loss.detach()

    return step


@recorded(stacks=True)
@trap
def online_and_target_encoder(s, good):
    """Each of two encoders with different weights reads both views. Not: the same pass is made twice."""
    width, rows = s.pick(4096, 16), s.pick(4096, 8)
    online = tower(width, width, 4, 256).to(s.device, half(s.device))
    target = copy.deepcopy(online).requires_grad_(False)
    optimizer = torch.optim.SGD(online.parameters(), lr=1e-5)
    views = torch.randn(2 * rows, width, device=s.device, dtype=half(s.device))

    def step():
        optimizer.zero_grad()
        guesses = F.normalize(online(views).float(), dim=1)
        with torch.no_grad():
            wanted = F.normalize(target(views).float(), dim=1)
        loss = 2 - 2 * (guesses * wanted.roll(rows, 0)).sum(dim=1).mean()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            torch._foreach_lerp_(list(target.parameters()), list(online.parameters()), 0.01)
        return loss.detach()

    return step


@recorded(stacks=True)
@trap
def dropout_on_purpose(s, good):
    """How sure is a model? Eight answers of it with dropout, in one pass. Not: dropout was left on by mistake, or rows are read twice."""
    width, rows, answers = s.pick(2048, 16), s.pick(2048, 8), 8
    with torch.device(s.device):
        parts = [part for _ in range(6) for part in (nn.Linear(width, width), nn.ReLU(), nn.Dropout(0.1))]
        model = nn.Sequential(*parts, nn.Linear(width, 100)).to(half(s.device)).train()
    x = torch.randn(rows, width, device=s.device, dtype=half(s.device))

    @torch.inference_mode()
    def step():
        chances = model(x.repeat(answers, 1)).float().softmax(dim=-1).view(answers, rows, -1)
        return chances.std(dim=0).mean(dim=1)

    return step


@recorded(stacks=True)
@trap
def only_answers_scored(s, good):
    """Fine-tuning: the words of answers are chosen first, by an index of the loader. Not: a mask that waits, or scores of all words."""
    width, tokens, words = s.pick(2048, 16), s.pick(16_384, 16), s.pick(64_000, 50)
    body, head = tower(width, width, 8, width), nn.Linear(width, words, bias=False)
    nn.ModuleList([body, head]).to(s.device, half(s.device))
    optimizer = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=1e-5)
    x = torch.randn(tokens, width, device=s.device, dtype=half(s.device))
    answers = torch.arange(0, tokens, 8, device=s.device)
    labels = torch.randint(0, words, (len(answers),), device=s.device)

    def step():
        optimizer.zero_grad()
        chosen = body(x).index_select(0, answers)
        loss = F.cross_entropy(head(chosen).float(), labels)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step
