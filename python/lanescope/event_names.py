"""What an event of a trace is that is no GPU work: operators, API calls, the profiler's own rows, frames, ranges."""

from __future__ import annotations

from . import _core
from ._core import EventName

__all__ = ["EventName", "event_name"]


def event_name(text: str) -> EventName:
    """Explains an event's name: its kind, what it is, whether the CPU waits in it, what it puts on the GPU.

    Fields that nothing is known of are ``None``; ``details`` holds what the name's parameters say. A name that is not
    ``known`` has the kind "unknown" and itself, cut, as ``text``. Names of kernels are :func:`kernel_name`'s.

    >>> event_name("cudaStreamIsCapturing").text
    'is a graph being recorded?'
    >>> event_name("Torch-Compiled Region: 2/1").details
    {'function': '2', 'version': '1'}
    """
    return _core.event_name(text)
