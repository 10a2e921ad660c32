"""The report of a step is written between the loss and backward().

Wrong: seven milliseconds of Python where the GPU has nothing queued: the forward pass is done by then.
In the trace: a hole on the GPU between the last kernel of the forward pass and the first of the backward pass.
Fix: call backward() first; the report is written while the GPU works on it.
"""

import json
import time

import torch


def program(s, before):
    width = s.pick(4096, 16)
    model = torch.nn.Sequential(*[torch.nn.Linear(width, width) for _ in range(s.pick(8, 2))]).to(s.device, torch.bfloat16)
    x, target = s.randn(s.pick(8192, 4), width), s.randn(s.pick(8192, 4), width)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, foreach=True)
    numbers = list(range(1000))

    def report():
        until = time.perf_counter() + s.pick(7, 0) / 1000
        while True:
            json.dumps(numbers)
            if time.perf_counter() > until:
                return

    def step():
        loss = torch.nn.functional.mse_loss(model(x), target)
        if before:
            report()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if not before:
            report()
        return loss.item()

    return step


def bad(s):
    return program(s, True)


def good(s):
    return program(s, False)
