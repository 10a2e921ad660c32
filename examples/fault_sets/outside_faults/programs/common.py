"""What the programs share; the list and the parts are those of the other folders."""

from __future__ import annotations

import torch
import torch.distributed as dist

from pair_list import PAIRS, pair, recorded, trap  # noqa: F401  of examples/faults, for the programs and record.py
from training_parts import tower, update  # noqa: F401  of examples/faults


def join_alone(device: str) -> None:
    """A process group of this process only: what it sends reaches nobody, but takes the calls of a job of many ranks."""
    if not dist.is_initialized():
        dist.init_process_group("nccl" if device == "cuda" else "gloo", store=dist.HashStore(), rank=0, world_size=1)


def half(device: str) -> torch.dtype:
    return torch.bfloat16 if device == "cuda" else torch.float32
