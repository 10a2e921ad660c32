"""Warnings that point at a line of the program, not of lanescope."""

from __future__ import annotations

import os
import sys
import warnings
from types import FrameType
from typing import Optional, Set, Type

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_said: Set[str] = set()


def warn(message: str, category: Type[Warning] = UserWarning, *, once: bool = False) -> None:
    """Warns at the innermost line outside of this package; ``once``: the same text only once per process."""
    if once:
        if message in _said:
            return
        _said.add(message)
    level = 2
    frame: Optional[FrameType] = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
        level += 1
    warnings.warn(message, category, stacklevel=level)


def warn_about(message: str, *, once: bool = False) -> None:
    """The same, with who says it."""
    warn("lanescope: " + message, once=once)
