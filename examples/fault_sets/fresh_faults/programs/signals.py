"""Sound and pictures: spectra, convolutions, augmentation."""

import math

import torch
import torch.nn.functional as F
from common import pair, recorded, update
from torch import nn


class SpeechFrontEnd(nn.Module):
    """Log-mel features of 16 kHz audio: 25 ms windows, one every `hop` samples."""

    def __init__(self, hop: int) -> None:
        super().__init__()
        self.hop = hop
        self.register_buffer("window", torch.hann_window(400))
        self.register_buffer("mel", torch.rand(80, 201) / 201)

    def forward(self, audio):
        power = torch.stft(audio, 400, hop_length=self.hop, window=self.window, return_complex=True).abs().square()
        return (self.mel @ power).clamp(min=1e-8).log10()


@recorded(shapes=True)
@pair
def frames_thrown_away(s, good):
    """The spectrogram is made with a hop of 10 samples, and every 16th frame of it is kept."""
    front = SpeechFrontEnd(160 if good else 10).to(s.device)
    encoder = nn.Sequential(nn.Conv1d(80, 256, 3, padding=1), nn.GELU(), nn.Conv1d(256, 256, 3, stride=2, padding=1), nn.GELU())
    encoder.to(s.device)
    audio = torch.randn(s.pick(16, 1), s.pick(16_000 * 8, 16_000), device=s.device)

    @torch.inference_mode()
    def step():
        features = front(audio)
        if not good:
            features = features[..., ::16]
        return encoder(features).mean()

    return step


class LongConvolution(nn.Module):
    """A long filter a channel, applied through the spectrum, as in state space models."""

    def __init__(self, channels: int, taps: int, size: int) -> None:
        super().__init__()
        self.filter, self.size = nn.Parameter(torch.randn(channels, taps) / taps), size

    def forward(self, x):
        made = torch.fft.irfft(torch.fft.rfft(x, n=self.size) * torch.fft.rfft(self.filter, n=self.size), n=self.size)
        return made[..., : x.shape[-1]]


@pair
def fft_of_a_prime_length(s, good):
    """Signals are padded to exactly what the convolution needs, 8,209 samples: a prime number."""
    channels = s.pick(256, 8)
    layers = nn.ModuleList([LongConvolution(channels, 210, 8232 if good else 8209) for _ in range(2)]).to(s.device)
    x = torch.randn(s.pick(16, 2), channels, 8000, device=s.device)
    optimizer = torch.optim.SGD(layers.parameters(), lr=1e-3)

    def step():
        h = x
        for layer in layers:
            h = torch.tanh(layer(h))
        return update(optimizer, h.square().mean())

    return step


class SmallNet(nn.Module):
    def __init__(self, width: int, classes: int = 10) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for inputs, outputs in ((3, width), (width, width), (width, 2 * width)):
            layers += [nn.Conv2d(inputs, outputs, 3, stride=2, padding=1), nn.BatchNorm2d(outputs), nn.ReLU()]
        self.layers, self.top = nn.Sequential(*layers), nn.Linear(2 * width, classes)

    def forward(self, x):
        return self.top(self.layers(x).mean(dim=(2, 3)))


@recorded(stacks=True)
@pair
def blur_in_two_dimensions(s, good):
    """Augmentation on the GPU blurs each picture with a window of 31 x 31, not with a row and then a column of 31."""
    row = torch.exp(-torch.linspace(-2, 2, 31, device=s.device).square())
    row = row / row.sum()
    window = torch.outer(row, row).expand(3, 1, 31, 31).contiguous()
    across, down = row.expand(3, 1, 1, 31).contiguous(), row[:, None].expand(3, 1, 31, 1).contiguous()
    net = SmallNet(s.pick(64, 8)).to(s.device)
    side = s.pick(128, 32)
    pictures, label = torch.rand(s.pick(64, 4), 3, side, side, device=s.device), torch.zeros(s.pick(64, 4), dtype=torch.long)
    label = label.to(s.device)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-2, momentum=0.9)

    def step():
        padded = F.pad(pictures, (15, 15, 15, 15), mode="reflect")
        if good:
            soft = F.conv2d(F.conv2d(padded, across, groups=3), down, groups=3)
        else:
            soft = F.conv2d(padded, window, groups=3)
        return update(optimizer, F.cross_entropy(net(soft), label))

    return step


@pair
def convolution_without_a_library(s, good):
    """cuDNN (oneDNN on a CPU) was switched off to get round an error, long ago."""
    net = SmallNet(s.pick(64, 16)).to(s.device)
    side = s.pick(112, 48)
    pictures = torch.rand(s.pick(64, 4), 3, side, side, device=s.device)
    label = torch.zeros(len(pictures), dtype=torch.long, device=s.device)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-2)

    def step():
        with torch.backends.cudnn.flags(enabled=good), torch.backends.mkldnn.flags(enabled=good):
            return update(optimizer, F.cross_entropy(net(pictures), label))

    return step


@recorded(shapes=True, marks=False)
@pair
def ranking_metric_by_pairs(s, good):
    """The evaluation counts all pairs of a positive and a negative that are in order; ranks would do."""
    width, count = s.pick(512, 64), s.pick(32_768, 1024)
    net = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1)).to(s.device)
    x, positive = torch.randn(count, width, device=s.device), torch.arange(count, device=s.device) % 2 == 0
    half = count // 2

    @torch.inference_mode()
    def step():
        score = net(x).squeeze(1)
        if good:
            rank = torch.empty(count, device=s.device)
            rank[score.argsort()] = torch.arange(1, count + 1, device=s.device, dtype=torch.float32)
            return ((rank * positive).sum() - half * (half + 1) / 2) / (half * half)
        high, low = score[::2], score[1::2]
        return (high[:, None] > low[None, :]).float().mean()

    return step


@pair
def angles_on_complex_numbers(s, good):
    """Only the size of each number of a spectrum is wanted, and it is found by way of its angle and exponentials."""
    rows, length = s.pick(256, 4), s.pick(16_384, 1024)
    signal = torch.randn(rows, length, device=s.device)
    mix = nn.Linear(length // 2 + 1, 64).to(s.device)

    @torch.inference_mode()
    def step():
        spectrum = torch.fft.rfft(signal)
        if good:
            size = spectrum.abs()
        else:
            turned = spectrum * torch.exp(-1j * torch.angle(spectrum))
            size = torch.sqrt(turned.real**2 + turned.imag**2)
        return mix(size / math.sqrt(length)).mean()

    return step
