"""lanescope: record, read and explain what a PyTorch program does on its CPU and GPU lanes.

To move a program to lanescope, replace ``from torch.profiler import ...`` by ``from lanescope import ...``. Nothing else
changes (docs/decisions/python_package.md lists what still differs)::

    from lanescope import profile, record_function, schedule

    with profile(schedule=schedule(wait=1, warmup=1, active=3)) as prof:
        for batch in batches:
            with record_function("train_step"):
                train(batch)
            prof.step()
    print(prof.key_averages().table(sort_by="cpu_time_total", row_limit=15))
    prof.export_chrome_trace("trace.json.gz")

``import lanescope`` imports neither torch nor numpy.
"""

from __future__ import annotations

from typing import Any

from . import _dynamo
from ._activities import ProfilerActivity, supported_activities
from ._autorecord import step
from ._core import (
    CorruptInputError,
    Error,
    InvalidArgumentError,
    IoError,
    LimitError,
    Trace,
    UnavailableError,
    UnsupportedError,
    record_function,
)
from ._device import DeviceType
from ._schedule import ProfilerAction, schedule
from ._tensorboard import tensorboard_trace_handler
from ._version import __version__
from ._view import SavedView, View, view
from .averages import FunctionEventAvg, KeyAverages, key_averages
from .event_names import EventName, event_name
from .events import EventList
from .explanations import CpuWall, CpuWalls, DeviceWalls, Evidence, Explanation, Finding, NotChecked, Wall, explain
from .function_event import FunctionEvent
from .kernel_names import KernelName, kernel_name
from .profiler import profile
from .ranks import Hang, JobVerdict, Ranks, RanksCheck, RanksDiff, read_hang, read_ranks
from .tables import Table
from .traces import dispatch_tree, dispatch_tree_data, info, info_data, kineto_json, read, read_trace, sql, sql_schema, write_kineto_json

__all__ = [
    "CorruptInputError",
    "DeviceType",
    "CpuWall",
    "CpuWalls",
    "DeviceWalls",
    "Error",
    "EventList",
    "EventName",
    "Evidence",
    "Explanation",
    "Finding",
    "FunctionEvent",
    "FunctionEventAvg",
    "InvalidArgumentError",
    "IoError",
    "KernelName",
    "KeyAverages",
    "LimitError",
    "NotChecked",
    "ProfilerAction",
    "ProfilerActivity",
    "SavedView",
    "Table",
    "Trace",
    "UnavailableError",
    "UnsupportedError",
    "View",
    "Wall",
    "__version__",
    "dispatch_tree",
    "dispatch_tree_data",
    "event_name",
    "explain",
    "info",
    "info_data",
    "kernel_name",
    "key_averages",
    "kineto_json",
    "profile",
    "read_hang",
    "read_ranks",
    "read",
    "read_trace",
    "record_function",
    "schedule",
    "sql",
    "sql_schema",
    "step",
    "supported_activities",
    "tensorboard_trace_handler",
    "view",
    "write_kineto_json",
]

# torch's own objects, for programs that import everything from lanescope. Such a program may import lanescope before torch.
_OF_TORCH = ("ExecutionTraceObserver", "KinetoStepTracker", "RecordScope", "_ExperimentalConfig", "itt", "kineto_available")
_KinetoProfile = profile  # in torch.profiler, the base class of profile, with fewer arguments


def __getattr__(name: str) -> Any:
    if name not in _OF_TORCH:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from torch import profiler
    except ImportError as error:
        raise AttributeError(f"lanescope.{name} is torch.profiler's, and torch cannot be imported: {error}") from None
    return getattr(profiler, name)


_dynamo.watch()
