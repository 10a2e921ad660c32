"""Every layer is timed with a synchronize before and after it.

Wrong: torch.cuda.synchronize() lets the queue run empty each time, so that each launch is waited for.
In the trace: cudaDeviceSynchronize between the layers, and a gap on the GPU after each.
Fix: record CUDA events around the layers and read them once, a step later, when they are long done.
"""

import time

import torch


def parts(s):
    width = s.pick(1024, 16)
    layers = [torch.nn.Linear(width, width).to(s.device, torch.bfloat16) for _ in range(s.pick(16, 3))]
    return layers, s.randn(s.pick(4096, 4), width)


def bad(s):
    layers, x = parts(s)

    @torch.inference_mode()
    def step():
        y, took = x, []
        for layer in layers:
            s.finish()
            begin = time.perf_counter()
            y = layer(y)
            s.finish()
            took.append(time.perf_counter() - begin)
        return y

    return step


def good(s):
    layers, x = parts(s)
    events = [torch.cuda.Event(enable_timing=True) for _ in layers] if s.device == "cuda" else []

    @torch.inference_mode()
    def step():
        y = x
        for number, layer in enumerate(layers):
            y = layer(y)
            if events:
                events[number].record()
        return y

    return step
