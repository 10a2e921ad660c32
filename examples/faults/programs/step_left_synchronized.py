"""torch.cuda.synchronize() is left after each layer, from an old measurement.

Wrong: after each wait the GPU has nothing to do until Python has launched the next layer.
In the trace: cudaDeviceSynchronize outside of any operator, many times a step, with a hole on the GPU after each.
Fix: remove it.
"""

import torch


def program(s, wait):
    width, rows = s.pick(1024, 8), s.pick(512, 8)
    layers = [torch.nn.Linear(width, width).to(s.device) for _ in range(s.pick(24, 2))]
    x = s.randn(rows, width, dtype=torch.float32)

    @torch.inference_mode()
    def step():
        y = x
        for layer in layers:
            y = torch.relu(layer(y))
            wait()
        return y

    return step


def bad(s):
    return program(s, torch.cuda.synchronize if s.device != "cpu" else lambda: None)


def good(s):
    return program(s, lambda: None)
