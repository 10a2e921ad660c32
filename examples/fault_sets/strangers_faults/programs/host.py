"""What the CPU and memory do around the model."""

import io

import numpy as np
import torch
from common import half, pair, recorded, tower, update
from torch import nn


@recorded(stacks=True)
@pair
def pinned_in_the_step(s, good):
    """Video clips lie in the CPU's memory. Each batch is pinned when its turn comes, to copy it without waiting."""
    count, frames, patches = s.pick(32, 2), s.pick(16, 2), s.pick(14, 2)
    clips = torch.randint(0, 256, (s.pick(4, 2), count, 3, frames, 16 * patches, 16 * patches), dtype=torch.uint8)
    if good:
        clips = s.pinned(clips)
    model = tower(768, 256, 1, 400).to(s.device, half(s.device)).eval()
    turn = [0]

    @torch.inference_mode()
    def step():
        batch = clips[turn[0] % len(clips)]
        turn[0] += 1
        if not good:
            batch = batch.pin_memory() if s.device == "cuda" else batch.clone()
        batch = batch.to(s.device, non_blocking=True)
        parts = batch.view(count, 3, frames, patches, 16, patches, 16).permute(0, 2, 3, 5, 1, 4, 6).flatten(4).flatten(1, 3)
        return model(parts.to(half(s.device)).div_(255)).float().mean()

    return step


@recorded(stacks=True)
@pair
def tensor_from_list_of_arrays(s, good):
    """An agent acts in 256 environments. What they observe is a list of NumPy arrays, which torch.tensor reads."""
    places, senses = s.pick(256, 8), s.pick(376, 16)
    policy = tower(senses, s.pick(512, 32), 3, 17).to(s.device)
    random = np.random.default_rng(0)
    observations = [random.standard_normal(senses, dtype=np.float32) for _ in range(places)]

    @torch.inference_mode()
    def step():
        if good:
            seen = torch.from_numpy(np.stack(observations)).to(s.device)
        else:
            seen = torch.tensor(observations, device=s.device)
        actions = policy(seen).tanh().cpu().numpy()
        return float(actions.mean())

    return step


@recorded(stacks=True)
@pair
def view_saved_whole(s, good):
    """Training keeps the first eight outputs of a batch as samples. They are a view, and torch.save saves what is behind it."""
    width, rows = s.pick(2048, 64), s.pick(4096, 64)
    model = tower(width, width, 4, width).to(s.device, half(s.device))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=s.device == "cuda")
    x = torch.randn(rows, width, device=s.device, dtype=half(s.device))

    def step():
        outputs = model(x)
        loss = update(optimizer, outputs.float().square().mean())
        samples = outputs.detach()[:8]
        buffer = io.BytesIO()
        torch.save(samples.clone() if good else samples, buffer)
        return loss

    return step


@recorded(stacks=True)
@pair
def decoder_in_tiles(s, good):
    """The last part of a diffusion model's sampling: the picture is decoded in tiles, as memory was short on a smaller GPU."""
    width, side, tile, over = s.pick(256, 8), s.pick(128, 48), 32, 4
    up = nn.Upsample(scale_factor=2, mode="nearest")
    parts = [nn.Conv2d(4, width, 3, padding=1)]
    for _ in range(2):
        parts += [nn.SiLU(), up, nn.Conv2d(width, width, 3, padding=1)]
    decoder = nn.Sequential(*parts, nn.SiLU(), nn.Conv2d(width, 3, 3, padding=1)).to(s.device, half(s.device)).eval()
    decoder.to(memory_format=torch.channels_last)
    latents = torch.randn(1, 4, side, side, device=s.device, dtype=half(s.device))
    starts = [*range(0, side - tile, tile - 2 * over), side - tile]
    tiles = [(top, left) for top in starts for left in starts]

    def in_tiles():
        picture = torch.empty(1, 3, 4 * side, 4 * side, device=s.device, dtype=latents.dtype)
        for top, left in tiles:
            part = decoder(latents[:, :, top:top + tile, left:left + tile])
            t, l = (over if at else 0 for at in (top, left))
            picture[:, :, 4 * (top + t):4 * (top + tile), 4 * (left + l):4 * (left + tile)] = part[:, :, 4 * t:, 4 * l:]
        return picture

    @torch.inference_mode()
    def step():
        return (decoder(latents) if good else in_tiles()).float().mean(dim=(2, 3))

    return step
