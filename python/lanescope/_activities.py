"""What kinds of work are recorded."""

from __future__ import annotations

import os
from enum import Enum
from typing import Any, Iterable, List, Optional, Set


class ProfilerActivity(Enum):
    """torch.profiler's activity groups. lanescope records CPU and CUDA; see :func:`supported_activities`."""

    CPU = 0
    XPU = 1
    CUDA = 2
    HPU = 3
    MTIA = 4
    PrivateUse1 = 5


def cupti_library() -> str:
    """The library that records CUDA activity; empty when lanescope was built without CUPTI."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib", "liblanescope_record_cupti.so")
    return path if os.path.exists(path) else ""


def supported_activities() -> Set[ProfilerActivity]:
    """The activities this build of lanescope records: CPU, and CUDA when it was built with CUPTI.

    Like torch.profiler's, it looks at the build, not at the machine; ``lanescope doctor`` looks at the machine.
    """
    return {ProfilerActivity.CPU, ProfilerActivity.CUDA} if cupti_library() else {ProfilerActivity.CPU}


def offer_nvtx() -> None:
    """Lets NVTX find the recorder, so that NVTX ranges are recorded; it asks once, at the process's first NVTX call.

    Nothing changes when the program (or another tool) has named a library already.
    """
    library = cupti_library()
    if library:
        os.environ.setdefault("NVTX_INJECTION64_PATH", library)


def activity_bits(activities: Iterable[ProfilerActivity]) -> int:
    """The recorder's LANESCOPE_ACTIVITY_* of what it can record among ``activities``."""
    bits = {ProfilerActivity.CPU: 1, ProfilerActivity.CUDA: 2}
    return sum(bits.get(activity, 0) for activity in activities)


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
