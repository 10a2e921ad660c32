"""A CUDA graph for one size of batch, and batches of two sizes.

Wrong: each third batch is smaller; nobody captured a graph of that size, so its kernels are launched one by one.
In the trace: steps with one cudaGraphLaunch, and much longer steps with a hundred launches.
Fix: capture a graph of that size, too (or pad the batch to the captured one).
"""

import torch


def program(s, captured):
    width = s.pick(512, 16)
    layers = [part for _ in range(s.pick(48, 3)) for part in (torch.nn.Linear(width, width), torch.nn.ReLU())]
    model = torch.nn.Sequential(*layers).to(s.device, torch.bfloat16)
    inputs = {size: s.randn(size, width) for size in (s.pick(64, 4), s.pick(32, 2))}
    large, small = inputs
    graphs = {size: capture(model, inputs[size]) for size in (large, small)[:captured]} if s.device == "cuda" else {}
    steps = [0]

    @torch.inference_mode()
    def step():
        steps[0] += 1
        size = small if steps[0] % 3 == 0 else large
        if size not in graphs:
            return model(inputs[size])
        graph, y = graphs[size]
        graph.replay()
        return y

    return step


def capture(model, x):
    side, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    side.wait_stream(torch.cuda.current_stream())
    with torch.inference_mode():
        with torch.cuda.stream(side):
            for _ in range(3):
                model(x)
        torch.cuda.current_stream().wait_stream(side)
        with torch.cuda.graph(graph):
            y = model(x)
    return graph, y


def bad(s):
    return program(s, 1)


def good(s):
    return program(s, 2)
