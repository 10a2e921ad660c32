"""Convolutions on images stored channel by channel.

Wrong: the fast convolution kernels of tensor cores want the channels of a pixel side by side. With the default layout each
convolution is surrounded by kernels that reorder its input and its output.
In the trace: `nchwToNhwcKernel` and `nhwcToNchwKernel` around each aten::cudnn_convolution.
Fix: model.to(memory_format=torch.channels_last), and the same for the input.
"""

import torch


def program(s, memory_format):
    channels, side = s.pick(64, 4), s.pick(112, 8)
    parts = [part for _ in range(s.pick(6, 2)) for part in
             (torch.nn.Conv2d(channels, channels, 3, padding=1, bias=False), torch.nn.ReLU(inplace=True))]
    model = torch.nn.Sequential(*parts).to(s.device, torch.bfloat16, memory_format=memory_format)
    x = s.randn(s.pick(64, 2), channels, side, side).to(memory_format=memory_format)

    @torch.inference_mode()
    def step():
        return model(x)

    return step


def bad(s):
    return program(s, torch.contiguous_format)


def good(s):
    return program(s, torch.channels_last)
