"""Programs that look faulty and are not. The docstring says what must not be said."""

import copy

import torch
import torch.nn.functional as F
from common import half, recorded, trap, tower, update
from torch import nn


@recorded(stacks=True)
@trap
def soft_target_by_foreach(s, good):
    """Q-learning whose target network follows by a hundredth in each step. Not: do so less often, or in one call (it is one)."""
    width, rows = s.pick(512, 16), s.pick(1024, 8)
    actor = tower(s.pick(64, 8), width, 6, 8).to(s.device)
    target = copy.deepcopy(actor).requires_grad_(False)
    optimizer = torch.optim.Adam(actor.parameters(), lr=1e-4, fused=s.device == "cuda")
    ours, theirs = list(actor.parameters()), list(target.parameters())
    now, then = torch.randn(2, rows, s.pick(64, 8), device=s.device)
    reward, action = torch.randn(rows, device=s.device), torch.randint(0, 8, (rows, 1), device=s.device)

    def step():
        with torch.no_grad():
            wanted = reward + 0.99 * target(then).amax(dim=1)
        loss = update(optimizer, F.smooth_l1_loss(actor(now).gather(1, action).squeeze(1), wanted))
        with torch.no_grad():
            torch._foreach_lerp_(theirs, ours, 0.01)
        return loss

    return step


@recorded(stacks=True)
@trap
def loss_read_one_step_late(s, good):
    """Each step logs the loss of the step before, which came to pinned memory meanwhile. Not: the log makes the CPU wait."""
    width, rows = s.pick(2048, 32), s.pick(4096, 8)
    model = tower(width, width, 4, width).to(s.device, half(s.device))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=s.device == "cuda")
    x = torch.randn(rows, width, device=s.device, dtype=half(s.device))
    slots, log, count = s.pinned(torch.zeros(2)), [], [0]
    events = [torch.cuda.Event() if s.device == "cuda" else None for _ in range(2)]

    def step():
        now, before = count[0] % 2, (count[0] + 1) % 2
        loss = update(optimizer, model(x).float().square().mean())
        slots[now].copy_(loss, non_blocking=True)
        if events[now] is not None:
            events[now].record()
        if count[0]:
            if events[before] is not None:
                events[before].synchronize()
            log.append(float(slots[before]))
            del log[:-100]
        count[0] += 1
        return loss

    return step


@recorded(stacks=True)
@trap
def nucleus_sampling(s, good):
    """Words are drawn from the most probable ones that make up 90 %. Not: the sort (or softmax, or sums) is needless."""
    width, rows, words = s.pick(1024, 32), s.pick(64, 2), s.pick(50_000, 300)
    model = tower(width, 2 * width, 6, words).to(s.device, half(s.device)).eval()
    state = torch.randn(rows, width, device=s.device, dtype=half(s.device))

    @torch.inference_mode()
    def step():
        likely, order = model(state).float().softmax(dim=1).sort(dim=1, descending=True)
        likely = likely.masked_fill(likely.cumsum(dim=1) - likely > 0.9, 0)
        drawn = torch.multinomial(likely, 1)
        return order.gather(1, drawn).float().mean() * 0

    return step


@recorded(stacks=True)
@trap
def steps_that_depend(s, good):
    """A recurrent cell of one's own over 48 time steps: each product needs the one before. Not: one batched product does it."""
    width, rows, length = s.pick(1024, 16), s.pick(512, 4), s.pick(48, 6)
    into, state = nn.Linear(width, width).to(s.device), nn.Linear(width, width, bias=False).to(s.device)
    series = torch.randn(length, rows, width, device=s.device)

    @torch.inference_mode()
    def step():
        h = torch.zeros(rows, width, device=s.device)
        for part in into(series).unbind(0):
            h = torch.tanh(part + state(h)).lerp_(h, 0.1)
        return h.square().mean(dim=1)

    return step
