"""What all jobs have in common: who this process is, the model, and a training loop with places for a fault."""
from __future__ import annotations

import os
import time
from typing import Any, Tuple

import torch
import torch.distributed as dist
from torch import nn

RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
ON_GPU = torch.cuda.is_available()
DEVICE = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if ON_GPU else torch.device("cpu")
WIDTH, BATCH, LAYERS = (4096, 2048, 6) if ON_GPU else (128, 32, 6)  # on a CPU only to try the programs
CLASSES = 16


def start() -> None:
    if ON_GPU:
        torch.cuda.set_device(DEVICE)
        dist.init_process_group("nccl", device_id=DEVICE)
    else:
        dist.init_process_group("gloo")


def wait_for_device() -> None:
    if ON_GPU:
        torch.cuda.synchronize()


def make_model(width: int = WIDTH, layers: int = LAYERS) -> nn.Sequential:
    """The same on every rank."""
    torch.manual_seed(0)
    parts = []
    for _ in range(layers):
        parts += [nn.Linear(width, width), nn.GELU()]
    return nn.Sequential(*parts, nn.Linear(width, CLASSES)).to(DEVICE)


def in_parallel(model: nn.Module, bucket_mb: float = 25) -> nn.Module:
    return nn.parallel.DistributedDataParallel(model, device_ids=[DEVICE.index] if ON_GPU else None, bucket_cap_mb=bucket_mb)


def keep_busy(seconds: float) -> None:
    """Python that computes, without an operator."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


class Job:
    """A healthy data-parallel training. A job with a fault changes one of the methods."""

    tf32 = False  # products of matrices in TF32: the GPU computes for a shorter part of the step
    recorded_steps_fewer = 0

    def __init__(self) -> None:
        self.model = self.wrap(make_model())
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-4)
        self.inputs = torch.randn(BATCH, WIDTH, device=DEVICE)
        self.labels = torch.randint(0, CLASSES, (BATCH,), device=DEVICE)

    def wrap(self, model: nn.Module) -> nn.Module:
        return in_parallel(model)

    def batch(self) -> Tuple[torch.Tensor, torch.Tensor]:
        return self.inputs, self.labels

    def step(self, number: int) -> None:
        inputs, labels = self.batch()
        loss = nn.functional.cross_entropy(self.model(inputs), labels)
        self.optimizer.zero_grad()
        loss.backward()
        self.before_update(number, loss)
        self.optimizer.step()

    def before_update(self, number: int, loss: Any) -> None:
        pass


class Healthy(Job):
    pass
