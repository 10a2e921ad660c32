"""Every recorded event, one object each, made when it is looked at; and the same as numpy columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Union, overload

from . import _core
from ._device import DeviceType, TimeTexts, device_type, format_time
from .averages import KeyAverages

if TYPE_CHECKING:
    import numpy
    import numpy.typing


STACK_METRICS = ("self_cpu_time_total", "self_cuda_time_total", "self_device_time_total")
_NOT_IN_STACKS = str.maketrans(" ;\t\n", "____")


class Interval(NamedTuple):
    """Microseconds since the start of the recorded window."""

    start: float
    end: float

    def elapsed_us(self) -> float:
        return self.end - self.start


class Kernel(NamedTuple):
    """Device work that an operator started; ``duration`` in microseconds."""

    name: str
    device: int
    duration: float


class FunctionEvent(TimeTexts):
    """One event, with the fields of torch.profiler's FunctionEvent that lanescope has. Microseconds and bytes.

    Reads from the trace on demand; two objects for one event are equal.
    """

    __slots__ = ("_list", "_at", "_row", "_args")
    count = 1
    node_id = -1
    is_remote = False
    is_legacy = False

    def __init__(self, events: "EventList", at: int) -> None:
        self._list = events
        self._at = at
        self._row = events._core.row(at)
        self._args: Optional[Dict[str, Any]] = None

    @property
    def args(self) -> Dict[str, Any]:
        """The event's arguments as the trace has them, by torch's names ("Input Dims")."""
        if self._args is None:
            self._args = {} if self._row.slice is None else self._list.trace.args(self._row.slice)
        return self._args

    @property
    def name(self) -> str:
        return self._row.name

    @property
    def key(self) -> str:
        return self._row.name

    @property
    def trace_name(self) -> str:
        """The name as written; `name` says ``ProfilerStep*`` for all steps."""
        return self._row.name if self._row.slice is None else self._list.trace.name(self._row.slice)

    @property
    def overload_name(self) -> str:
        return str(self.args.get("overload_name", ""))

    @property
    def id(self) -> int:
        return int(self.args.get("External id", self._at))

    @property
    def external_id(self) -> int:
        return int(self.args.get("External id", 0))

    @property
    def time_range(self) -> Interval:
        return Interval(self._row.start_us, self._row.end_us)

    @property
    def thread(self) -> int:
        """A small number per thread of this trace."""
        return self._row.thread

    @property
    def fwd_thread(self) -> Optional[int]:
        return self.args.get("Fwd thread id")

    @property
    def sequence_nr(self) -> int:
        return int(self.args.get("Sequence number", -1))

    @property
    def input_shapes(self) -> List[Any]:
        return self.args.get("Input Dims") or []

    @property
    def input_dtypes(self) -> List[str]:
        return self.args.get("Input type") or []

    @property
    def structured_input_strides(self) -> List[Any]:
        return self.args.get("Input Strides") or []

    @property
    def concrete_inputs(self) -> List[Any]:
        return self.args.get("Concrete Inputs") or []

    @property
    def stack(self) -> List[str]:
        """Python frames "file.py(line): function", innermost first; a backward operator has those of its forward one."""
        return self._list._stack_of(self._at)

    @property
    def is_async(self) -> bool:
        return self._row.is_async

    @property
    def is_user_annotation(self) -> bool:
        return self._row.is_annotation

    @property
    def use_device(self) -> Optional[str]:
        return self._list._core.device or None

    @property
    def device_type(self) -> DeviceType:
        return device_type(self._row.on_device, self._list._core.device)

    @property
    def device_index(self) -> int:
        return int(self.args.get("device", 0))

    @property
    def device_resource_id(self) -> int:
        """The stream of device work, the thread of the rest."""
        return int(self.args.get("stream", self.thread))

    @property
    def cpu_memory_usage(self) -> int:
        return self._row.cpu_memory_bytes

    @property
    def device_memory_usage(self) -> int:
        return self._row.device_memory_bytes

    @property
    def kernels(self) -> List[Kernel]:
        made = []
        for at in self._row.kernels:
            kernel = self._list._event(at)
            made.append(Kernel(kernel.name, kernel.device_index, kernel.time_range.elapsed_us()))
        return made

    @property
    def cpu_parent(self) -> Optional["FunctionEvent"]:
        return None if self._row.parent is None else self._list._event(self._row.parent)

    @property
    def cpu_children(self) -> List["FunctionEvent"]:
        return [self._list._event(at) for at in self._row.children]

    @property
    def cpu_time_total(self) -> float:
        return 0.0 if self._row.on_device else self._row.end_us - self._row.start_us

    @property
    def self_cpu_time_total(self) -> float:
        if self.is_async or self._row.on_device:
            return 0.0
        return self.cpu_time_total - sum(child.cpu_time_total for child in self.cpu_children)

    @property
    def device_time_total(self) -> float:
        if self.is_async:
            return 0.0
        if self._row.on_device:
            return self._row.end_us - self._row.start_us
        own = sum(kernel.duration for kernel in self.kernels)
        return own + sum(child.device_time_total for child in self.cpu_children)

    @property
    def self_device_time_total(self) -> float:
        if self.is_async:
            return 0.0
        if self._row.on_device:
            return self._row.end_us - self._row.start_us
        return sum(kernel.duration for kernel in self.kernels)

    @property
    def self_cpu_memory_usage(self) -> int:
        if self.is_async or self._row.on_device:
            return 0
        return self.cpu_memory_usage - sum(child.cpu_memory_usage for child in self.cpu_children)

    @property
    def self_device_memory_usage(self) -> int:
        if self.is_async or self._row.on_device:
            return 0
        return self.device_memory_usage - sum(child.device_memory_usage for child in self.cpu_children)

    cpu_time = cpu_time_total
    device_time = device_time_total
    cuda_time = device_time_total
    cuda_time_total = device_time_total
    self_cuda_time_total = self_device_time_total

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FunctionEvent):
            return NotImplemented
        return self._list._core is other._list._core and self._at == other._at

    def __hash__(self) -> int:
        return hash((id(self._list._core), self._at))

    def __repr__(self) -> str:
        return (
            f"<FunctionEvent {self.name!r}: thread {self.thread}, start {format_time(self.time_range.start)}, "
            f"CPU {self.cpu_time_total_str} (self {self.self_cpu_time_total_str}), device {self.device_time_total_str}>"
        )


class EventList(Sequence[FunctionEvent]):
    """All events in order of (start, longer first), without the rows that torch.profiler leaves out.

    ``trace`` has the same and more as numpy columns in nanoseconds; :meth:`column` has this list's.
    """

    def __init__(self, trace: _core.Trace, *, style: str = "torch", warning: str = "") -> None:
        self.trace = trace
        self._core = _core.torch_events(trace, style=style)
        self._kept: List[int] = self._core.kept
        self._stacks: Optional[_core.CallStacks] = None  # made when first asked for
        self._warning = warning

    def _event(self, at: int) -> FunctionEvent:
        return FunctionEvent(self, at)

    def _stack_of(self, at: int) -> List[str]:
        if self._stacks is None:
            self._stacks = _core.call_stacks(self.trace, self._core)
        return self._stacks.of(at)

    def __len__(self) -> int:
        return len(self._kept)

    @overload
    def __getitem__(self, index: int) -> FunctionEvent: ...
    @overload
    def __getitem__(self, index: slice) -> List[FunctionEvent]: ...
    def __getitem__(self, index: Union[int, slice]) -> Union[FunctionEvent, List[FunctionEvent]]:
        if isinstance(index, slice):
            return [FunctionEvent(self, at) for at in self._kept[index]]
        return FunctionEvent(self, self._kept[index])

    def __iter__(self) -> Iterator[FunctionEvent]:
        return (FunctionEvent(self, at) for at in self._kept)

    def column(self, name: str) -> "numpy.typing.NDArray[Any]":
        """One of slice, name_id, start_us, end_us, thread, on_device, is_annotation, parent, cpu_memory_bytes,
        device_memory_bytes as a read-only numpy view without copying.

        Rows are all events, those merged into their parents (column is_removed) included; ``parent`` indexes them.
        """
        return self._core.column(name)

    @property
    def names(self) -> List[str]:
        """What column name_id indexes."""
        return self._core.names

    def key_averages(
        self,
        group_by_input_shapes: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> KeyAverages:
        """Sums per operator name."""
        return KeyAverages(
            self.trace,
            group_by_input_shape=group_by_input_shapes,
            group_by_stack_n=group_by_stack_n,
            group_by_overload_name=group_by_overload_name,
            empty_reason=self._warning,
        )

    def total_average(self) -> Any:
        """All events added up."""
        return self.key_averages().total_average()

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds; all threads added up."""
        return self.key_averages().self_cpu_time_total

    def export_chrome_trace(self, path: str) -> None:
        """Chrome trace JSON of the whole trace."""
        _core.write_kineto_json(self.trace, path)

    def export_stacks(self, path: str, metric: str) -> None:
        """See :meth:`profile.export_stacks`."""
        if metric not in STACK_METRICS:
            raise ValueError(f"metric is self_cpu_time_total or self_cuda_time_total; found {metric!r}")
        with open(path, "w", encoding="utf-8") as file:
            for event in self:
                value = int(getattr(event, metric)) if event.stack else 0
                if value > 0:
                    frames = ";".join(frame.translate(_NOT_IN_STACKS) for frame in reversed(event.stack))
                    file.write(f"{frames} {value}\n")

    def __repr__(self) -> str:
        because = f" ({self._warning})" if self._warning and not len(self) else ""
        return f"<lanescope.EventList: {len(self)} events{because}>"
