"""What the programs share; all of it is shared with those of other folders."""

from __future__ import annotations

from pair_list import PAIRS, Step, pair, recorded, trap  # noqa: F401  of examples/faults, for the programs and record.py
from training_parts import tower, update  # noqa: F401  of examples/faults
