"""A print that was forgotten in a compiled model.

Wrong: torch.compile cannot put a print into a graph: it ends the graph there, and Python runs between the pieces.
In the trace: many `Torch-Compiled Region` ranges in a step instead of one, with holes on the GPU between them.
Fix: no prints (or torch._dynamo.config.reorderable_logging_functions); torch.compile(fullgraph=True) says where it breaks.
"""

import torch


class Block(torch.nn.Module):
    def __init__(self, width, talk):
        super().__init__()
        self.linear, self.talk = torch.nn.Linear(width, width), talk

    def forward(self, x):
        y = torch.nn.functional.gelu(self.linear(x)) * 2
        if self.talk:
            print("block", tuple(y.shape))
        return y.tanh() + x


def program(s, talk):
    width = s.pick(512, 16)
    model = torch.nn.Sequential(*[Block(width, talk) for _ in range(s.pick(8, 3))]).to(s.device, torch.bfloat16)
    x = s.randn(s.pick(512, 4), width)
    compiled = s.compile(model)

    @torch.no_grad()
    def step():
        return compiled(x)

    return step


def bad(s):
    return program(s, True)


def good(s):
    return program(s, False)
