"""AdamW walks over the parameters in a Python loop.

Wrong: foreach=False launches about a dozen small kernels for each parameter.
In the trace: Optimizer.step#AdamW.step with aten::mul_, aten::lerp_, aten::addcmul_, aten::sqrt, ... once a parameter.
Fix: fused=True: one kernel for many parameters. (foreach, the default on a GPU, lies between.)
"""

import torch


def program(s, **options):
    width = s.pick(512, 16)
    model = torch.nn.Sequential(*[torch.nn.Linear(width, width) for _ in range(s.pick(8, 2))]).to(s.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, **options)
    x = s.randn(s.pick(256, 4), width, dtype=torch.float32)

    def step():
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    return step


def bad(s):
    return program(s, foreach=False)


def good(s):
    return program(s, fused=True)
