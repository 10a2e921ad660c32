"""Half precision with a GradScaler, and gradients clipped by a norm that the CPU looks at.

Wrong: the scaler asks the GPU in every step whether a gradient was infinite, and the clipping reads its norm; the CPU waits,
and what follows cannot be launched ahead.
In the trace: aten::item (under Optimizer.step and after the norm) with synchronizes, the GPU idle until the next launches.
Fix: bfloat16 has the range of float32 and needs no scaler; clip_grad_norm_ without a look at its value does not wait.
"""

import torch


def parts(s):
    width = s.pick(1024, 16)
    layers = [layer for _ in range(s.pick(8, 2)) for layer in (torch.nn.Linear(width, width), torch.nn.ReLU())]
    model = torch.nn.Sequential(*layers).to(s.device)
    return model, torch.optim.SGD(model.parameters(), lr=1e-3), s.randn(s.pick(16384, 4), width, dtype=torch.float32)


def bad(s):
    model, optimizer, x = parts(s)
    scaler = torch.amp.GradScaler(s.device)

    def step():
        optimizer.zero_grad()
        with torch.autocast(s.device, torch.float16):
            loss = model(x).square().mean()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        if torch.isfinite(norm):
            scaler.step(optimizer)
        scaler.update()
        return loss

    return step


def good(s):
    model, optimizer, x = parts(s)

    def step():
        optimizer.zero_grad()
        with torch.autocast(s.device, torch.bfloat16):
            loss = model(x).square().mean()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss

    return step
