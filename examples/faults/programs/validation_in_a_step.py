"""The validation set is run through the model in the middle of a step.

Wrong: in the ninth step sixty batches without gradients come after the usual work. A mean over the steps with it is true for
none of them.
In the trace: one ProfilerStep much longer than the others, full of the kernels of the forward pass.
Fix: validate before prof.step() begins a step that is to be measured; here before the loop.
"""

import torch


def program(s, in_step):
    width, rows = s.pick(4096, 16), s.pick(4096, 4)
    model = torch.nn.Sequential(torch.nn.Linear(width, width), torch.nn.ReLU(), torch.nn.Linear(width, width))
    model = model.to(s.device, torch.bfloat16)
    x, batches, steps = s.randn(rows, width), [s.randn(rows, width) for _ in range(4)], [0]

    @torch.no_grad()
    def validate():
        for number in range(s.pick(60, 4)):
            model(batches[number % 4])

    if not in_step:
        validate()

    def step():
        steps[0] += 1
        loss = model(x).square().mean()
        loss.backward()
        model.zero_grad()
        if steps[0] == in_step:
            validate()
        return loss.detach()

    return step


def bad(s):
    return program(s, 9)


def good(s):
    return program(s, None)
