"""Data frames of the columns that Trace.sql() returns, with the user's own pandas or polars."""

from __future__ import annotations

import importlib
from typing import Any, Dict

from ._core import InvalidArgumentError, UnavailableError

_CLASSES = {"pandas": "DataFrame", "polars": "DataFrame"}


def frame_of(columns: Dict[str, Any], frame: str) -> Any:
    """``pandas.DataFrame(columns)`` or ``polars.DataFrame(columns)``."""
    if frame not in _CLASSES:
        raise InvalidArgumentError(f"frame expects 'pandas' or 'polars'; found {frame!r}")
    try:
        module = importlib.import_module(frame)
    except ImportError as error:
        raise UnavailableError(f"frame={frame!r} needs {frame}, which cannot be imported ({error}): pip install {frame}") from error
    return getattr(module, _CLASSES[frame])(columns)
