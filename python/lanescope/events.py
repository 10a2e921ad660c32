"""Every recorded event, one object each, made when it is looked at; and the same as numpy columns."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, Dict, Iterable, List, Optional, Union

from . import _core
from ._lazy_list import LazyList
from ._torch_types import instance_of
from ._warnings import warn
from .function_event import Source
from .tables import Table, UnknownSortKey, add_up, group_rows, table_of_rows

if TYPE_CHECKING:
    import numpy
    import numpy.typing

    from .averages import FunctionEventAvg, KeyAverages

STACK_METRICS = (
    "self_cpu_time_total",
    "self_cuda_time_total",
    "self_xpu_time_total",
    "self_privateuse1_time_total",
    "self_device_time_total",
)
_NOT_IN_STACKS = str.maketrans(" ;\t\n", "____")


def _say_no_python_functions() -> None:
    warn(
        "lanescope: include_python_functions changes nothing: this list holds no calls of Python functions; "
        "key_averages() of the profile has them",
        once=True,
    )


class EventList(LazyList[Any]):
    """Events in order of (start, longer first), without the rows that torch.profiler leaves out: a list, as in torch.

    ``EventList(trace)`` has the events of a trace, made when they are first read. ``trace`` has the same and more as numpy
    columns in nanoseconds, :meth:`column` the columns of this list. ``EventList(events)`` holds a choice of them, for its
    :meth:`table`, :meth:`key_averages` and so on; its arguments are torch's.
    """

    if not TYPE_CHECKING:
        __class__ = instance_of("EventList")

    def __init__(
        self,
        events: Union[_core.Trace, Iterable[Any]] = (),
        *,
        use_device: Optional[str] = None,
        profile_memory: Optional[bool] = None,
        with_flops: Optional[bool] = None,
        style: str = "torch",
        warning: str = "",
    ) -> None:
        self._warning = warning
        self._style = style
        self._source: Optional[Source] = None
        self._use_device = use_device
        self._profile_memory = profile_memory
        self._with_flops = with_flops
        if not isinstance(events, _core.Trace):
            super().__init__(events)
            return
        super().__init__()
        source = self._source = Source(events, style, with_flops)
        kept = source.core.kept
        # The profile's: torch's events have it whether or not the GPU did anything.
        self._use_device = source.device = source.device or use_device
        self._with_flops = source.with_flops
        self._later(len(kept), lambda: [source.event(at) for at in kept])

    def _state(self) -> Dict[str, Any]:
        return {
            "_warning": self._warning,
            "_style": self._style,
            "_source": None,
            "_use_device": self._use_device,
            "_profile_memory": self._profile_memory,
            "_with_flops": self._with_flops,
        }

    @property
    def trace(self) -> _core.Trace:
        """The trace of this list. Raises ValueError for a list that a program made."""
        return self._whole().trace

    def _whole(self) -> Source:
        if self._source is None:
            raise ValueError("this list was made from single events, not from a trace")
        return self._source

    def column(self, name: str) -> "numpy.typing.NDArray[Any]":
        """One of slice, name_id, start_us, end_us, thread, on_device, is_annotation, parent, cpu_memory_bytes,
        device_memory_bytes as a read-only numpy view without copying, the same object each time.

        Rows are all events, those merged into their parents (column is_removed) included; ``parent`` indexes them.
        """
        return self._whole().column(name)

    @property
    def names(self) -> List[str]:
        """What column name_id indexes."""
        return self._whole().core.names

    def table(
        self,
        sort_by: Optional[str] = None,
        row_limit: Optional[int] = 100,
        max_src_column_width: Optional[int] = 75,
        max_name_column_width: Optional[int] = 55,
        max_shapes_column_width: Optional[int] = 80,
        header: Optional[str] = None,
        top_level_events_only: bool = False,
        time_unit: Optional[str] = None,
    ) -> Table:
        """torch's table of these rows, as text. ``time_unit`` is "s", "ms", "us" or None (each cell its own);
        ``row_limit`` -1 or None: all rows.

        Raises InvalidArgumentError for a sort key that does not exist, and names those that do; it is an AttributeError, too,
        as in torch.
        """
        try:
            text = self._rows(sort_by).table(
                sort_by=sort_by,
                row_limit=-1 if row_limit is None else row_limit,
                max_src_column_width=max_src_column_width,
                max_name_column_width=max_name_column_width,
                max_shapes_column_width=max_shapes_column_width,
                header=header,
                top_level_events_only=top_level_events_only,
                time_unit=time_unit,
            )
        except _core.InvalidArgumentError as error:
            if sort_by and sort_by not in _core.table_sort_keys():
                raise UnknownSortKey(error) from None
            raise
        if len(self) == 0 and self._warning:
            text += f"{self._warning}\n"
        return Table(text)

    def _rows(self, sort_by: Optional[str]) -> _core.KeyAverages:
        return table_of_rows(self, sort_by, self._use_device, bool(self._profile_memory), bool(self._with_flops))

    def key_averages(
        self,
        group_by_input_shapes: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
        include_python_functions: bool = False,
    ) -> "KeyAverages":
        """Sums per operator name. ``include_python_functions``: as :meth:`lanescope.profile.key_averages` says."""
        from .averages import KeyAverages

        events: Optional[Iterable[Any]] = self if self._source is None or self._is_own else None
        if include_python_functions:
            if self._source is None or self._is_own or self._style != "torch":
                _say_no_python_functions()
            else:
                events = self._source.with_frames()
        if events is not None:
            rows = group_rows(events, group_by_input_shapes, group_by_stack_n, group_by_overload_name)
            return KeyAverages(
                rows,
                use_device=self._use_device,
                profile_memory=self._profile_memory,
                with_flops=self._with_flops,
                warning=self._warning,
            )
        assert self._source is not None
        return KeyAverages(
            self._source.trace,
            group_by_input_shape=group_by_input_shapes,
            group_by_stack_n=group_by_stack_n,
            group_by_overload_name=group_by_overload_name,
            use_device=self._use_device,
            profile_memory=self._profile_memory,
            with_flops=self._with_flops,
            style=self._style,
            warning=self._warning,
        )

    def total_average(self) -> "FunctionEventAvg":
        """All of it added up; its key is "Total"."""
        return add_up(self)

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds; all threads added up."""
        if self._source is not None and not self._is_own:
            return self.key_averages().self_cpu_time_total
        return float(sum(row.self_cpu_time_total for row in self))

    def export_chrome_trace(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Chrome trace JSON: of the whole trace, or of the events of a list that a program made."""
        if self._source is not None and not self._is_own:
            return _core.write_kineto_json(self._source.trace, os.fspath(path))
        rows = [
            {"name": event.trace_name, "ph": "X", "ts": event.time_range.start, "dur": event.time_range.elapsed_us(),
             "tid": event.thread, "pid": "CPU functions", "args": {}}
            for event in self
            if event.trace_name is not None
        ]  # fmt: skip
        with open(path, "w", encoding="utf-8") as file:
            json.dump(rows, file)

    def supported_export_stacks_metrics(self) -> List[str]:
        """What :meth:`export_stacks` takes."""
        return list(STACK_METRICS)

    def export_stacks(self, path: Union[str, "os.PathLike[str]"], metric: str) -> None:
        """See :meth:`profile.export_stacks`."""
        if metric not in STACK_METRICS:
            raise ValueError(f"metric should be one of: {', '.join(STACK_METRICS)}; found {metric!r}")
        name = metric.replace("cuda", "device").replace("xpu", "device").replace("privateuse1", "device")
        events: Iterable[Any] = self
        if self._source is not None and not self._is_own and self._source.style == "torch":
            # torch.profiler's lists hold the Python frames, so that their own time is in the file as well.
            events = self._source.with_frames()
        with open(path, "w", encoding="utf-8") as file:
            for event in events:
                value = int(getattr(event, name)) if event.stack else 0
                if value > 0:
                    frames = ";".join(frame.translate(_NOT_IN_STACKS) for frame in reversed(event.stack))
                    file.write(f"{frames} {value}\n")

    def __str__(self) -> str:
        return str(self.table())

    def __repr__(self) -> str:
        because = f" ({self._warning})" if self._warning and not len(self) else ""
        return f"<lanescope.EventList: {len(self)} events{because}>"
