"""Time per operator name: the rows of torch's table, and the table."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Dict, Iterable, List, Optional, Union

from . import _core
from ._device import DeviceType, TimeTexts, device_type, format_time
from ._torch_types import instance_of
from .event_values import shapes_and_memory
from .events import EventList
from .function_event import FunctionEvent, Source
from .tables import Row, add_up


class _First:
    """The first event of each row, made only for a program that asks for it: one list of events for all rows."""

    def __init__(self, trace: _core.Trace, style: str) -> None:
        self._trace = trace
        self._style = style
        self._source: Optional[Source] = None

    def event(self, at: int) -> FunctionEvent:
        if self._source is None:
            self._source = Source(self._trace, self._style)
        return self._source.event(at)


def _made(kind: Any) -> Any:
    return kind.__new__(kind)


class FunctionEventAvg(TimeTexts, Row):
    """One row of :class:`KeyAverages`: all events of one name. Times in microseconds, memory in bytes.

    Fields are those of torch.profiler's FunctionEventAvg; each is defined in docs/definitions/key_averages.md.
    """

    if not TYPE_CHECKING:
        __class__ = instance_of("FunctionEventAvg")

        def __reduce_ex__(self, protocol: Any) -> Any:  # pickle refuses object's, which names another class than __class__
            reduced = super().__reduce_ex__(max(protocol, 2))
            return (_made, (type(self),), *reduced[2:])

    def __init__(self) -> None:
        self.key: Any = None  # a text; None before the first :meth:`add`
        self.overload_name: Any = None
        self.input_shapes: Any = None
        self.stack: List[str] = []
        self.count = 0
        self.node_id = 0
        self.is_async = False
        self.is_remote = False
        self.is_legacy = False
        self.is_user_annotation = False
        self.use_device: Optional[str] = None
        self.device_type: DeviceType = DeviceType["CPU"]
        self.cpu_time_total = 0.0
        self.self_cpu_time_total = 0.0
        self.device_time_total = 0.0
        self.self_device_time_total = 0.0
        self.cpu_memory_usage = 0
        self.self_cpu_memory_usage = 0
        self.device_memory_usage = 0
        self.self_device_memory_usage = 0
        self.flops = 0
        self._first: Optional[FunctionEvent] = None
        self._events: Optional[_First] = None  # makes _first, with the row's number below
        self._at = -1
        self._top_level: Optional[bool] = None

    @classmethod
    def _of(cls, row: _core.KeyAverage, device: str, events: Optional[_First] = None) -> FunctionEventAvg:
        made = cls()
        made.key = row.name
        made.overload_name = row.overload_name
        made.input_shapes = json.loads(row.input_shapes) if row.input_shapes else ""
        made.stack = row.stack
        made.count = row.count
        made.node_id = -1
        made.is_async = row.is_async
        made.is_user_annotation = row.is_annotation
        made.use_device = device or None
        made.device_type = device_type(row.on_device, device)
        made.cpu_time_total = row.cpu_time_total_us
        made.self_cpu_time_total = row.self_cpu_time_total_us
        made.device_time_total = row.device_time_total_us
        made.self_device_time_total = row.self_device_time_total_us
        made.cpu_memory_usage = row.cpu_memory_bytes
        made.self_cpu_memory_usage = row.self_cpu_memory_bytes
        made.device_memory_usage = row.device_memory_bytes
        made.self_device_memory_usage = row.self_device_memory_bytes
        made.flops = row.flops
        made._events, made._at, made._top_level = events, row.first_event, row.is_top_level
        return made

    def add(self, other: Any) -> FunctionEventAvg:
        """Adds an event or another row of the same key; the first one gives its name, stack and so on."""
        if self.key is None:
            for name in ("key", "node_id", "is_async", "is_remote", "overload_name", "input_shapes", "stack", "device_type",
                         "is_legacy", "use_device", "is_user_annotation"):  # fmt: skip
                setattr(self, name, getattr(other, name))
            self._first, self._events = (other, None) if isinstance(other, FunctionEvent) else (other._first, other._events)
            self._at, self._top_level = getattr(other, "_at", -1), other._is_top_level
        is_row: bool = isinstance(other, Row)
        if not is_row:
            raise AssertionError(f"expected a FunctionEvent or a FunctionEventAvg; found {type(other).__name__}")
        if other.key != self.key:
            raise AssertionError(f"rows of one key are added up; found {other.key!r} and {self.key!r}")
        self.cpu_time_total += other.cpu_time_total
        self.device_time_total += other.device_time_total
        self.self_cpu_time_total += other.self_cpu_time_total
        self.self_device_time_total += other.self_device_time_total
        self.cpu_memory_usage += other.cpu_memory_usage
        self.device_memory_usage += other.device_memory_usage
        self.self_cpu_memory_usage += other.self_cpu_memory_usage
        self.self_device_memory_usage += other.self_device_memory_usage
        self.count += other.count
        self.flops += other.flops or 0
        return self

    def __iadd__(self, other: Any) -> FunctionEventAvg:
        return self.add(other)

    def _first_event(self) -> Optional[FunctionEvent]:
        if self._first is None and self._events is not None:
            self._first = self._events.event(self._at)
        return self._first

    @property
    def scope(self) -> Optional[int]:
        """Of the row's first event, like the next two: at::RecordScope."""
        first = self._first_event()
        return None if first is None else first.scope

    @property
    def cpu_parent(self) -> Optional[FunctionEvent]:
        first = self._first_event()
        return None if first is None else first.cpu_parent

    @property
    def cpu_children(self) -> Optional[List[FunctionEvent]]:
        first = self._first_event()
        return None if first is None else first.cpu_children

    @property
    def _is_top_level(self) -> bool:
        return self.cpu_parent is None if self._top_level is None else self._top_level

    def __getstate__(self) -> Dict[str, Any]:
        self._first_event()
        return {**self.__dict__, "_events": None}

    @property
    def name(self) -> str:
        return str(self.key)

    @property
    def cpu_time(self) -> float:
        """Total CPU time per call, microseconds."""
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def device_time(self) -> float:
        """Total device time per call, microseconds."""
        return self.device_time_total / self.count if self.count else 0.0

    # torch's older names for the same numbers.
    @property
    def cuda_time(self) -> float:
        return self.device_time

    @property
    def cuda_time_total(self) -> float:
        return self.device_time_total

    @property
    def self_cuda_time_total(self) -> float:
        return self.self_device_time_total

    @property
    def cuda_memory_usage(self) -> int:
        return self.device_memory_usage

    @property
    def self_cuda_memory_usage(self) -> int:
        return self.self_device_memory_usage

    def __repr__(self) -> str:
        calls = "1 call" if self.count == 1 else f"{self.count} calls"
        return (
            f"<FunctionEventAvg {self.key!r}: {calls}, CPU {self.cpu_time_total_str} "
            f"(self {self.self_cpu_time_total_str}), device {self.device_time_total_str}{shapes_and_memory(self)}>"
        )


class KeyAverages(EventList):
    """Rows in order of first appearance, and torch's table of them: a list, as in torch.

    ``style="torch"`` (default here, so that numbers equal torch.profiler's) or ``"lanescope"``, which corrects what
    docs/definitions/key_averages.md lists. ``cycles`` says which cycles the rows cover, if they come from a profile.
    """

    cycles: Optional[range] = None

    def __init__(
        self,
        trace: Union[_core.Trace, Iterable[FunctionEventAvg]] = (),
        *,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
        **shown: Any,
    ) -> None:
        """``shown``: what :class:`EventList` takes."""
        super().__init__(() if isinstance(trace, _core.Trace) else trace, **shown)
        self._averages: Optional[_core.KeyAverages] = None
        if not isinstance(trace, _core.Trace):
            return
        averages = self._averages = _core.key_averages(
            trace,
            style=self._style,
            group_by_input_shape=group_by_input_shape,
            group_by_stack_n=max(group_by_stack_n, 0),  # as torch
            group_by_overload_name=group_by_overload_name,
            profile_memory=self._profile_memory,
            with_flops=self._with_flops,
        )
        device = averages.device or self._use_device or ""
        self._use_device = device or None
        self._profile_memory, self._with_flops = averages.profile_memory, averages.with_flops
        first = _First(trace, self._style)
        self._later(
            len(averages), lambda: [FunctionEventAvg._of(row, device, first) for row in averages.rows]
        )

    def _state(self) -> Dict[str, Any]:
        return {**super()._state(), "_averages": None, "cycles": self.cycles}

    def _recorded(self, sort_by: Optional[str] = None) -> _core.KeyAverages:
        """The rows as they were computed, unless the program has changed the list."""
        return super()._rows(sort_by) if self._averages is None or self._is_own else self._averages

    def _rows(self, sort_by: Optional[str] = None) -> _core.KeyAverages:
        # The program may have changed attributes of its rows. "lanescope" shows more than they have.
        if self._load is None and self._averages is not None and self._style == "torch":
            return super()._rows(sort_by)
        return self._recorded(sort_by)

    def key_averages(
        self,
        group_by_input_shapes: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
        include_python_functions: bool = False,
    ) -> KeyAverages:
        """Its own rows: they are averages already. Raises AssertionError, as torch does."""
        raise AssertionError("these are averages already; call key_averages() of the events")

    def json(self, sort_by: Optional[str] = None, row_limit: int = -1) -> str:
        """The rows as the JSON that ``lanescope table --json`` prints."""
        return self._recorded(sort_by).json(sort_by=sort_by, row_limit=row_limit)

    def csv(self, sort_by: Optional[str] = None, row_limit: int = -1) -> str:
        """The rows as the CSV that ``lanescope table --csv`` prints."""
        return self._recorded(sort_by).csv(sort_by=sort_by, row_limit=row_limit)

    def total_average(self) -> FunctionEventAvg:
        """All rows added up; its key is "Total"."""
        if self._averages is None or self._load is None:
            return add_up(self)
        return FunctionEventAvg._of(self._averages.total(), self._averages.device)

    @property
    def self_cpu_time_total(self) -> float:
        """Self CPU time of all rows, microseconds: all threads added up, idle gaps not included."""
        return self.total_average().self_cpu_time_total

    def __repr__(self) -> str:
        of = "" if self.cycles is None else f", {cycles_text(self.cycles)}"
        return f"<lanescope.KeyAverages: {len(self)} rows, self CPU {format_time(self.self_cpu_time_total)}{of}; print() it>"

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


def cycles_text(cycles: range) -> str:
    """Which of a profile's recorded cycles, counted from 1: "cycle 3 of 3", "cycles 1 to 3"."""
    if len(cycles) == 0:
        return "no cycle"
    if len(cycles) == 1:
        return f"cycle {cycles.start} of {cycles.start}"
    return f"cycles {cycles.start} to {cycles.stop - 1}"


def key_averages(trace: _core.Trace, **options: Any) -> KeyAverages:
    """:class:`KeyAverages` of a trace that was read from a file; options as there."""
    return KeyAverages(trace, **options)
