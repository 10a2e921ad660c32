"""Data: archives, means, what was seen, small tasks for threads."""

import concurrent.futures
import os
import tempfile

import numpy as np
import torch
from common import half, pair, recorded, tower, update
from torch.profiler import record_function


def learner(s, inputs):
    """A small model on the GPU that learns from the batches of this file, and its step."""
    model = tower(inputs, s.pick(1024, 16), 3, 10).to(s.device, half(s.device))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-5)

    def train(x):
        with record_function("train"):
            return float(update(optimizer, model(x.to(s.device).to(half(s.device))).float().square().mean()))

    return train


@recorded(stacks=True, active=3)
@pair
def archive_read_again_at_each_access(s, good):
    """Spectra and their weights lie in one .npz file. A batch is some rows of both."""
    count, size, rows = s.pick(2000, 16), s.pick(256, 8), s.pick(128, 4)
    dice = np.random.default_rng(0)
    path = os.path.join(tempfile.mkdtemp(prefix="spectra_"), "spectra.npz")
    np.savez_compressed(path, spectra=dice.integers(0, 99, (count, size)).astype(np.float32), weights=dice.random(count, dtype=np.float32))
    archive = np.load(path)
    if good:
        archive = {name: archive[name] for name in archive.files}
    train = learner(s, size)

    def batch():
        chosen = dice.integers(0, count, rows)
        return archive["spectra"][chosen] * archive["weights"][chosen][:, None]

    def step():
        with record_function("read"):
            x = torch.from_numpy(batch())
        return train(x)

    return step


@recorded(stacks=True, active=3)
@pair
def means_of_64_bits(s, good):
    """Pictures of bytes become numbers with a mean of zero, by numpy."""
    rows, side = s.pick(128, 4), s.pick(64, 8)
    pixels = np.random.default_rng(0).integers(0, 255, (rows, 3, side, side), dtype=np.uint8)
    mean = np.array([124.0, 116.0, 104.0]).reshape(1, 3, 1, 1)
    spread = np.array([58.0, 57.0, 57.0]).reshape(1, 3, 1, 1)
    if good:
        mean, spread = mean.astype(np.float32), spread.astype(np.float32)
    train = learner(s, 3 * side * side)

    def step():
        with record_function("prepare"):
            numbers = (pixels.astype(mean.dtype) - mean) / spread
            x = torch.from_numpy(numbers).flatten(1)
        return train(x)

    return step


@recorded(stacks=True, active=3)
@pair
def seen_kept_in_a_list(s, good):
    """Documents that were seen lately are left out of a batch. Their numbers are remembered."""
    remembered, rows, size = s.pick(3000, 50), s.pick(256, 4), s.pick(512, 8)
    dice = np.random.default_rng(0)
    table = torch.randn(4 * remembered, size)
    seen = dice.permutation(4 * remembered)[:remembered].tolist()
    if good:
        seen = set(seen)
    train = learner(s, size)

    def fresh_ones():
        taken = []
        for number in dice.integers(0, 4 * remembered, 2 * rows).tolist():
            if number not in seen and len(taken) < rows:
                taken.append(number)
        return taken

    def step():
        with record_function("choose"):
            chosen = torch.tensor((fresh_ones() * 2)[:rows])
        return train(table[chosen])

    return step


@recorded(stacks=True, active=3)
@pair
def pool_of_threads_for_tiny_tasks(s, good):
    """512 short records are scaled by their largest number, by a pool of eight threads or by a loop."""
    rows, size = s.pick(512, 4), s.pick(64, 8)
    records = [np.random.default_rng(number).random(size, dtype=np.float32) for number in range(rows)]
    pool = concurrent.futures.ThreadPoolExecutor(max_workers=8)
    train = learner(s, size)

    def scaled(record):
        return record / record.max()

    def step():
        with record_function("scale"):
            parts = list(map(scaled, records) if good else pool.map(scaled, records))
            x = torch.from_numpy(np.stack(parts))
        return train(x)

    return step
