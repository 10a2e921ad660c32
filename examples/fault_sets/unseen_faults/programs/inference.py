"""Models that are served, and one that is compiled."""

import torch
import torch.nn.functional as F
from common import half, pair, recorded, update
from torch import nn
from torch.nn.utils.fusion import fuse_conv_bn_eval
from torch.profiler import record_function


class UnfoldConvolution(nn.Module):
    """A convolution as it is derived in lectures: patches, then a product."""

    def __init__(self, width: int, by_hand: bool) -> None:
        super().__init__()
        self.weight, self.by_hand = nn.Parameter(torch.randn(width, width, 3, 3) / (9 * width) ** 0.5), by_hand

    def forward(self, x):
        if not self.by_hand:
            return F.conv2d(x, self.weight, padding=1)
        patches = F.unfold(x, 3, padding=1)
        return (self.weight.flatten(1) @ patches).view_as(x)


@recorded(memory=True)
@pair
def convolution_by_unfold(s, good):
    """Four convolutions by unfold and matmul, trained."""
    width, side = s.pick(64, 8), s.pick(64, 16)
    model = nn.Sequential(*[part for _ in range(4) for part in (UnfoldConvolution(width, not good), nn.ReLU())]).to(s.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    x = torch.randn(s.pick(32, 4), width, side, side, device=s.device)

    def step():
        return update(optimizer, model(x).square().mean())

    return step


@pair
def lstm_weights_scattered(s, good):
    """The weights of an LSTM were replaced one by one (an average of models), and no longer lie in one block."""
    width, rows = s.pick(1024, 64), s.pick(32, 4)
    lstm = nn.LSTM(width, width, num_layers=4, batch_first=True).to(s.device)
    for weight in lstm.parameters():
        weight.data = weight.data.clone()
    if good:
        lstm.flatten_parameters()
    x = torch.randn(rows, 16, width, device=s.device)

    @torch.no_grad()
    def step():
        return lstm(x)[0].mean()

    return step


@pair
def batchnorm_left_at_inference(s, good):
    """16 convolutions with batch norms that are not folded into them."""
    width, side, kind = s.pick(128, 16), s.pick(56, 16), half(s.device)
    blocks = []
    for _ in range(16):
        conv, norm = nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width)
        blocks += [fuse_conv_bn_eval(conv.eval(), norm.eval())] if good else [conv, norm]
        blocks.append(nn.ReLU(inplace=True))
    model = nn.Sequential(*blocks).eval().to(s.device, kind, memory_format=torch.channels_last)
    x = torch.randn(s.pick(64, 4), width, side, side, device=s.device, dtype=kind).to(memory_format=torch.channels_last)

    @torch.inference_mode()
    def step():
        return model(x).float().mean()

    return step


@recorded(shapes=True, marks=False, stacks=True)
@pair
def weights_offloaded_each_round(s, good):
    """A sampler that was set to save memory: each block comes to the GPU for its turn and goes back."""
    width = s.pick(2048, 64)
    blocks = nn.ModuleList([nn.Sequential(nn.Linear(width, width), nn.SiLU()) for _ in range(4)]).to("cpu", half(s.device))
    if good:
        blocks.to(s.device)
    noise = torch.randn(s.pick(1024, 32), width, device=s.device, dtype=half(s.device))

    @torch.no_grad()
    def step():
        x = noise
        for _ in range(3):
            with record_function("denoise"):
                for block in blocks:
                    x = x + (block if good else block.to(s.device))(x)
                    if not good:
                        block.to("cpu")
        return x.float().mean()

    return step


def gated(x, gate, weight):
    h = x * torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + 1e-6) * weight
    return F.gelu(h) * torch.sigmoid(gate) + 0.1 * torch.tanh(x) * x


@pair
def debug_backend_left(s, good):
    """torch.compile with the backend that was set to find a bug."""
    block = torch.compile(gated, backend="inductor" if good else "aot_eager")
    rows, width = s.pick(16384, 256), s.pick(2048, 256)
    x, gate = (torch.randn(rows, width, device=s.device, dtype=half(s.device)) for _ in range(2))
    weight = torch.ones(width, device=s.device, dtype=half(s.device), requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=1e-3)

    def step():
        h = block(x, gate, weight)
        return update(optimizer, block(h, gate, weight).float().square().mean())

    return step


class Layer(nn.Module):
    """A layer of a decoder, for one new token each: attention without a cache, a gated MLP."""

    def __init__(self, width: int, apart: bool) -> None:
        super().__init__()
        self.apart, self.norms = apart, nn.ModuleList([nn.LayerNorm(width) for _ in range(2)])
        self.qkv, self.gate_up = nn.Linear(width, 3 * width), nn.Linear(width, 4 * width)
        self.q, self.k, self.v = (nn.Linear(width, width) for _ in range(3))
        self.gate, self.up = (nn.Linear(width, 2 * width) for _ in range(2))
        self.out, self.down = nn.Linear(width, width), nn.Linear(2 * width, width)

    def forward(self, x):
        h = self.norms[0](x)
        q, k, v = (self.q(h), self.k(h), self.v(h)) if self.apart else self.qkv(h).chunk(3, dim=-1)
        x = x + self.out(F.scaled_dot_product_attention(q[:, None], k[:, None], v[:, None])[:, 0])
        h = self.norms[1](x)
        gate, up = (self.gate(h), self.up(h)) if self.apart else self.gate_up(h).chunk(2, dim=-1)
        return x + self.down(F.silu(gate) * up)


@pair
def query_key_value_apart(s, good):
    """q, k, v, gate and up are layers of their own, for a batch that leaves the GPU waiting for launches."""
    width = s.pick(128, 64)
    model = nn.Sequential(*[Layer(width, not good) for _ in range(12)]).to(s.device, half(s.device))
    x = torch.randn(8, 16, width, device=s.device, dtype=half(s.device))

    @torch.inference_mode()
    def step():
        return model(x).float().mean()

    return step
