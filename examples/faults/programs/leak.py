"""Losses are kept for a plot, each with everything that backward would need.

Wrong: losses.append(loss): the loss remembers the graph that made it, and the graph holds the activations of the step.
In the trace (recorded with profile_memory): the allocated memory is higher after each step, and cudaMalloc never ends.
Fix: losses.append(loss.detach()).
"""

import torch


def program(s, keep):
    width = s.pick(1024, 8)
    layers = [part for _ in range(s.pick(4, 2)) for part in (torch.nn.Linear(width, width), torch.nn.GELU())]
    model = torch.nn.Sequential(*layers).to(s.device, torch.bfloat16)
    x, losses = s.randn(s.pick(4096, 4), width), []

    def step():
        loss = model(x).float().square().mean()
        losses.append(keep(loss))
        return loss

    return step


def bad(s):
    return program(s, lambda loss: loss)


def good(s):
    return program(s, lambda loss: loss.detach())
