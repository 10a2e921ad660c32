"""Samples of Python stacks: a thread of ``_core`` takes them while a window is open.

docs/decisions/python_samples.md says how, and why that is safe.
"""

from __future__ import annotations

import atexit
import os
from typing import Dict, List, Union

from . import _core
from ._stacks import path_prefixes

MOST = 10_000  # a second
USUAL = 1000

# Folders that modules will come from, but that sys.path does not have yet.
folders_to_come: List[str] = []

_owners: Dict[int, int] = {}  # who wants samples, and how many a second
_running = False
_prepared = False
_ended = False


def parse_rate(value: Union[bool, int]) -> int:
    """Samples a second: True means 1000; 0: none."""
    if value is True:
        return USUAL
    if value is False:
        return 0
    if isinstance(value, int) and 0 <= value <= MOST:
        return value
    raise ValueError(f"sample_python: expected True or 1 to {MOST} samples per second, found {value!r}")


def hold(owner: object, rate: int) -> str:
    """Samples from now on, in the open window. Empty, or one line that says why not.

    The first owner's rate counts as long as samples are taken.
    """
    global _prepared, _running
    if _ended:
        return "Python is ending"
    if not _prepared:
        _prepared = True
        atexit.register(_end)
        os.register_at_fork(after_in_child=_forget)
    if not _running:
        folders = {os.path.join(folder, "") for folder in folders_to_come}
        reason = _core.start_samples(rate, sorted(folders.union(path_prefixes()), reverse=True))
        if reason:
            return reason
        _running = True
    _owners[id(owner)] = rate
    return ""


def flush() -> None:
    """Writes what was sampled so far; before a window closes."""
    if _running:
        _core.flush_samples()


def release(owner: object) -> None:
    """``owner`` wants no more samples."""
    global _running
    if _owners.pop(id(owner), None) is None or _owners:
        return
    _running = False
    _core.stop_samples()


def _forget() -> None:
    """A forked child has no sampling thread."""
    global _running
    _owners.clear()
    _running = False


def _end() -> None:
    """The interpreter is about to free what is sampled."""
    global _ended, _running
    _ended = True
    if _running:
        _running = False
        _core.stop_samples()
