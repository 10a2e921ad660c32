"""What kinds of work are recorded."""

from __future__ import annotations

import sys
from enum import Enum
from typing import Any, Iterable, List, Optional, Set


class ProfilerActivity(Enum):
    """torch.profiler's activity groups. lanescope records CPU; see :func:`supported_activities`."""

    CPU = 0
    XPU = 1
    CUDA = 2
    HPU = 3
    MTIA = 4
    PrivateUse1 = 5


def supported_activities() -> Set[ProfilerActivity]:
    """The activities this build of lanescope records."""
    return {ProfilerActivity.CPU}


def parse_activities(activities: Optional[Iterable[Any]]) -> Set[ProfilerActivity]:
    """A set of our activities from ours, torch.profiler's, or dicts ``{activity: [kinds]}`` of either."""
    if activities is None:
        return supported_activities()
    parsed: List[ProfilerActivity] = []
    for item in activities:
        for member in item.keys() if isinstance(item, dict) else (item,):
            activity = ProfilerActivity.__members__.get(str(getattr(member, "name", "")))
            if activity is None:
                raise TypeError(f"expected a ProfilerActivity or a dict of them, found {type(member).__name__}")
            if activity in parsed:
                raise ValueError(f"activity {activity.name} is given more than once")
            parsed.append(activity)
    if not parsed:
        raise AssertionError("no activity was given; expected at least ProfilerActivity.CPU")
    return set(parsed)


def torch_has_cuda() -> bool:
    """Whether the program has already imported a torch that sees a CUDA device. Imports nothing."""
    torch = sys.modules.get("torch")
    try:
        return bool(torch is not None and torch.cuda.is_available())
    except Exception:
        return False
