"""Where an event ran, and for how long, in torch's words and numbers."""

from __future__ import annotations

from typing import Protocol

from ._torch_enums import SharedEnum


class DeviceType(SharedEnum):
    """c10's device types, with their numbers; torch.autograd.DeviceType's members when torch is loaded."""

    CPU = 0
    CUDA = 1
    MKLDNN = 2
    OPENGL = 3
    OPENCL = 4
    IDEEP = 5
    HIP = 6
    FPGA = 7
    MAIA = 8
    XLA = 9
    Vulkan = 10
    Metal = 11
    XPU = 12
    MPS = 13
    Meta = 14
    HPU = 15
    VE = 16
    Lazy = 17
    IPU = 18
    MTIA = 19
    PrivateUse1 = 20


_BY_NAME = {"xpu": "XPU", "hpu": "HPU", "mtia": "MTIA", "privateuseone": "PrivateUse1"}


def device_type(on_device: bool, device: str) -> DeviceType:
    """The device type of an event; ``device`` is the trace's kind of device ("cuda"), or empty."""
    found: DeviceType = DeviceType[_BY_NAME.get(device, "CUDA") if on_device else "CPU"]
    return found


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
    @property
    def self_device_time_total(self) -> float: ...
    @property
    def cpu_time(self) -> float: ...
    @property
    def device_time(self) -> float: ...


class TimeTexts:
    """The times of events and rows of averages, as torch's table prints them."""

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

    @property
    def self_device_time_total_str(self: _HasTimes) -> str:
        return format_time(self.self_device_time_total)

    @property
    def cpu_time_str(self: _HasTimes) -> str:
        return format_time(self.cpu_time)

    @property
    def device_time_str(self: _HasTimes) -> str:
        return format_time(self.device_time)
