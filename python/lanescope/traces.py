"""Trace files: read, describe, show as a tree, write."""

from __future__ import annotations

import os
from typing import Any, Callable, Dict, Optional, Union

from . import _core

PathLike = Union[str, "os.PathLike[str]"]


def read_trace(path: PathLike, *, progress: Optional[Callable[[int, int], Any]] = None) -> _core.Trace:
    """A trace file as columns: JSON of torch.profiler, Kineto or Chrome (plain, gzip, zstd), or a lanescope recording.

    A directory stands for the one recording in it, that of a killed process included. ``progress`` is called with
    bytes read and the file's size (0: unknown). Damage is repaired or skipped and counted in ``Trace.import_stats``.
    Raises IoError, CorruptInputError, UnsupportedError or LimitError.
    """
    return _core.read_trace(os.fspath(path), progress)


def write_kineto_json(trace: _core.Trace, path: PathLike) -> None:
    """Writes the trace as clean Kineto JSON: sorted, escaped, complete flows; ``.gz`` and ``.zst`` by the name."""
    _core.write_kineto_json(trace, os.fspath(path))
