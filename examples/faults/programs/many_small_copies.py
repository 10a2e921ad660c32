"""A batch of samples goes to the GPU one by one.

Wrong: 128 copies of 1 KB each. Each costs a call and a copy's latency; the bytes cost nothing.
In the trace: 128 times aten::to with `Memcpy HtoD` of 1,024 bytes, with the GPU idle between them.
Fix: torch.stack on the CPU, then one copy. Pinned memory alone would change little.
"""

import torch


def parts(s):
    samples = [torch.randn(256) for _ in range(s.pick(128, 4))]
    width = s.pick(2048, 16)
    model = torch.nn.Sequential(torch.nn.Linear(256, width), torch.nn.ReLU(), torch.nn.Linear(width, 256)).to(s.device)
    return samples, model


def bad(s):
    samples, model = parts(s)

    @torch.inference_mode()
    def step():
        return model(torch.stack([sample.to(s.device) for sample in samples]))

    return step


def good(s):
    samples, model = parts(s)

    @torch.inference_mode()
    def step():
        return model(torch.stack(samples).to(s.device))

    return step
