"""Inputs come from NumPy in double precision, and the model follows them.

Wrong: a table made with NumPy is float64; `.double()` on the model made the error message go away.
In the trace: products whose inputs are `double`, and kernels with `f64` or `double` in their names.
Fix: float32 inputs (torch.as_tensor(table, dtype=torch.float32)) and a float32 model.
"""

import torch


def program(s, dtype):
    width, rows = s.pick(4096, 16), s.pick(4096, 8)
    torch.manual_seed(1)
    layers = [torch.nn.Linear(width, width) for _ in range(s.pick(4, 2))]
    model = torch.nn.Sequential(*[part for layer in layers for part in (layer, torch.nn.Tanh())]).to(s.device, dtype)
    x = s.randn(rows, width, dtype=torch.float64).to(dtype)

    @torch.inference_mode()
    def step():
        return model(x).float().mean(0)

    return step


def bad(s):
    return program(s, torch.float64)


def good(s):
    return program(s, torch.float32)
