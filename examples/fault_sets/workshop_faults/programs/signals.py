"""Pictures, sound, points and measurements over time."""

import torch
import torch.nn.functional as F
from common import half, pair, recorded, update
from torch import nn
from torch.profiler import record_function


def overlaps(boxes, targets):
    """The intersection over union of all boxes with all targets, for each picture of a batch."""
    least = torch.maximum(boxes[..., :, None, :2], targets[..., None, :, :2])
    most = torch.minimum(boxes[..., :, None, 2:], targets[..., None, :, 2:])
    shared = (most - least).clamp(min=0).prod(dim=-1)
    areas = [(part[..., 2:] - part[..., :2]).prod(dim=-1) for part in (boxes, targets)]
    return shared / (areas[0][..., :, None] + areas[1][..., None, :] - shared)


@recorded(stacks=True)
@pair
def overlaps_between_pictures(s, good):
    """Proposals of 32 pictures are matched with the targets of their own picture, then classified."""
    pictures, proposals, targets, width = s.pick(32, 2), s.pick(1000, 10), s.pick(50, 3), s.pick(1024, 16)
    head = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 81)).to(s.device, half(s.device))
    features = torch.randn(pictures * proposals, width, device=s.device, dtype=half(s.device))

    def drawn(count):
        corner = torch.rand(pictures, count, 2, device=s.device) * 500
        return torch.cat([corner, corner + 10 + 100 * torch.rand_like(corner)], dim=-1)

    boxes, truth = drawn(proposals), drawn(targets)
    of_box = torch.arange(pictures, device=s.device).repeat_interleave(proposals)
    of_target = torch.arange(pictures, device=s.device).repeat_interleave(targets)

    @torch.inference_mode()
    def step():
        with record_function("match"):
            if good:
                best = overlaps(boxes, truth).amax(dim=-1).flatten()
            else:
                shared = overlaps(boxes.flatten(0, 1), truth.flatten(0, 1))
                best = (shared * (of_box[:, None] == of_target)).amax(dim=-1)
        return (head(features).float().log_softmax(dim=-1).amax(dim=-1) * best).view(pictures, -1).mean(dim=1)

    return step


@recorded(stacks=True)
@pair
def previews_decoded_for_nobody(s, good):
    """Four steps of denoising. A preview of each replaces the one before, and only the last is looked at."""
    rows, channels, size = s.pick(4, 1), s.pick(256, 8), s.pick(64, 8)
    enter, leave = nn.Conv2d(4, channels, 1), nn.Conv2d(channels, 4, 1)
    denoiser = nn.Sequential(enter, *[part for _ in range(4) for part in (nn.Conv2d(channels, channels, 3, padding=1), nn.SiLU())], leave)
    widths = [4, channels // 2, channels // 4, channels // 4]
    decoder = nn.Sequential(*[part for before, after in zip(widths, widths[1:])
                              for part in (nn.Upsample(scale_factor=2), nn.Conv2d(before, after, 3, padding=1), nn.SiLU())],
                            nn.Conv2d(widths[-1], 3, 3, padding=1))
    nn.ModuleList([denoiser, decoder]).to(s.device, half(s.device), memory_format=torch.channels_last)
    noise = torch.randn(rows, 4, size, size, device=s.device, dtype=half(s.device)).to(memory_format=torch.channels_last)
    shown = {}

    def show(latents):
        with record_function("preview"):
            shown["picture"] = decoder(latents).clamp(-1, 1)

    @torch.inference_mode()
    def step():
        latents = noise
        for number in range(4):
            latents = latents - 0.1 * denoiser(latents)
            if not good or number == 3:
                show(latents)
        return shown["picture"].float().mean(dim=(1, 2, 3))

    return step


@recorded(stacks=True)
@pair
def spectrogram_made_for_each_loss(s, good):
    """A generator of sound is trained by three losses, all of them between spectrograms."""
    rows, length, bins = s.pick(64, 2), s.pick(131_072, 2048), s.pick(1024, 64)
    generator = nn.Conv1d(1, 1, 9, padding=4).to(s.device)
    optimizer = torch.optim.SGD(generator.parameters(), lr=1e-4)
    sound, wanted = torch.randn(2, rows, 1, length, device=s.device)
    window = torch.hann_window(bins, device=s.device)

    def spectrogram(wave):
        return torch.stft(wave.squeeze(1), bins, bins // 4, window=window, return_complex=True).abs()

    def distance(made, real):
        return (made - real).abs().mean()

    def distance_of_logs(made, real):
        return (made.clamp(min=1e-4).log() - real.clamp(min=1e-4).log()).abs().mean()

    def convergence(made, real):
        return (made - real).norm() / real.norm()

    def step():
        made = generator(sound)
        losses = (distance, distance_of_logs, convergence)
        if good:
            spectra = spectrogram(made), spectrogram(wanted)
            loss = sum(loss(*spectra) for loss in losses)
        else:
            loss = sum(loss(spectrogram(made), spectrogram(wanted)) for loss in losses)
        return update(optimizer, loss)

    return step


@recorded(stacks=True)
@pair
def moving_average_by_unfold(s, good):
    """Measurements of 2048 sensors are compared with mean and deviation of the last 256."""
    sensors, times, window = s.pick(2048, 4), s.pick(4096, 64), s.pick(256, 8)
    series = torch.randn(sensors, times, device=s.device)

    def averaged(x):
        if good:
            sums = F.pad(x.double().cumsum(dim=1), (1, 0))
            return ((sums[:, window:] - sums[:, :-window]) / window).float()
        return x.unfold(1, window, 1).mean(dim=-1)

    @torch.inference_mode()
    def step():
        with record_function("moving"):
            mean, square = averaged(series), averaged(series.square())
        scores = (series[:, window - 1:] - mean) * (square - mean.square()).clamp(min=1e-6).rsqrt()
        return (scores.abs() > 3).float().mean(dim=1)

    return step


@recorded(stacks=True)
@pair
def voxel_keys_of_64_bits(s, good):
    """Eight million points, of which a voxel of 1024 in each direction may have many."""
    count, side = s.pick(8_000_000, 1000), s.pick(1024, 8)
    places = torch.randint(0, side, (3, count), device=s.device, dtype=torch.int32)

    @torch.inference_mode()
    def step():
        x, y, z = places if good else places.long()
        keys = (x * side + y) * side + z
        ordered, order = keys.sort()
        first = ordered[1:] != ordered[:-1]
        return first.sum() + 1, ordered[-1], ordered[0]

    return step
