"""A print that was forgotten in a compiled model.

Wrong: torch.compile cannot put a print into a graph: it ends the graph there, and Python runs between the pieces.
In the trace: many `Torch-Compiled Region` ranges in a step in place of one, with holes on the GPU between them.
Fix: no prints (or torch._dynamo.config.reorderable_logging_functions); torch.compile(fullgraph=True) says where it breaks.
"""

import torch


def program(s, talk):
    width = s.pick(512, 16)
    layers = torch.nn.ModuleList(torch.nn.Linear(width, width) for _ in range(s.pick(10, 3))).to(s.device, torch.bfloat16)
    x = s.randn(s.pick(512, 4), width)

    def forward(x):
        for number, layer in enumerate(layers):
            x = torch.nn.functional.gelu(layer(x)) * 2 + x
            if talk:
                print("layer", number, tuple(x.shape))
        return x

    compiled = s.compile(forward)

    @torch.no_grad()
    def step():
        return compiled(x)

    return step


def bad(s):
    return program(s, True)


def good(s):
    return program(s, False)
