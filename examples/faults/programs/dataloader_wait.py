"""Samples are prepared in the training process itself.

Wrong: num_workers=0. Decoding and augmentation run between the steps, and the GPU waits.
In the trace: enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__, with the GPU idle all along.
Fix: worker processes that prepare the next batches while the GPU works.
"""

import numpy
import torch


class Samples(torch.utils.data.Dataset):
    """Like decoding: some tenths of a millisecond of numpy for each sample."""

    def __init__(self, size):
        self.size = size

    def __len__(self):
        return 1_000_000

    def __getitem__(self, index):
        noise = numpy.random.default_rng(index).standard_normal(self.size, dtype=numpy.float32)
        return torch.from_numpy(numpy.sort(noise.reshape(64, -1), axis=0).reshape(-1))


def program(s, workers):
    size = s.pick(16384, 256)
    options = dict(num_workers=workers, prefetch_factor=4, persistent_workers=True) if workers else {}
    loader = torch.utils.data.DataLoader(Samples(size), batch_size=s.pick(32, 2), pin_memory=s.device == "cuda", **options)
    model = torch.nn.Sequential(torch.nn.Linear(size, s.pick(8192, 8)), torch.nn.ReLU(),
                                *[torch.nn.Linear(s.pick(8192, 8), s.pick(8192, 8)) for _ in range(s.pick(6, 1))])
    model.to(s.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    batches = iter(loader)

    def step():
        batch = next(batches).to(s.device, non_blocking=True)
        optimizer.zero_grad()
        loss = model(batch).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    return step


def bad(s):
    return program(s, 0)


def good(s):
    return program(s, s.pick(8, 1))
