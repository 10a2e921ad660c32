"""Options of a flight recorder: how much it keeps, and when a step is slow."""

from __future__ import annotations

import math
import re
from typing import Union

_SECONDS = {"ms": 1e-3, "s": 1.0, "m": 60.0}
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?|\.[0-9]+)(ms|s|m)")
_FACTOR = re.compile(r"([0-9]+(?:\.[0-9]+)?)x?")
_MAX_SECONDS = 1e9


def parse_last(last: Union[str, float]) -> int:
    """Nanoseconds of ``"10s"``, ``"500ms"``, ``"2m"`` or a number of seconds; ValueError says what is expected."""
    seconds = math.nan
    if isinstance(last, str):
        found = _DURATION.fullmatch(last)
        if found:
            seconds = float(found.group(1)) * _SECONDS[found.group(2)]
    elif not isinstance(last, bool):
        seconds = float(last)
    if not 1e-3 <= seconds <= _MAX_SECONDS:
        raise ValueError(f"expected a time of 1 ms or more, such as 10s, 500ms or 2m (or a number of seconds); found {last!r}")
    return round(seconds * 1e9)


def parse_slow_step(factor: Union[str, float]) -> float:
    """The number of ``"2x"``, ``"2.5x"`` or ``2.0``; ValueError says what is expected."""
    value = math.nan
    if isinstance(factor, str):
        found = _FACTOR.fullmatch(factor)
        if found:
            value = float(found.group(1))
    elif not isinstance(factor, bool):
        value = float(factor)
    if not 1 < value <= 1e6:
        raise ValueError(f"expected how many times the median makes a step slow, above 1, such as 2x or 2.5x; found {factor!r}")
    return value
