"""lanescope: record, read and explain what a PyTorch program does on its CPU and GPU lanes.

Replacing ``from torch.profiler import ...`` by ``from lanescope import ...`` is the whole migration::

    from lanescope import profile, record_function, schedule

    with profile(schedule=schedule(wait=1, warmup=1, active=3)) as prof:
        for batch in batches:
            with record_function("train_step"):
                train(batch)
            prof.step()
    print(prof.key_averages().table(sort_by="cpu_time_total", row_limit=15))
    prof.export_chrome_trace("trace.json.gz")

Importing it imports neither torch nor numpy.
"""

from __future__ import annotations

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
from ._version import __version__
from .averages import FunctionEventAvg, KeyAverages, Table, key_averages
from .event_names import EventName, event_name
from .events import EventList, FunctionEvent
from .explanations import CpuWall, CpuWalls, DeviceWalls, Evidence, Explanation, Finding, NotChecked, Wall, explain
from .kernel_names import KernelName, kernel_name
from .profiler import profile, tensorboard_trace_handler
from .traces import dispatch_tree, dispatch_tree_data, info, info_data, kineto_json, read_trace, write_kineto_json

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
    "Table",
    "Trace",
    "UnavailableError",
    "UnsupportedError",
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
    "read_trace",
    "record_function",
    "schedule",
    "step",
    "supported_activities",
    "tensorboard_trace_handler",
    "write_kineto_json",
]

_dynamo.watch()
