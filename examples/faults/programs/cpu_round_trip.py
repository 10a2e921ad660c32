"""Between two layers the activations go to the CPU for a NumPy function, and come back.

Wrong: .cpu(), a few operators there, .to("cuda"): two copies, a wait, and an idle GPU for what it would do in microseconds.
In the trace: `Memcpy DtoH`, CPU operators without kernels, then `Memcpy HtoD` of as many bytes.
Fix: do it on the GPU. (Pinned memory would make the copies faster, and they would still not be needed.)
"""

import torch


def parts(s):
    width, rows = s.pick(1024, 8), s.pick(2048, 8)
    return [s.randn(width, width) / width**0.5 for _ in range(s.pick(6, 2))], s.randn(rows, width)


def bad(s):
    weights, x = parts(s)

    @torch.inference_mode()
    def step():
        y = x
        for weight in weights:
            y = (y @ weight).cpu().clamp(-2, 2).to(s.device)
        return y

    return step


def good(s):
    weights, x = parts(s)

    @torch.inference_mode()
    def step():
        y = x
        for weight in weights:
            y = (y @ weight).clamp(-2, 2)
        return y

    return step
