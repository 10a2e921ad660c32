"""What kinds of work are recorded."""

from __future__ import annotations

import glob
import os
import sys
from typing import Any, Dict, Iterable, List, Optional, Set

from ._observer_build import torch_directory, torch_has_cuda
from ._torch_enums import SharedEnum


class ProfilerActivity(SharedEnum):
    """torch.profiler's activity groups; torch's members when torch is loaded. lanescope records CPU and CUDA; see
    :func:`supported_activities`."""

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
    """What can be recorded here: CPU; and CUDA, if there is a GPU, lanescope was built with CUPTI and torch can use it.

    Never more than torch.profiler's answer, so a program may go on to use the device. ``lanescope doctor`` says why
    CUDA is missing.
    """
    cuda = bool(cupti_library()) and has_gpu() and torch_sees_cuda()
    return {ProfilerActivity.CPU, ProfilerActivity.CUDA} if cuda else {ProfilerActivity.CPU}


def has_gpu() -> bool:
    """Whether this process may use an NVIDIA GPU. Looks at files and the environment: CUDA's driver is not loaded, since
    a process that has loaded it cannot fork() and use the device in its children.
    """
    if os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0].strip() in ("", "-1", "NoDevFiles"):
        return False
    return bool(glob.glob("/dev/nvidia[0-9]*")) or os.path.exists("/dev/dxg")


def torch_sees_cuda() -> bool:
    """Whether torch.profiler sees CUDA here; if torch is not imported, whether it was built for CUDA;
    True without torch."""
    autograd = sys.modules.get("torch._C._autograd")
    if autograd is not None:
        return any(activity.name == "CUDA" for activity in autograd._supported_activities())
    directory = torch_directory()
    return directory is None or torch_has_cuda(directory)


def offer_nvtx() -> None:
    """Lets NVTX find the recorder, so that NVTX ranges are recorded; it asks once, at the process's first NVTX call.

    Changes nothing if the program or another tool has already named a library.
    """
    library = cupti_library()
    if library:
        os.environ.setdefault("NVTX_INJECTION64_PATH", library)


def activity_bits(activities: Iterable[ProfilerActivity]) -> int:
    """The recorder's LANESCOPE_ACTIVITY_* for those of ``activities`` that it can record."""
    bits = {"CPU": 1, "CUDA": 2}
    return sum(bits.get(activity.name, 0) for activity in activities)


def activity_filters(activities: Optional[Iterable[Any]]) -> Dict[ProfilerActivity, Set[str]]:
    """Of each activity that is given as ``{activity: [kinds]}``, the kinds, as torch.profiler keeps them."""
    dicts = [item for item in activities or () if isinstance(item, dict)]
    return {ProfilerActivity[member.name]: set(kinds) for item in dicts for member, kinds in item.items()}


def parse_activities(activities: Optional[Iterable[Any]]) -> Set[ProfilerActivity]:
    """A set of our activities, from ours, torch.profiler's, or dicts ``{activity: [kinds]}`` of either."""
    if activities is None:
        return supported_activities()
    parsed: List[ProfilerActivity] = []
    for item in activities:
        for member in item.keys() if isinstance(item, dict) else (item,):
            try:
                activity = ProfilerActivity[str(getattr(member, "name", ""))]
            except KeyError:
                raise TypeError(f"expected a ProfilerActivity or a dict of them, found {type(member).__name__}") from None
            if activity in parsed:
                raise ValueError(f"activity {activity.name} is given more than once")
            parsed.append(activity)
    if not parsed:
        raise AssertionError("no activity was given; expected at least ProfilerActivity.CPU")
    return set(parsed)
