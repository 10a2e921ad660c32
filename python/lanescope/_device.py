"""Where an event ran, and for how long, in torch's words and numbers."""

from __future__ import annotations

from enum import IntEnum
from typing import Protocol


class DeviceType(IntEnum):
    """torch.profiler's DeviceType, as far as traces name devices."""

    CPU = 0
    CUDA = 1
    HIP = 6
    XPU = 12
    HPU = 18
    PrivateUse1 = 20
    MTIA = 21


def device_type(on_device: bool, device: str) -> DeviceType:
    """The type of an event; ``device`` is the trace's kind of device ("cuda"), empty when it shows none."""
    if not on_device:
        return DeviceType.CPU
    by_name = {"xpu": DeviceType.XPU, "hpu": DeviceType.HPU, "mtia": DeviceType.MTIA, "privateuseone": DeviceType.PrivateUse1}
    return by_name.get(device, DeviceType.CUDA)


def format_time(us: float) -> str:
    """Microseconds as torch's tables write them: "1.500ms"."""
    if us >= 1e6:
        return f"{us / 1e6:.3f}s"
    if us >= 1e3:
        return f"{us / 1e3:.3f}ms"
    return f"{us:.3f}us"


class _HasTimes(Protocol):
    """Microseconds."""

    @property
    def cpu_time_total(self) -> float: ...
    @property
    def self_cpu_time_total(self) -> float: ...
    @property
    def device_time_total(self) -> float: ...


class TimeTexts:
    """The times that events and rows of averages both have, as torch's table prints them."""

    __slots__ = ()

    @property
    def cpu_time_total_str(self: _HasTimes) -> str:
        return format_time(self.cpu_time_total)

    @property
    def self_cpu_time_total_str(self: _HasTimes) -> str:
        return format_time(self.self_cpu_time_total)

    @property
    def device_time_total_str(self: _HasTimes) -> str:
        return format_time(self.device_time_total)
