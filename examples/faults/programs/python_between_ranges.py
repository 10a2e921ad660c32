"""Between backward() and the optimizer, plain Python walks over a list.

Wrong: a statistic of the data is worked out in Python in every step, while the GPU has nothing to do.
In the trace: a hole without events between the ranges `backward` and `Optimizer.step`, and the GPU idle in it.
Fix: take it out of the step: once, or in another thread or process.
"""

import torch
from torch.profiler import record_function


def program(s, count):
    width = s.pick(1024, 8)
    model = torch.nn.Sequential(*[torch.nn.Linear(width, width) for _ in range(s.pick(8, 2))]).to(s.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, foreach=True)
    x = s.randn(s.pick(2048, 8), width, dtype=torch.float32)
    numbers = list(range(count))

    def step():
        with record_function("forward"):
            loss = model(x).square().mean()
        with record_function("backward"):
            loss.backward()
        mean = sum(number * number for number in numbers)
        optimizer.step()
        optimizer.zero_grad()
        return loss + 0 * mean

    return step


def bad(s):
    return program(s, s.pick(60_000, 100))


def good(s):
    return program(s, 1)
