"""Pictures and sound: heat maps, coordinates as channels, crops, echoes."""

import random

import torch
import torch.nn.functional as F
from common import half, pair, recorded, tower, update
from torch import nn
from torch.profiler import record_function


@recorded(stacks=True)
@pair
def heatmaps_drawn_over_whole_pictures(s, good):
    """A detector of centres. The wanted heat map has a small bell of at most 31 x 31 cells at each object."""
    rows, objects, side, channels, reach = s.pick(32, 2), s.pick(128, 4), s.pick(192, 40), s.pick(64, 4), 15
    centre = torch.randint(0, side, (rows, objects, 2), device=s.device)
    spread = torch.rand(rows, objects, device=s.device) * 1.5 + 1
    pictures = torch.randn(rows, 3, side, side, device=s.device, dtype=half(s.device)).to(memory_format=torch.channels_last)
    model = nn.Sequential(nn.Conv2d(3, channels, 3, padding=1), nn.ReLU(), nn.Conv2d(channels, channels, 3, padding=1), nn.ReLU(),
                          nn.Conv2d(channels, 1, 1))
    model.to(s.device, half(s.device), memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    cells = torch.arange(side, device=s.device)
    near = torch.arange(-reach, reach + 1, device=s.device)

    def draw_everywhere():
        down = (cells - centre[..., :1]).square()[..., :, None]
        across = (cells - centre[..., 1:]).square()[..., None, :]
        bells = torch.exp(-(down + across) / (2 * spread.square())[..., None, None])
        return bells.amax(dim=1)

    def draw_nearby():
        bell = torch.exp(-near.square() / (2 * spread.square())[..., None])
        bells = bell[..., :, None] * bell[..., None, :]
        wide = side + 2 * reach
        down, across = centre[..., :1] + near + reach, centre[..., 1:] + near + reach
        place = down[..., :, None] * wide + across[..., None, :]
        heat = torch.zeros(rows, wide * wide, device=s.device)
        heat.scatter_reduce_(1, place.flatten(1), bells.flatten(1), "amax")
        return heat.view(rows, wide, wide)[:, reach:-reach, reach:-reach]

    def step():
        with record_function("targets"):
            heat = draw_nearby() if good else draw_everywhere()
        with record_function("train"):
            guess = model(pictures).float().squeeze(1)
            return update(optimizer, F.mse_loss(guess.sigmoid(), heat))

    return step


class CoordConv(nn.Module):
    """A convolution that also sees where it is: three channels hold the row, the column and the distance from the middle."""

    def __init__(self, rows, channels, side):
        super().__init__()
        self.conv = nn.Conv2d(channels + 3, channels, 3, padding=1)
        along = torch.linspace(-1, 1, side)
        down, across = along[:, None].expand(side, side), along[None, :].expand(side, side)
        where = torch.stack([down, across, (down.square() + across.square()).sqrt()])
        self.register_buffer("where", where.repeat(rows, 1, 1, 1))

    def forward(self, x):
        return self.conv(torch.cat([x, self.where], dim=1))


class CoordConvFolded(nn.Module):
    """The same for a network that learns no more: what the coordinates add is a constant picture."""

    def __init__(self, other):
        super().__init__()
        weight = other.conv.weight
        channels = weight.shape[1] - 3
        self.weight = nn.Parameter(weight[:, :channels].contiguous(memory_format=torch.channels_last))
        added = F.conv2d(other.where[:1], weight[:, channels:], other.conv.bias, padding=1)
        self.register_buffer("added", added.contiguous(memory_format=torch.channels_last))

    def forward(self, x):
        return F.conv2d(x, self.weight, padding=1).add_(self.added)


@recorded(stacks=True)
@pair
def coordinates_joined_in_each_layer(s, good):
    """Six convolutions that know where they are, in a server that finds key points."""
    rows, channels, side = s.pick(16, 2), s.pick(64, 8), s.pick(256, 16)
    x = torch.randn(rows, channels, side, side, device=s.device, dtype=half(s.device)).to(memory_format=torch.channels_last)
    layers = [CoordConv(rows, channels, side).to(s.device, half(s.device), memory_format=torch.channels_last) for _ in range(6)]
    with torch.no_grad():
        layers = [CoordConvFolded(layer) for layer in layers] if good else layers
    model = nn.Sequential(*[part for layer in layers for part in (layer, nn.ReLU(inplace=True))]).eval()

    @torch.inference_mode()
    def step():
        return model(x).float().mean(dim=(2, 3))

    return step


@recorded(stacks=True)
@pair
def crop_of_pinned_memory_sent(s, good):
    """Frames lie in pinned memory. Each batch is cut at another place, and a network of patches reads it."""
    rows, side, cut, patch = s.pick(96, 2), s.pick(448, 40), s.pick(384, 32), s.pick(16, 8)
    frames = s.pinned(torch.randint(0, 255, (rows, 3, side, side), dtype=torch.uint8))
    width = s.pick(512, 16)
    model = nn.Sequential(nn.Conv2d(3, width, patch, stride=patch), nn.Flatten(2), nn.Linear((cut // patch) ** 2, 256), nn.ReLU(),
                          nn.Linear(256, 10)).to(s.device, half(s.device)).eval()
    dice = random.Random(0)

    @torch.inference_mode()
    def step():
        top, left = dice.randrange(side - cut), dice.randrange(side - cut)
        if good:
            x = frames.to(s.device, non_blocking=True)[:, :, top:top + cut, left:left + cut]
        else:
            x = frames[:, :, top:top + cut, left:left + cut].to(s.device, non_blocking=True)
        return float(model(x.to(half(s.device)) / 255).float().mean())

    return step


def smooth_size(least):
    """The least number without prime factors above 5 that is not below `least`."""
    while True:
        rest = least
        for prime in (2, 3, 5):
            while rest % prime == 0:
                rest //= prime
        if rest == 1:
            return least
        least += 1


@recorded(stacks=True)
@pair
def transform_padded_too_far(s, good):
    """Echoes of a room of 0.1 s are added to clips of three seconds, and a network reads pieces of them."""
    clips, length, taps, piece = s.pick(128, 2), s.pick(132_300, 1000), s.pick(4096, 20), s.pick(300, 50)
    clean = torch.randn(clips, length, device=s.device)
    room = torch.randn(taps, device=s.device) * torch.linspace(0, -6, taps, device=s.device).exp()
    # against wrap-around: at least length + taps - 1
    size = smooth_size(length + taps - 1) if good else 1 << (2 * length).bit_length()
    room = torch.fft.rfft(room, n=size)
    model = tower(piece, s.pick(512, 16), 2, 10).to(s.device, half(s.device)).eval()

    @torch.inference_mode()
    def step():
        with record_function("reverb"):
            spectrum = torch.fft.rfft(clean, n=size)
            wet = torch.fft.irfft(spectrum * room, n=size)[:, :length]
        with record_function("classify"):
            pieces = wet.reshape(-1, piece)
            return model((pieces / 10).to(half(s.device))).float().mean(dim=0)

    return step
