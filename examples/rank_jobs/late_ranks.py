"""Jobs in which one rank is late, or the ranks in turn."""
from __future__ import annotations

import gc
import tempfile

import torch

from training import BATCH, DEVICE, RANK, WIDTH, Job, keep_busy


class MoreWork(Job):
    """Rank 1 multiplies six matrices more."""

    def before_update(self, number, loss):
        if RANK == 1:
            for _ in range(6):
                self.inputs @ self.model.module[0].weight


class HiddenPython(Job):
    """Rank 1's Python is busy for 2 ms a step, and nothing waits for the GPU."""

    def before_update(self, number, loss):
        if RANK == 1:
            keep_busy(0.002)


class HiddenPythonBeforeItem(Job):
    """Rank 1's Python is busy for 4 ms, then both ranks read the loss; the backward pass hides the 4 ms."""

    def before_update(self, number, loss):
        if RANK == 1:
            keep_busy(0.004)
        loss.item()


class _SlowData(torch.utils.data.Dataset):
    def __len__(self):
        return 100_000

    def __getitem__(self, index):
        if RANK == 0:
            keep_busy(0.006)
        return torch.zeros(WIDTH), 0


class SlowLoader(Job):
    """Rank 0's DataLoader takes 12 ms for a batch."""

    def __init__(self):
        super().__init__()
        self.loader = iter(torch.utils.data.DataLoader(_SlowData(), batch_size=2))

    def batch(self):
        inputs, _ = next(self.loader)
        self.inputs[:2] = inputs.to(DEVICE)
        return self.inputs, self.labels

    def before_update(self, number, loss):
        loss.item()


class RotatingBatches(Job):
    """One of the ranks has a third of the batch, not always the same one."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def batch(self):
        self.count += 1
        size = BATCH if (self.count * 7 // 3 + RANK) % 2 else BATCH // 3
        return self.inputs[:size], self.labels[:size]


class PageableCopies(Job):
    """Rank 1 copies 128 MB from pageable memory in each step."""

    def __init__(self):
        super().__init__()
        self.table = torch.randn(8 * BATCH, WIDTH // 2)

    def before_update(self, number, loss):
        if RANK == 1:
            self.copied = self.table.to(DEVICE)


class GarbageCollection(Job):
    """Rank 0 collects garbage in each step."""

    def __init__(self):
        super().__init__()
        self.lists = [[number] for number in range(400_000)] if RANK == 0 else []

    def before_update(self, number, loss):
        if RANK == 0:
            gc.collect()
        loss.item()


class Checkpoints(Job):
    """Rank 0 saves a layer in every second step."""

    def before_update(self, number, loss):
        if RANK == 0 and number % 2 == 0:
            with tempfile.TemporaryFile() as file:
                torch.save(self.model.module[0].state_dict(), file)


class EndsEarly(Job):
    """Rank 1's recording ends three steps before rank 0's: run_jobs.py stops it."""

    recorded_steps_fewer = 3 if RANK == 1 else 0
