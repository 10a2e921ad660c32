"""Gradients are set to zero instead of being dropped.

Wrong: set_to_none=False writes zeros into every gradient, and backward then reads them, adds, and writes them again.
In the trace: Optimizer.zero_grad with one fill kernel per parameter, and aten::add_ under AccumulateGrad in backward.
Fix: zero_grad() drops the gradients (set_to_none=True is the default), and backward just stores them.
"""

import torch


def program(s, set_to_none):
    width = s.pick(8192, 16)
    layers = [torch.nn.Linear(width, width, bias=False) for _ in range(s.pick(6, 2))]
    model = torch.nn.Sequential(*layers).to(s.device, torch.bfloat16)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    x = s.randn(s.pick(64, 4), width)

    def step():
        optimizer.zero_grad(set_to_none=set_to_none)
        loss = model(x).float().square().mean()
        loss.backward()
        optimizer.step()
        return loss

    return step


def bad(s):
    return program(s, False)


def good(s):
    return program(s, True)
