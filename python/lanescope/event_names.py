"""Explains events that are not GPU work: operators, API calls, the profiler's rows, frames, ranges."""

from __future__ import annotations

from . import _core
from ._core import EventName

__all__ = ["EventName", "event_name"]


def event_name(text: str) -> EventName:
    """Explains an event's name: its kind, what it is, whether the CPU waits in it, what it puts on the GPU.

    Unknown fields are ``None``; ``details`` has the name's parameters. A name that is not ``known`` has the kind
    "unknown", and its ``text`` is the name, cut. For names of kernels, use :func:`kernel_name`.

    >>> event_name("cudaStreamIsCapturing").text
    'is a graph being recorded?'
    >>> event_name("Torch-Compiled Region: 2/1").details
    {'function': '2', 'version': '1'}
    """
    return _core.event_name(text)
