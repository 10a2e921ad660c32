"""Diffusion, augmentation, and a server of pictures."""

import hashlib

import numpy as np
import torch
import torch.nn.functional as F
from common import half, pair, recorded, tower, update
from torch import nn
from torch.profiler import record_function


class Denoiser(nn.Module):
    """Residual layers that also read the words of a prompt, of which there may be none."""

    def __init__(self, width, layers):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(width, width, bias=False) for _ in range(layers)])

    def forward(self, x, words, level):
        h = x + words * level
        for layer in self.layers:
            h = h + F.silu(layer(h)) / len(self.layers)
        return h


@recorded(stacks=True)
@pair
def guidance_at_scale_one(s, good):
    """Eight levels of noise. Guidance is used in the middle of them only; before and after, its scale is 1."""
    width, rows = s.pick(2048, 16), s.pick(4096, 8)
    scales = [1.0, 1.0, 1.0, 4.0, 4.0, 1.0, 1.0, 1.0]
    denoiser = Denoiser(width, 8).to(s.device, half(s.device)).eval()
    noise, words = torch.randn(2, rows, width, device=s.device, dtype=half(s.device))
    nothing = torch.zeros_like(words)

    @torch.inference_mode()
    def step():
        x = noise
        for number, scale in enumerate(scales):
            level = 1 - number / len(scales)
            with record_function("denoise"):
                if good and scale == 1:
                    x = 0.5 * x + 0.5 * denoiser(x, words, level)
                    continue
                both = denoiser(torch.cat([x, x]), torch.cat([nothing, words]), level)
                without, guided = both.chunk(2)
                x = 0.5 * x + 0.5 * (without + scale * (guided - without))
        return x.float().mean(dim=1)

    return step


@recorded(stacks=True)
@pair
def flips_by_grid_sample(s, good):
    """Half of the pictures are flipped, then a network of patches learns from them."""
    rows, side = s.pick(512, 4), s.pick(224, 16)
    pictures = torch.randint(0, 255, (rows, 3, side, side), device=s.device, dtype=torch.uint8)
    width, patch = s.pick(192, 8), s.pick(16, 4)
    model = nn.Sequential(nn.Conv2d(3, width, patch, stride=patch), nn.GELU(), nn.Flatten(2), nn.AdaptiveAvgPool1d(1), nn.Flatten(),
                          nn.Linear(width, 100)).to(s.device, half(s.device))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-5)
    flipped = torch.arange(rows, device=s.device) % 2 == 1

    def augmented(x):
        if good:
            return torch.where(flipped[:, None, None, None], x.flip(3), x)
        turned = torch.zeros(rows, 2, 3, device=x.device)
        turned[:, 0, 0] = 1 - 2 * flipped.float()
        turned[:, 1, 1] = 1
        grid = F.affine_grid(turned, list(x.shape), align_corners=False)
        return F.grid_sample(x, grid, align_corners=False)

    def step():
        with record_function("augment"):
            x = augmented(pictures.float() / 255)
        return update(optimizer, model(x.to(half(s.device))).float().square().mean())

    return step


@recorded(stacks=True)
@pair
def pixels_hashed_for_a_key(s, good):
    """A server keeps what it made of each picture. Each request names a picture and its version."""
    rows, side, channels = s.pick(8, 2), s.pick(512, 32), s.pick(128, 4)
    pictures = np.random.default_rng(0).integers(0, 255, (rows, 3, side, side), dtype=np.uint8)
    sent = s.pinned(torch.from_numpy(pictures))
    encoder = nn.Sequential(nn.Conv2d(3, channels, 4, stride=4), nn.ReLU(), nn.Conv2d(channels, channels, 3), nn.ReLU(),
                            nn.Conv2d(channels, channels, 3)).to(s.device, half(s.device)).eval()
    made, count = {}, [0]

    def key_of(number):
        name = f"{number}, version {count[0]}"
        if good:
            return hashlib.sha256(name.encode()).hexdigest()
        return hashlib.sha256(name.encode() + pictures[number].tobytes()).hexdigest()

    @torch.inference_mode()
    def step():
        count[0] += 1
        with record_function("look_up"):
            missing = [number for number in range(rows) if key_of(number) not in made]
        x = sent.to(s.device, non_blocking=True).to(half(s.device)) / 255
        result = encoder(x).float().mean(dim=(1, 2, 3))
        if len(missing) != rows:
            raise RuntimeError("each version is new")
        return result.tolist()

    return step


@recorded(stacks=True)
@pair
def batch_in_new_host_memory(s, good):
    """Frames of a video are put together to a batch in pinned memory and sent."""
    rows, side = s.pick(32, 4), s.pick(512, 16)
    frames = list(np.random.default_rng(0).integers(0, 255, (rows, side, side, 3), dtype=np.uint8))
    staging = s.pinned(torch.empty(rows, side, side, 3, dtype=torch.uint8))
    view = staging.numpy()
    model = tower(3 * 16, s.pick(512, 16), 2, 10).to(s.device, half(s.device)).eval()

    @torch.inference_mode()
    def step():
        with record_function("collate"):
            if good:
                np.stack(frames, out=view)
            else:
                staging.copy_(torch.from_numpy(np.stack(frames)))
        x = staging.to(s.device, non_blocking=True)
        patches = x.view(rows, side // 4, 4, side // 4, 12).transpose(2, 3).reshape(-1, 48).to(half(s.device)) / 255
        return float(model(patches).float().mean())

    return step
