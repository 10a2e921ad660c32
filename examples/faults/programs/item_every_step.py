"""Numbers for a log are read from the GPU in every step, one by one.

Wrong: `.item()` per parameter waits until the GPU has done everything launched before it. When it returns, the GPU has
nothing to do until Python has launched the next piece of work.
In the trace: aten::item with a device-to-host copy and cudaStreamSynchronize, and a gap on the GPU after each of them.
Fix: compute all norms on the GPU with one call and read them together, every hundredth step.
"""

import torch


def parts(s):
    width = s.pick(2048, 32)
    layers = [layer for _ in range(s.pick(6, 2)) for layer in (torch.nn.Linear(width, width), torch.nn.ReLU())]
    model = torch.nn.Sequential(*layers).to(s.device, torch.bfloat16)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    x, y = s.randn(s.pick(4096, 8), width), s.randn(s.pick(4096, 8), width)

    def train():
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        return loss

    return model, optimizer, train


def bad(s):
    model, optimizer, train = parts(s)

    def step():
        loss = train()
        log = {name: p.grad.norm().item() for name, p in model.named_parameters()}
        log["loss"] = loss.item()
        optimizer.step()
        return loss, torch.tensor(log["0.weight"])

    return step


def good(s):
    model, optimizer, train = parts(s)
    log, steps = [], [0]

    def step():
        loss = train()
        norms = torch.stack(torch._foreach_norm([p.grad for p in model.parameters()]))
        steps[0] += 1
        if steps[0] % 100 == 0:
            log.append([loss.item(), norms.tolist()])
        optimizer.step()
        return loss, norms[0]

    return step
