"""Models that answer requests: settings, caches, CUDA graphs, few bits, compiled parts."""

import copy
import dataclasses

import torch
import torch.nn.functional as F
from common import captured, half, pair, recorded
from torch import nn
from torch.profiler import record_function


@dataclasses.dataclass
class Settings:
    """How the tokens of a request are chosen."""

    temperature: float = 1.0
    stop: list = dataclasses.field(default_factory=lambda: [f"<stop{number}>" for number in range(8)])
    bias: dict = dataclasses.field(default_factory=lambda: {number: 0.5 for number in range(24)})
    allowed: list = dataclasses.field(default_factory=lambda: list(range(32)))


@recorded(stacks=True, active=3)
@pair
def sampling_settings_deep_copied(s, good):
    """48 requests, whose temperatures fall with each token. The settings of a request themselves must not change."""
    requests, width, words = s.pick(48, 3), s.pick(2048, 16), s.pick(32_000, 50)
    with torch.device(s.device):
        model = nn.Sequential(*[nn.Linear(width, width) for _ in range(8)], nn.Linear(width, words)).to(half(s.device))
    x = torch.randn(requests, width, device=s.device, dtype=half(s.device))
    sent = s.pinned(torch.empty(requests))
    of_requests = [Settings(temperature=1.0 + number / 100) for number in range(requests)]

    def cooled(settings):
        if good:
            return dataclasses.replace(settings, temperature=settings.temperature * 0.9)
        settings = copy.deepcopy(settings)
        settings.temperature *= 0.9
        return settings

    @torch.inference_mode()
    def step():
        scores = model(x).float()
        with record_function("settings"):
            now = [cooled(settings) for settings in of_requests]
        sent.copy_(torch.tensor([settings.temperature for settings in now]))
        temperatures = sent.to(s.device, non_blocking=True)
        tokens = (scores / temperatures[:, None]).argmax(dim=1)
        return tokens.tolist()

    return step


@recorded(stacks=True)
@pair
def cache_swapped_out_whole(s, good):
    """Four of 32 requests leave the GPU and come back, the others go on."""
    requests, leaving, length, heads, size = s.pick(32, 4), s.pick(4, 1), s.pick(1024, 16), s.pick(8, 2), s.pick(128, 8)
    cache = torch.randn(requests, 4, length, heads, size, device=s.device, dtype=half(s.device))  # keys and values of two layers
    swapped = cache[:leaving] if good else cache
    outside = s.pinned(torch.empty(swapped.shape, dtype=cache.dtype))
    queries = torch.randn(2, requests - leaving, heads, 1, size, device=s.device, dtype=half(s.device))

    @torch.inference_mode()
    def step():
        with record_function("swap_out"):
            outside.copy_(swapped, non_blocking=True)
        parts = cache[leaving:].transpose(2, 3)
        mixed = [F.scaled_dot_product_attention(queries[layer], parts[:, 2 * layer], parts[:, 2 * layer + 1]) for layer in (0, 1)]
        with record_function("swap_in"):
            swapped.copy_(outside, non_blocking=True)
        return torch.stack(mixed).float().mean(dim=-1)

    return step


class Decoder(nn.Module):
    """Layers with a static cache. Each call reads one token a row and writes its keys and values at a fixed place."""

    def __init__(self, rows, length, layers, heads, size, device):
        super().__init__()
        self.heads, self.size, width = heads, size, heads * size
        with torch.device(device):
            self.projections = nn.ModuleList([nn.Linear(width, 3 * width, bias=False) for _ in range(layers)]).to(half(device))
            self.caches = [torch.randn(2, rows, heads, length, size, dtype=half(device)) for _ in range(layers)]

    def forward(self, x):
        for projection, cache in zip(self.projections, self.caches):
            q, k, v = projection(x).view(len(x), 3, self.heads, 1, self.size).unbind(dim=1)
            cache[0, :, :, -1:], cache[1, :, :, -1:] = k, v
            x = x + F.scaled_dot_product_attention(q, cache[0], cache[1]).flatten(1)
        return x, *self.caches


@recorded(stacks=True)
@pair
def every_output_of_graph_cloned(s, good):
    """A captured decoder. Its scores must be copied before the next replay; its caches are outputs, too."""
    rows, heads, size = s.pick(32, 2), s.pick(8, 2), s.pick(128, 8)
    with torch.inference_mode():
        decoder = Decoder(rows, s.pick(2048, 16), 8, heads, size, s.device).eval()
        x = torch.randn(rows, heads * size, device=s.device, dtype=half(s.device))
        replay = captured(s, decoder, x)

    @torch.inference_mode()
    def step():
        outputs = replay()
        if good:
            return outputs[0].clone()
        return [output.clone() for output in outputs][0]

    return step


@recorded(stacks=True)
@pair
def graph_of_256_for_20(s, good):
    """A server has 20 requests. Each batch is padded to the size of a captured graph."""
    requests, heads, size = s.pick(20, 2), s.pick(8, 2), s.pick(128, 8)
    sizes = [s.pick(32, 4), s.pick(256, 16)] if good else [s.pick(256, 16)]
    rows = min(rows for rows in sizes if rows >= requests)
    with torch.inference_mode():
        decoder = Decoder(rows, s.pick(1024, 16), 4, heads, size, s.device).eval()
        padded = torch.zeros(rows, heads * size, device=s.device, dtype=half(s.device))
        replay = captured(s, decoder, padded)
    x = torch.randn(requests, heads * size, device=s.device, dtype=half(s.device))

    @torch.inference_mode()
    def step():
        padded[:requests].copy_(x)
        return replay()[0][:requests].float().square().mean().sqrt()

    return step


class FourBits(nn.Module):
    """A frozen layer whose weights have four bits, eight of them in each number."""

    def __init__(self, width, good):
        super().__init__()
        self.good = good
        self.register_buffer("packed", torch.randint(-2 ** 31, 2 ** 31 - 1, (width, width // 8), dtype=torch.int32))
        self.register_buffer("shifts", torch.tensor([0, 4], dtype=torch.uint8))

    def unpacked(self, dtype):
        if self.good:
            return (((self.packed.view(torch.uint8).unsqueeze(-1) >> self.shifts) & 15).flatten(1)).to(dtype) - 8
        weight = torch.empty(len(self.packed), len(self.packed), dtype=dtype, device=self.packed.device)
        for at in range(8):
            weight[:, at::8] = ((self.packed >> 4 * at) & 15) - 8
        return weight

    def forward(self, x):
        return F.linear(x, self.unpacked(x.dtype)) * 1e-3


@recorded(stacks=True)
@pair
def nibbles_unpacked_by_slices(s, good):
    """A model of four bits reads 16 rows. Its weights are unpacked layer by layer."""
    width, rows = s.pick(8192, 64), s.pick(16, 4)
    with torch.device(s.device):
        layers = nn.Sequential(*[FourBits(width, good) for _ in range(4)])
    x = torch.randn(rows, width, device=s.device, dtype=half(s.device))

    @torch.inference_mode()
    def step():
        h = x
        for layer in layers:
            h = h + torch.tanh(layer(h))
        return h.float().mean(dim=1)

    return step


def soft_norm(x):
    """Caps what is large, then norms."""
    capped = 30 * torch.tanh(x / 30)
    return capped * torch.rsqrt(capped.square().mean(dim=-1, keepdim=True) + 1e-6)


@recorded(stacks=True)
@pair
def left_out_of_compilation(s, good):
    """A compiled block. Somebody once looked for a bug in the norm and took it out of the compiled code."""
    torch._dynamo.reset()
    width, rows = s.pick(4096, 32), s.pick(8192, 16)
    norm = soft_norm if good else torch.compiler.disable(soft_norm)
    weight, bias = torch.randn(2, width, device=s.device, dtype=half(s.device))

    def block(x):
        h = norm(x)
        return x + F.silu(h * weight + bias) * h

    compiled = s.compile(block)
    x = torch.randn(rows, width, device=s.device, dtype=half(s.device))

    @torch.inference_mode()
    def step():
        h = x
        for _ in range(4):
            with record_function("block"):
                h = compiled(h)
        return h.float().mean(dim=1)

    return step
