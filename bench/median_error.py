"""How uncertain the median of some pairs is, and whether a bound is shown, refuted or open."""

from __future__ import annotations

import math
import random
import statistics
from typing import Sequence, Tuple

FEWEST = 20  # pairs; fewer say nothing about a bound


def interval(values: Sequence[float], draws: int = 10_000) -> Tuple[float, float]:
    """In which the median is with a probability of 95 %: percentiles of the medians of samples drawn with replacement."""
    chance = random.Random(1)
    medians = sorted(statistics.median(chance.choices(values, k=len(values))) for _ in range(draws))
    return medians[math.floor(0.025 * draws)], medians[math.ceil(0.975 * draws) - 1]


def verdict(values: Sequence[float], bound: float) -> str:
    """Of "at most `bound`": shown when the interval ends there or below, refuted when it begins above, else open."""
    if len(values) < FEWEST:
        return f"open: fewer than {FEWEST} pairs"
    low, high = interval(values)
    return "shown" if high <= bound else "refuted" if low > bound else "open"
