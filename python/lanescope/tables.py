"""Tables of rows in Python: events or averages that the user chose, grouped, summed, printed."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any, Dict, Iterable, List, Optional, Tuple

from . import _core

if TYPE_CHECKING:
    from .averages import FunctionEventAvg


class Table(str):
    """A table as text; in a notebook it shows in a fixed-width font, escaped."""

    def _repr_html_(self) -> str:
        style = "line-height:1.2;overflow-x:auto;white-space:pre"
        return f'<pre style="{style}">{html.escape(str(self))}</pre>'


class Row:
    """What a table can contain: an event or an average."""

    __slots__ = ()


class UnknownSortKey(_core.InvalidArgumentError, AttributeError):
    """A table cannot be sorted by this. Also an AttributeError, which torch.profiler raises."""

    def __init__(self, error: _core.InvalidArgumentError) -> None:
        super().__init__(str(error))
        self.code, self.offset = error.code, error.offset


def sort_attribute(sort_by: str) -> str:
    """torch sorts by an attribute of the rows, with its older names for device."""
    return sort_by.replace("cuda", "device").replace("xpu", "device").replace("privateuse1", "device")


def table_of_rows(
    rows: Iterable[Any], sort_by: Optional[str], use_device: Optional[str], profile_memory: bool, with_flops: bool
) -> _core.KeyAverages:
    """The rows for the table's code, already sorted by an attribute that only Python knows."""
    chosen = list(rows)
    if sort_by is not None and chosen and all(hasattr(row, sort_attribute(sort_by)) for row in chosen):
        chosen.sort(key=lambda row: getattr(row, sort_attribute(sort_by)), reverse=True)
    device = (chosen[0].use_device if chosen else None) or use_device or ""
    return _core.key_averages_of_rows(device, profile_memory, with_flops, [_fields(row) for row in chosen])


def _fields(row: Any) -> Tuple[Any, ...]:
    shapes = row.input_shapes
    return (
        row.key,
        row.overload_name or "",
        "" if shapes is None else str(shapes),
        list(row.stack or ()),
        row.device_type.name != "CPU",
        bool(row.is_user_annotation),
        bool(row.is_async),
        row._is_top_level,
        row.count,
        float(row.cpu_time_total),
        float(row.self_cpu_time_total),
        float(row.device_time_total),
        float(row.self_device_time_total),
        int(row.cpu_memory_usage),
        int(row.self_cpu_memory_usage),
        int(row.device_memory_usage),
        int(row.self_device_memory_usage),
        int(row.flops or 0),
    )


def group_rows(events: Iterable[Any], by_shapes: bool, by_stack_n: int, by_overload: bool) -> List["FunctionEventAvg"]:
    """One row a group, in order of first appearance; torch's key_averages of a list of events."""
    from .averages import FunctionEventAvg

    groups: Dict[Tuple[Any, ...], FunctionEventAvg] = {}
    for event in events:
        key: Tuple[Any, ...] = (event.key, event.node_id, event.device_type.name, bool(event.is_user_annotation))
        if by_overload:
            key += (event.overload_name,)
        if by_shapes:
            key += (str(event.input_shapes),)
        if by_stack_n > 0:
            key += tuple(event.stack[:by_stack_n])
        groups.setdefault(key, FunctionEventAvg()).add(event)
    for row in groups.values():
        row.stack = list(row.stack or ())[:by_stack_n]
        if not by_shapes:
            row.input_shapes = ""
        if not by_overload:
            row.overload_name = ""
    return list(groups.values())


def add_up(rows: Iterable[Any]) -> "FunctionEventAvg":
    """All of it in one row, whose key is "Total"."""
    from .averages import FunctionEventAvg

    total = FunctionEventAvg()
    for row in rows:
        total.add(row)
        total.key = None
    total.key = "Total"
    return total
