"""A small model at a small batch: launching it takes longer than running it.

Wrong: nothing in the model; but the same 48 kernels are launched one by one in every step, which keeps the GPU waiting.
In the trace: kernels of a few microseconds with larger holes between them, the same sequence in each step.
Fix: capture the step once as a CUDA graph and replay it with one call (torch.compile(mode="reduce-overhead") does this too).
"""

import torch


def parts(s):
    width = s.pick(512, 16)
    layers = [part for _ in range(s.pick(24, 3)) for part in (torch.nn.Linear(width, width), torch.nn.ReLU())]
    return torch.nn.Sequential(*layers).to(s.device, torch.bfloat16), s.randn(s.pick(32, 2), width)


def bad(s):
    model, x = parts(s)

    @torch.inference_mode()
    def step():
        return model(x)

    return step


def good(s):
    if s.device != "cuda":
        return bad(s)
    model, x = parts(s)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side), torch.inference_mode():
        for _ in range(3):
            model(x)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.inference_mode(), torch.cuda.graph(graph):
        y = model(x)
    kept = (model, x)  # the graph reads their memory; nothing else would keep it

    def step():
        graph.replay()
        return y if kept else None

    return step
