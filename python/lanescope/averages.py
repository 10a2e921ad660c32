"""Time per operator name: the rows behind torch's table, and the table."""

from __future__ import annotations

import html
from typing import Any, Iterator, List, Optional, Sequence, Union, overload

from . import _core
from ._device import DeviceType, TimeTexts, device_type, format_time


class FunctionEventAvg(TimeTexts):
    """One row of :class:`KeyAverages`: all events of one name. Times in microseconds, memory in bytes.

    Fields are those of torch.profiler's FunctionEventAvg; each is defined in docs/definitions.md#key-averages.
    """

    def __init__(self, row: _core.KeyAverage, device: str) -> None:
        self._row = row
        self.key: str = row.name
        self.overload_name: str = row.overload_name
        self.input_shapes: str = row.input_shapes
        self.stack: List[str] = row.stack
        self.count: int = row.count
        self.node_id = -1
        self.is_async: bool = row.is_async
        self.is_remote = False
        self.is_legacy = False
        self.is_user_annotation: bool = row.is_annotation
        self.use_device: Optional[str] = device or None
        self.device_type: DeviceType = device_type(row.on_device, device)
        self.cpu_time_total: float = row.cpu_time_total_us
        self.self_cpu_time_total: float = row.self_cpu_time_total_us
        self.device_time_total: float = row.device_time_total_us
        self.self_device_time_total: float = row.self_device_time_total_us
        self.cpu_memory_usage: int = row.cpu_memory_bytes
        self.self_cpu_memory_usage: int = row.self_cpu_memory_bytes
        self.device_memory_usage: int = row.device_memory_bytes
        self.self_device_memory_usage: int = row.self_device_memory_bytes
        self.flops: int = row.flops

    @property
    def name(self) -> str:
        return self.key

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

    @property
    def cpu_time_str(self) -> str:
        return format_time(self.cpu_time)

    @property
    def device_time_str(self) -> str:
        return format_time(self.device_time)

    @property
    def self_device_time_total_str(self) -> str:
        return format_time(self.self_device_time_total)

    def __repr__(self) -> str:
        return (
            f"<FunctionEventAvg {self.key!r}: {self.count} calls, CPU {self.cpu_time_total_str} "
            f"(self {self.self_cpu_time_total_str}), device {self.device_time_total_str}>"
        )


class Table(str):
    """A table as text; in a notebook it shows in a fixed-width font, escaped."""

    def _repr_html_(self) -> str:
        style = "line-height:1.2;overflow-x:auto;white-space:pre"
        return f'<pre style="{style}">{html.escape(str(self))}</pre>'


class KeyAverages(Sequence[FunctionEventAvg]):
    """Rows in order of first appearance, and torch's table of them.

    ``style="torch"`` (default here, so that numbers equal torch.profiler's) or ``"lanescope"``, which mends what
    docs/definitions.md#key-averages lists.
    """

    def __init__(
        self,
        trace: _core.Trace,
        *,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
        profile_memory: Optional[bool] = None,
        with_flops: Optional[bool] = None,
        style: str = "torch",
        empty_reason: str = "",
    ) -> None:
        self._averages = _core.key_averages(
            trace,
            style=style,
            group_by_input_shape=group_by_input_shape,
            group_by_stack_n=group_by_stack_n,
            group_by_overload_name=group_by_overload_name,
            profile_memory=profile_memory,
            with_flops=with_flops,
        )
        self._empty_reason = empty_reason
        self._rows: Optional[List[FunctionEventAvg]] = None

    def _all(self) -> List[FunctionEventAvg]:
        if self._rows is None:
            device = self._averages.device
            self._rows = [FunctionEventAvg(row, device) for row in self._averages.rows]
        return self._rows

    def __len__(self) -> int:
        return len(self._averages)

    @overload
    def __getitem__(self, index: int) -> FunctionEventAvg: ...
    @overload
    def __getitem__(self, index: slice) -> List[FunctionEventAvg]: ...
    def __getitem__(self, index: Union[int, slice]) -> Union[FunctionEventAvg, List[FunctionEventAvg]]:
        return self._all()[index]

    def __iter__(self) -> Iterator[FunctionEventAvg]:
        return iter(self._all())

    def table(
        self,
        sort_by: Optional[str] = None,
        row_limit: int = 100,
        max_src_column_width: Optional[int] = 75,
        max_name_column_width: Optional[int] = 55,
        max_shapes_column_width: Optional[int] = 80,
        header: Optional[str] = None,
        top_level_events_only: bool = False,
        time_unit: Optional[str] = None,
    ) -> Table:
        """torch's table as text. ``time_unit`` is "s", "ms", "us" or None (each cell its own); ``row_limit`` -1: all rows.

        Raises InvalidArgumentError for a sort key that does not exist, and names those that do.
        """
        text = self._averages.table(
            sort_by=sort_by,
            row_limit=row_limit,
            max_src_column_width=max_src_column_width,
            max_name_column_width=max_name_column_width,
            max_shapes_column_width=max_shapes_column_width,
            header=header,
            top_level_events_only=top_level_events_only,
            time_unit=time_unit,
        )
        if len(self) == 0 and self._empty_reason:
            text += f"{self._empty_reason}\n"
        return Table(text)

    def json(self, sort_by: Optional[str] = None, row_limit: int = -1) -> str:
        """The rows as the JSON that ``lanescope table --json`` prints."""
        return self._averages.json(sort_by=sort_by, row_limit=row_limit)

    def csv(self, sort_by: Optional[str] = None, row_limit: int = -1) -> str:
        """The rows as the CSV that ``lanescope table --csv`` prints."""
        return self._averages.csv(sort_by=sort_by, row_limit=row_limit)

    def total_average(self) -> FunctionEventAvg:
        """All rows added up; its key is "Total"."""
        return FunctionEventAvg(self._averages.total(), self._averages.device)

    @property
    def self_cpu_time_total(self) -> float:
        """Self CPU time of all rows, microseconds: all threads added up, idle gaps not included."""
        return sum(row.self_cpu_time_total for row in self._all())

    def __str__(self) -> str:
        return str(self.table())

    def __repr__(self) -> str:
        return f"<lanescope.KeyAverages: {len(self)} rows, self CPU {format_time(self.self_cpu_time_total)}; print() it>"

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


def key_averages(trace: _core.Trace, **options: Any) -> KeyAverages:
    """:class:`KeyAverages` of a trace that was read from a file; options as there."""
    return KeyAverages(trace, **options)
