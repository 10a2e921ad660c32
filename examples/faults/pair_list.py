"""The list that programs of one folder enter themselves into; record.py of examples/blind_faults reads it."""

from __future__ import annotations

from typing import Any, Callable, Dict

Step = Callable[[], Any]
PAIRS: Dict[str, Callable[..., Step]] = {}


def pair(function: Callable[..., Step]) -> Callable[..., Step]:
    """Enters a program into the list. It takes a Setting and whether it is the good twin, and returns its step."""
    PAIRS[function.__name__] = function
    return function
