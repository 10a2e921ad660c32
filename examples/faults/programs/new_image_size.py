"""cuDNN tries its algorithms out again for each new size of image.

Wrong: torch.backends.cudnn.benchmark = True with sizes that change, here from each eighth step on.
In the trace: in one step each aten::cudnn_convolution holds kernels of many kinds, and takes milliseconds.
Fix: one size (pad or crop), or benchmark = False. It pays when the sizes stay.
"""

import torch


def program(s, benchmark):
    torch.backends.cudnn.benchmark = benchmark
    width = s.pick(64, 4)
    layers = [torch.nn.Conv2d(3, width, 3, padding=1)]
    layers += [torch.nn.Conv2d(width, width, size, padding=size // 2) for size in (3, 5, 3, 1, 3, 5, 1)]
    model = torch.nn.Sequential(*layers).to(s.device, torch.bfloat16)
    steps, first = [0], s.pick(192, 8)

    @torch.inference_mode()
    def step():
        steps[0] += 1
        size = first + 8 * (steps[0] // 8)
        return model(torch.ones(s.pick(32, 1), 3, size, size, dtype=torch.bfloat16, device=s.device))[:, :, 0]

    return step


def bad(s):
    return program(s, True)


def good(s):
    return program(s, False)
