"""One recorded event with the fields of torch.profiler's FunctionEvent, read from the trace when they are asked for."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Optional, Tuple

from . import _core
from ._device import DeviceType, device_type, format_time
from ._torch_types import instance_of
from .event_metadata import METADATA_KEYS, METADATA_TEXTS, EventMetadata
from .event_sums import EventSums
from .event_values import FIELD_DEFAULTS, Interval, Kernel, concrete_value, copied, field, shapes_and_memory

if TYPE_CHECKING:
    import numpy.typing

_ENGINE = "autograd::engine::evaluate_function: "
_FORWARD_BACKWARD = 1  # torch's only kind of flow between operators
_FUNCTION, _BACKWARD_FUNCTION, _USER_SCOPE = 0, 1, 7  # at::RecordScope
_CALLS = ("cpu_op", "user_annotation")
# Arguments that torch.profiler writes for operators itself; any other one was a keyword of the call.
_NOT_KEYWORDS = {
    "External id",
    "Record function id",
    "Sequence number",
    "Fwd thread id",
    "Ev Idx",
    "Input Dims",
    "Input type",
    "Input Strides",
    "lanescope tensors",  # lanescope's own, for _memory_profile()
    "Concrete Inputs",
    "Call stack",
    "Module Hierarchy",
    "overload_name",
    "correlation",
    "finished",
}


class Source:
    """Where the events of one trace come from: each is made once, so that two looks at it give the same object."""

    def __init__(
        self, trace: _core.Trace, style: str = "torch", with_flops: Optional[bool] = None, *, own_frames: bool = False
    ) -> None:
        """``own_frames``: the Python frames of a recording of lanescope are events, too."""
        self.trace = trace
        self.core = _core.torch_events(trace, style=style, own_frames=own_frames)
        self.style = style
        self.with_flops = bool(trace.metadata.get("with_flops")) if with_flops is None else with_flops
        self.device: Optional[str] = self.core.device or None
        self._made: List[Optional[FunctionEvent]] = []
        self._stacks: Optional[_core.CallStacks] = None  # made when first asked for
        self._flows: Optional[Dict[Tuple[int, int], Tuple[int, bool]]] = None  # likewise
        self._columns: Dict[str, "numpy.typing.NDArray[Any]"] = {}  # likewise

    def event(self, at: int) -> FunctionEvent:
        if not self._made:
            self._made = [None] * len(self.core)
        made = self._made[at]
        if made is None:
            made = self._made[at] = FunctionEvent._in(self, at)
        return made

    def column(self, name: str) -> "numpy.typing.NDArray[Any]":
        if name not in self._columns:
            self._columns.setdefault(name, self.core.column(name))
        return self._columns[name]

    def with_frames(self) -> Iterator[FunctionEvent]:
        """All events in order, and the calls of Python functions that lanescope recorded."""
        whole = Source(self.trace, with_flops=self.with_flops, own_frames=True)
        whole.device = self.device
        return (whole.event(at) for at in whole.core.kept)

    def stack_of(self, at: int) -> List[str]:
        if self._stacks is None:
            self._stacks = _core.call_stacks(self.trace, self.core)
        return self._stacks.of(at)

    def flow_at(self, track: int, slice: Optional[int]) -> Tuple[int, bool]:
        """The arrow from a forward operator to its backward one that begins or ends where this slice starts: its number, 0
        without one, and whether it begins there."""
        if self._flows is None:
            self._flows = {}
            for number, name, from_track, from_ns, to_track, to_ns in self.trace.flows:
                if name == "fwdbwd" and isinstance(number, int):
                    self._flows[from_track, from_ns] = (number, True)
                    self._flows[to_track, to_ns] = (number, False)
        return (0, False) if slice is None else self._flows.get((track, int(self.trace.start_ns[slice])), (0, False))


class FunctionEvent(EventSums):
    """One event, with the fields of torch.profiler's FunctionEvent. Microseconds and bytes.

    Reads from the trace on demand, and attributes may be assigned. One that was pickled or copied, or made by a program
    from torch's own arguments, has all its fields itself.
    """

    __slots__ = ("_source", "_at", "_kept_row", "_kept_args", "__dict__")
    if not TYPE_CHECKING:
        __class__ = instance_of("FunctionEvent")
    count = 1
    node_id = -1
    is_remote = False
    is_legacy = False
    # Until a table is made of the events, as in torch.profiler.
    self_cpu_percent: Any = -1
    total_cpu_percent: Any = -1
    total_device_percent: Any = -1

    def __init__(self, id: int, name: str, thread: int, start_us: float, end_us: float, **fields: Any) -> None:
        unknown = fields.keys() - FIELD_DEFAULTS.keys()
        if unknown:
            raise TypeError(f"FunctionEvent has no field {sorted(unknown)[0]!r}")
        self._source: Optional[Source] = None
        self._at = -1
        self._kept_row: Optional[_core.EventRow] = None
        self._kept_args: Optional[Dict[str, Any]] = None
        values = {name: copied(value) for name, value in FIELD_DEFAULTS.items()}
        values.update(fields, id=id, name=name, thread=thread, time_range=Interval(start_us, end_us))
        if values["device_type"] is None:
            values["device_type"] = DeviceType["CPU"]
        if values["device_resource_id"] is None:
            values["device_resource_id"] = thread
        self.__dict__.update(values)

    @staticmethod
    def _in(source: Source, at: int) -> FunctionEvent:
        event = FunctionEvent.__new__(FunctionEvent)
        event._source = source
        event._at = at
        event._kept_row = event._kept_args = None
        return event

    @property
    def _from(self) -> Source:
        if self._source is None:  # a field that a program deleted
            raise AttributeError("this event has no such field any more")
        return self._source

    @property
    def _row(self) -> _core.EventRow:
        if self._kept_row is None:
            self._kept_row = self._from.core.row(self._from.trace, self._at)
        return self._kept_row

    @field
    def args(self) -> Dict[str, Any]:
        """The event's arguments as the trace has them, by torch's names ("Input Dims")."""
        if self._kept_args is None:
            self._kept_args = {} if self._row.slice is None else self._from.trace.args(self._row.slice)
        return self._kept_args

    @field
    def name(self) -> str:
        return self._row.name

    @property
    def key(self) -> str:
        name: str = self.name
        return name

    @field
    def trace_name(self) -> Optional[str]:
        """The name as written; `name` says ``ProfilerStep*`` for all steps. None: a memory record by itself."""
        return None if self._row.slice is None else self._from.trace.name(self._row.slice)

    @field
    def overload_name(self) -> str:
        return self._row.overload

    @field
    def id(self) -> int:
        """The number that joins a runtime call to its device work; for operators its own."""
        return int(self.args.get("correlation", self.args.get("External id", self._at)))

    @field
    def external_id(self) -> int:
        return int(self.args.get("External id", 0))

    @field
    def linked_correlation_id(self) -> int:
        """For runtime calls and device work: the ``id`` of their operator; 0 for all others."""
        return int(self.args.get("External id", 0)) if "correlation" in self.args else 0

    @field
    def time_range(self) -> Interval:
        return Interval(self._row.start_us, self._row.end_us)

    @field
    def thread(self) -> int:
        """A small number per thread of this trace."""
        return self._row.thread

    @field
    def fwd_thread(self) -> int:
        """For a backward operator: torch's number of the thread that ran its forward one; 0 for all others."""
        return int(self.args.get("Fwd thread id", 0))

    @field
    def sequence_nr(self) -> int:
        return int(self.args.get("Sequence number", -1))

    @field
    def scope(self) -> int:
        """at::RecordScope: 0 an operator, 1 a backward function, 7 a range of the program."""
        row = self._row
        if row.is_annotation and not row.on_device:
            return _USER_SCOPE
        if row.category != "cpu_op":
            return _FUNCTION
        # A trace does not say which rows torch ran as backward functions. They are what the engine's own row of the same
        # name encloses, and other rows that name a forward thread.
        parent = self.cpu_parent
        if parent is not None and parent.name == _ENGINE + row.name:
            return _BACKWARD_FUNCTION
        return _BACKWARD_FUNCTION if self.fwd_thread != 0 and not row.name.startswith(_ENGINE) else _FUNCTION

    @field
    def input_shapes(self) -> List[Any]:
        """One list of sizes an input; a list of tensors shows as [], see :attr:`structured_input_shapes`."""
        return [[] if shape and isinstance(shape[0], list) else shape for shape in self.structured_input_shapes]

    @field
    def structured_input_shapes(self) -> List[Any]:
        return self.args.get("Input Dims") or []

    @field
    def structured_input_strides(self) -> List[Any]:
        return self.args.get("Input Strides") or []

    @field
    def input_dtypes(self) -> List[str]:
        return self.args.get("Input type") or []

    @field
    def concrete_inputs(self) -> List[Any]:
        """The values of inputs that are no tensors, as Python values; None for tensors."""
        return [copied(concrete_value(text)) for text in self.args.get("Concrete Inputs") or []]

    @field
    def kwinputs(self) -> Dict[str, Any]:
        """Keyword arguments, for ranges and operators to which torch passes some."""
        if self._row.category not in _CALLS:
            return {}
        fields = METADATA_KEYS if "Collective name" in self.args else ()
        return {key: value for key, value in self.args.items() if key not in _NOT_KEYWORDS and key not in fields}

    @field
    def flops(self) -> int:
        """Floating point operations, from the shapes; 0 without ``with_flops``."""
        return self._from.core.flops(self._from.trace, self._at) if self._from.with_flops else 0

    @field
    def stack(self) -> List[str]:
        """Python frames "file.py(line): function", innermost first; a backward operator has those of its forward one.

        As in torch.profiler the frames are functions with their first lines, C functions and modules. Where no Python
        frames were recorded, and with ``style="lanescope"``, they are the lines of the calls, which
        ``args["Call stack"]`` has in any case.
        """
        return self._from.stack_of(self._at)

    @field
    def event_metadata(self) -> Optional[EventMetadata]:
        if self._row.category in _CALLS and "Collective name" not in self.args:
            return None  # a keyword argument may have any name
        found = {METADATA_KEYS[key]: value for key, value in self.args.items() if key in METADATA_KEYS}
        for name in METADATA_TEXTS & found.keys():
            if not isinstance(found[name], str):
                found[name] = json.dumps(found[name])
        return EventMetadata(**found) if found else None

    @field
    def is_async(self) -> bool:
        return self._row.is_async

    @field
    def is_user_annotation(self) -> bool:
        return self._row.is_annotation

    @field
    def is_python_function(self) -> bool:
        return self._row.category == "python_function"

    @field
    def python_id(self) -> int:
        return int(self.args.get("Python id", -1))

    @field
    def python_parent_id(self) -> int:
        return int(self.args.get("Python parent id") or -1)

    @field
    def python_module_id(self) -> int:
        return int(self.args.get("Python module id", -1))

    @field
    def activity_type(self) -> Optional[str]:
        """The trace's category: "cpu_op", "user_annotation", "kernel", ...; None: a memory record by itself."""
        return None if self._row.slice is None else self._row.category

    @field
    def metadata_json(self) -> str:
        """Empty, as in torch without ``expose_kineto_event_metadata``; :attr:`args` has the arguments."""
        return ""

    @field
    def metadata(self) -> Optional[Dict[str, Any]]:
        """None, as in torch without ``expose_kineto_event_metadata``; :attr:`args` has the arguments."""
        return None

    @field
    def flow_id(self) -> int:
        """Number of the arrow from a forward operator to its backward one, equal at both ends; 0: no arrow."""
        return self._flow[0]

    @field
    def flow_type(self) -> int:
        """1: from a forward operator to its backward one; 0: no arrow."""
        return _FORWARD_BACKWARD if self._flow[0] else 0

    @field
    def flow_start(self) -> bool:
        return self._flow[1]

    @property
    def _flow(self) -> Tuple[int, bool]:
        return self._from.flow_at(self._row.thread, self._row.slice)

    @field
    def use_device(self) -> Optional[str]:
        return self._from.device

    @field
    def device_type(self) -> DeviceType:
        """torch's own DeviceType where torch is loaded."""
        return device_type(self._row.on_device, self._from.core.device)

    @field
    def device_index(self) -> int:
        """For device work the device's number; for all others the process id, as in torch.profiler."""
        return int(self.args.get("device", 0)) if self._row.on_device else self._row.process or 0

    @field
    def device_resource_id(self) -> int:
        """For device work its stream; for all others the operating system's number of the thread."""
        if self._row.on_device:
            return int(self.args.get("stream", self._row.thread))
        return self._row.thread if self._row.os_thread is None else self._row.os_thread

    @field
    def cpu_memory_usage(self) -> int:
        return self._row.cpu_memory_bytes

    @field
    def device_memory_usage(self) -> int:
        return self._row.device_memory_bytes

    @field
    def kernels(self) -> List[Kernel]:
        made = []
        for at in self._row.kernels:
            kernel = self._from.event(at)
            made.append(Kernel(kernel.name, kernel.device_index, kernel.time_range.elapsed_us()))
        return made

    @field
    def cpu_parent(self) -> Optional["FunctionEvent"]:
        return None if self._row.parent is None else self._from.event(self._row.parent)

    @field
    def cpu_children(self) -> List["FunctionEvent"]:
        return [self._from.event(at) for at in self._row.children]

    def append_kernel(self, name: str, device: int, duration: float) -> None:
        """For a program that builds events itself, like the next two: device work of this operator, in microseconds."""
        self._must_be_on_cpu("append_kernel")
        self.__dict__["kernels"] = [*self.kernels, Kernel(name, device, duration)]

    def append_cpu_child(self, child: "FunctionEvent") -> None:
        """``child`` is called by this event; tell it so with its :meth:`set_cpu_parent`."""
        self._must_be_on_cpu("append_cpu_child")
        child._must_be_on_cpu("append_cpu_child")
        self.__dict__["cpu_children"] = [*self.cpu_children, child]

    def set_cpu_parent(self, parent: "FunctionEvent") -> None:
        """``parent`` calls this event."""
        self._must_be_on_cpu("set_cpu_parent")
        parent._must_be_on_cpu("set_cpu_parent")
        self.__dict__["cpu_parent"] = parent

    def _must_be_on_cpu(self, method: str) -> None:
        if not self._on_cpu:
            raise AssertionError(f"{method}: expected events of the CPU, found {self.name!r} of {self.device_type.name}")

    @property
    def _on_cpu(self) -> bool:
        return self._row.on_device is False if self._source is not None else self.device_type.name == "CPU"

    def __reduce_ex__(self, protocol: Any) -> Tuple[Any, ...]:
        return _bare_event, (), {name: getattr(self, name) for name in _FIELDS}

    def __setstate__(self, fields: Dict[str, Any]) -> None:
        self.__dict__.update(fields)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FunctionEvent):
            return NotImplemented
        if self._source is None or other._source is None:
            return self is other
        return self._source.core is other._source.core and self._at == other._at

    def __hash__(self) -> int:
        return id(self) if self._source is None else hash((id(self._source.core), self._at))

    def __repr__(self) -> str:
        return (
            f"<FunctionEvent {self.name!r}: thread {self.thread}, start {format_time(self.time_range.start)}, "
            f"CPU {self.cpu_time_total_str} (self {self.self_cpu_time_total_str}), device {self.device_time_total_str}"
            f"{shapes_and_memory(self)}>"
        )


_FIELDS = ("id", "name", "thread", "time_range", *FIELD_DEFAULTS)


def _bare_event() -> FunctionEvent:
    return FunctionEvent(0, "", 0, 0.0, 0.0)
