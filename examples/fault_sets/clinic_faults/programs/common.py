"""What the programs share; the list and the parts are those of the other folders."""

from __future__ import annotations

import torch

from pair_list import pair, PAIRS, recorded, trap  # noqa: F401  of examples/faults, for the programs and record.py
from training_parts import tower, update  # noqa: F401  of examples/faults


def half(device: str) -> torch.dtype:
    return torch.bfloat16 if device == "cuda" else torch.float32
