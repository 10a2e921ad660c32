"""Where an event ran, in torch's words and numbers."""

from __future__ import annotations

from enum import IntEnum


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
