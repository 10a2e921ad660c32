"""Trace files: read, describe, show as a tree, write."""

from __future__ import annotations

import json
import os
from typing import Any, Callable, Dict, Optional, Union

from . import _core
from ._warnings import warn_about
from .tables import Table

PathLike = Union[str, "os.PathLike[str]"]


def file_of(path: PathLike) -> str:
    """The path of a file, or of the newest trace in the folder, which a warning names when there are others."""
    text = os.fspath(path)
    if not os.path.isdir(text):
        return text
    newest, line, is_choice = _core.newest_trace_in(text)
    if is_choice:
        warn_about(line)
    return newest


def read_trace(
    path: PathLike,
    *,
    window: str = "",
    step: Optional[int] = None,
    category: str = "",
    progress: Optional[Callable[[int, int], Any]] = None,
) -> _core.Trace:
    """A trace file as columns: JSON of torch.profiler, Kineto or Chrome (plain, gzip, zstd), or a lanescope recording.

    A folder means the newest trace in it, as for the commands (docs/cli.md, "Input"), also the recording of a killed process;
    a warning names the trace when there are others. ``progress`` is called with bytes read and the file's size (0: unknown). Damage is repaired or skipped and counted in ``Trace.import_stats``. Raises IoError,
    CorruptInputError, UnsupportedError or LimitError.

    ``window="10ms..12.5ms"`` reads only that part, in times since the start of the trace, and ``step=7`` only the part of
    that ProfilerStep, as the commands do with ``--window`` and ``--step``: slices that reach beyond an end are cut there
    (docs/definitions/reading.md). ``category="kernel,gpu_memcpy"`` reads only slices and marks of these categories, as
    ``--category`` does. Raises InvalidArgumentError for a window that cannot be read, or a step or a category that the trace lacks.

    An index of the trace is used where there is one, and one of a large trace is written into the user's cache folder;
    ``LANESCOPE_INDEX=off`` in the environment prevents both (docs/decisions/index_file.md). A warning says when a file of
    another program has the index's name.
    """
    file = file_of(path)
    trace = _core.read_trace(file, progress, window=window, step=step, category=category)
    other = _core.other_file_text(file)
    if other:
        warn_about(other)
    return trace


read = read_trace  # short, for notebooks


def opened(trace: Union[_core.Trace, PathLike]) -> _core.Trace:
    """The trace itself, or the one at that path."""
    return trace if isinstance(trace, _core.Trace) else read_trace(trace)


def write_kineto_json(trace: _core.Trace, path: PathLike) -> None:
    """Writes the trace as clean Kineto JSON: sorted, escaped, complete flows; ``.gz`` and ``.zst`` by the name."""
    _core.write_kineto_json(trace, os.fspath(path))


def kineto_json(trace: _core.Trace) -> str:
    """The text that :func:`write_kineto_json` would write, unpacked."""
    return _core.kineto_json(trace)


def dispatch_tree(
    trace: _core.Trace,
    *,
    step: Optional[int] = None,
    op: str = "",
    max_depth: int = 64,
    width: int = 120,
    max_rows: int = 400,
) -> Table:
    """What ``lanescope tree`` prints: step -> annotation -> operator -> launch -> kernel, with times.

    ``step`` shows one ProfilerStep, ``op`` only what lies under operators of that name. Raises InvalidArgumentError for a
    step that the trace lacks.
    """
    return Table(
        _core.dispatch_tree(trace, step=step, op=op, max_depth=max_depth, width=width, max_rows=max_rows, json=False)
    )


def dispatch_tree_data(trace: _core.Trace, *, step: Optional[int] = None, op: str = "") -> Dict[str, Any]:
    """The same as ``lanescope tree --json``, parsed; times in nanoseconds."""
    text = _core.dispatch_tree(trace, step=step, op=op, max_depth=64, width=120, max_rows=-1, json=True)
    data: Dict[str, Any] = json.loads(text)
    return data


def sql(
    trace: Union[_core.Trace, PathLike], query: str, *, frame: Optional[str] = None, timeout: Optional[float] = None
) -> Any:
    """The rows of a query in SQL over a trace, or over the path of one, as columns by name. See :meth:`Trace.sql`;
    :func:`sql_schema` lists the tables."""
    opened_trace = opened(trace)
    if frame is None:
        return opened_trace.sql(query, timeout=timeout)
    return opened_trace.sql(query, frame=frame, timeout=timeout)


def sql_schema(table: str = "") -> str:
    """The tables and views of SQL, or one of them: columns, units, meaning."""
    return _core.sql_schema(table)


def info(trace: Union[_core.Trace, PathLike]) -> Table:
    """What ``lanescope info`` prints: producer, devices, window, steps, events by category, what was lost or repaired;
    of a trace or of the path of one."""
    return Table(_core.trace_info(opened(trace), json=False))


def info_data(trace: Union[_core.Trace, PathLike]) -> Dict[str, Any]:
    """The same as ``lanescope info --json``, parsed."""
    data: Dict[str, Any] = json.loads(_core.trace_info(opened(trace), json=True))
    return data
