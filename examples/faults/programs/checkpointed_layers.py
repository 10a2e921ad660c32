"""Every layer is checkpointed, though the activations would fit.

Wrong: torch.utils.checkpoint around each layer of a model whose activations are a small part of the GPU's memory.
In the trace: aten::linear and aten::gelu under autograd::engine::evaluate_function, as they stand in the forward pass.
Fix: keep the activations; checkpoint when memory is short, and then as few layers as it takes.
"""

import torch
from torch.utils.checkpoint import checkpoint


def program(s, checkpointed):
    width, rows = s.pick(2048, 16), s.pick(8192, 4)
    layers = [
        torch.nn.Sequential(torch.nn.Linear(width, 4 * width), torch.nn.GELU(), torch.nn.Linear(4 * width, width))
        for _ in range(s.pick(4, 2))
    ]
    model = torch.nn.ModuleList(layers).to(s.device, torch.bfloat16)
    x, target = s.randn(rows, width), s.randn(rows, width)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, foreach=True)

    def step():
        y = x
        for layer in model:
            y = y + (checkpoint(layer, y, use_reentrant=False) if checkpointed else layer(y))
        loss = torch.nn.functional.mse_loss(y, target)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    return step


def bad(s):
    return program(s, True)


def good(s):
    return program(s, False)
