"""Times and memory of an event, its children and its device work, as torch.profiler adds them up."""

from __future__ import annotations

from typing import TYPE_CHECKING, List, Optional

from ._device import TimeTexts
from .event_values import Interval, Kernel
from .tables import Row

if TYPE_CHECKING:
    from .function_event import FunctionEvent


class EventSums(TimeTexts, Row):
    """The part of :class:`FunctionEvent` that is computed from its own fields. Microseconds and bytes."""

    __slots__ = ()
    if TYPE_CHECKING:  # FunctionEvent's
        @property
        def time_range(self) -> Interval: ...

        @property
        def is_async(self) -> bool: ...

        @property
        def use_device(self) -> Optional[str]: ...

        @property
        def kernels(self) -> List[Kernel]: ...

        @property
        def cpu_parent(self) -> Optional[FunctionEvent]: ...

        @property
        def cpu_children(self) -> List[FunctionEvent]: ...

        @property
        def cpu_memory_usage(self) -> int: ...

        @property
        def device_memory_usage(self) -> int: ...

        @property
        def _on_cpu(self) -> bool: ...

    @property
    def _is_top_level(self) -> bool:
        return self.cpu_parent is None

    @property
    def cpu_time_total(self) -> float:
        return self.time_range.elapsed_us() if self._on_cpu else 0.0

    @property
    def self_cpu_time_total(self) -> float:
        if self.is_async or not self._on_cpu:
            return 0.0
        return self.cpu_time_total - sum(child.cpu_time_total for child in self.cpu_children)

    @property
    def device_time_total(self) -> float:
        if self.is_async or not self.use_device:
            return 0.0
        if not self._on_cpu:
            return self.time_range.elapsed_us()
        own = sum(kernel.duration for kernel in self.kernels)
        return own + sum(child.device_time_total for child in self.cpu_children)

    @property
    def self_device_time_total(self) -> float:
        if self.is_async or not self.use_device:
            return 0.0
        if not self._on_cpu:
            return self.time_range.elapsed_us()
        return sum(kernel.duration for kernel in self.kernels)

    @property
    def self_cpu_memory_usage(self) -> int:
        if self.is_async or not self._on_cpu:
            return 0
        return int(self.cpu_memory_usage - sum(child.cpu_memory_usage for child in self.cpu_children))

    @property
    def self_device_memory_usage(self) -> int:
        if self.is_async or not self._on_cpu:
            return 0
        return int(self.device_memory_usage - sum(child.device_memory_usage for child in self.cpu_children))

    cpu_time = cpu_time_total
    device_time = device_time_total
    cuda_time = device_time_total
    cuda_time_total = device_time_total
    self_cuda_time_total = self_device_time_total
    self_cuda_memory_usage = self_device_memory_usage
