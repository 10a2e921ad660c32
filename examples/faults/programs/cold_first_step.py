"""The first step is measured, and it is the one that prepares everything.

Wrong: nothing runs before the recorded steps. Libraries load kernels, create handles and choose algorithms on first use.
In the trace: the first step many times as long as the second, with long calls inside aten::addmm and long first launches.
Fix: a few steps before the first that counts.
"""

import torch


def program(s):
    width = s.pick(4096, 16)
    model = torch.nn.Sequential(torch.nn.Linear(width, width), torch.nn.GELU(), torch.nn.LayerNorm(width),
                                torch.nn.Linear(width, width)).to(s.device, torch.bfloat16)
    x = s.randn(s.pick(16384, 4), width)

    def step():
        loss = model(x).float().square().mean()
        loss.backward()
        model.zero_grad()
        s.finish()
        return loss

    return step


def bad(s):
    return program(s)


def good(s):
    step = program(s)
    for _ in range(3):
        step()
    return step
