"""A short convolution along the sequence, channel by channel, as a convolution operator.

Wrong: one number of the result needs four products, too few for the tensor cores: ATen's kernel for it (cuDNN is off here,
as after a hunt for nondeterministic results) works number by number on the ordinary cores.
In the trace: aten::_conv_depthwise2d with `conv_depthwise2d_forward_kernel`, many times as long as its bytes need.
Fix: four shifted products, which torch.compile makes one kernel of; or a package with a kernel for it.
"""

import torch

TAPS = 4


def operands(s):
    channels = s.pick(2048, 8)
    x = s.randn(s.pick(8, 2), channels, s.pick(8192, 32))
    return x, s.randn(channels, 1, TAPS)


def bad(s):
    x, weight = operands(s)

    @torch.inference_mode()
    def step():
        with torch.backends.cudnn.flags(enabled=False):
            y = torch.nn.functional.conv1d(x, weight, padding=TAPS - 1, groups=x.shape[1])
        return y[..., : x.shape[2]]

    return step


def good(s):
    x, weight = operands(s)

    def shifted_products(x, weight):
        padded = torch.nn.functional.pad(x, (TAPS - 1, 0))
        return sum(weight[:, 0, at, None] * padded[..., at : at + x.shape[2]] for at in range(TAPS))

    compiled = s.compile(shifted_products)

    @torch.inference_mode()
    def step():
        return compiled(x, weight)

    return step
