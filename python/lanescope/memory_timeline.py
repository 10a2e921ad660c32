"""The files of torch.profiler's export_memory_timeline, from the allocations and frees of a trace.

torch sorts memory into parameters, gradients, activations and so on by the identities of all tensors that operators take
(:mod:`lanescope.tensor_identities`). In a trace without them all memory has torch's category "Unknown"; times, sizes and
actions are as in torch.
"""

from __future__ import annotations

import base64
import gzip
import importlib.util
import io
import json
import os
import tempfile
from typing import Any, Dict, List, Set, Tuple, Union

from . import _core

PREEXISTING, CREATE, DESTROY = 1, 2, 4  # torch's numbers of actions; 3 is a change of a known tensor
CATEGORIES = (  # in torch's order, with its colours; a file's sizes are in this order
    ("PARAMETER", "darkgreen"),
    ("OPTIMIZER_STATE", "goldenrod"),
    ("INPUT", "black"),
    ("TEMPORARY", "mediumpurple"),
    ("ACTIVATION", "red"),
    ("GRADIENT", "mediumblue"),
    ("AUTOGRAD_DETAIL", "royalblue"),
    ("Unknown", "grey"),
)
UNKNOWN = len(CATEGORIES) - 1
_DEVICES = {0: "cpu", 1: "cuda", 6: "hip", 12: "xpu", 15: "hpu", 19: "mtia", 20: "privateuseone"}

Event = Tuple[int, int, int]  # nanoseconds since 1970, or -1 for before the recording; action; bytes


def device_name(device_type: int, index: int) -> str:
    """torch's name of a device."""
    kind = _DEVICES.get(device_type, "cpu")
    return kind if kind == "cpu" else f"{kind}:{max(index, 0)}"


def device_of(args: Dict[str, Any]) -> str:
    """torch's name of the device of a memory record."""
    return device_name(int(args.get("Device Type", 0)), int(args.get("Device Id", 0)))


def memory_rows(trace: _core.Trace) -> List[int]:
    """The trace's instants that are allocations and frees."""
    names = trace.names
    return [at for at, name in enumerate(trace.instant_name_id) if names[name] == "[memory]"]


def memory_events(trace: _core.Trace, device: str) -> List[Event]:
    """In order of time. A free without an allocation was allocated before the recording: its allocation comes first, at -1."""
    if device != "cpu" and ":" not in device:
        device += ":0"
    before: List[Event] = []
    events: List[Event] = []
    live: Set[int] = set()
    for at in memory_rows(trace):
        args = trace.instant_args(at)
        if device_of(args) != device:
            continue
        time_ns = trace.base_time_ns + int(trace.instant_time_ns[at])
        size, address = int(args["Bytes"]), int(args["Addr"])
        if size > 0:
            live.add(address)
            events.append((time_ns, CREATE, size))
            continue
        events.append((time_ns, DESTROY, -size))
        if address not in live:
            before.append((-1, PREEXISTING, -size))
        live.discard(address)
    return before + events


def has_device_memory(trace: _core.Trace) -> bool:
    """Whether a memory record is about the first CUDA device."""
    names = trace.names
    return any(
        device_of(trace.instant_args(at)) == "cuda:0"
        for at, name in enumerate(trace.instant_name_id)
        if names[name] == "[memory]"
    )


def curve(events: List[Event]) -> Tuple[List[int], List[List[int]]]:
    """Times in microseconds, and bytes by category at each, after a 0 on which torch stacks the categories."""
    times: List[int] = []
    sizes: List[List[int]] = []
    for time_ns, action, size in events:
        time_us = time_ns if time_ns == -1 else time_ns // 1000
        if not times or time_us != times[-1]:
            times.append(time_us)
            sizes.append(list(sizes[-1]) if sizes else [0] * (len(CATEGORIES) + 1))
        sizes[-1][UNKNOWN + 1] += size if action != DESTROY else -size
    first = min((time for time in times if time != -1), default=0)
    return [first if time == -1 else time for time in times], sizes


def export(trace: _core.Trace, path: Union[str, "os.PathLike[str]"], device: str) -> None:
    """``.html`` a picture, ``.raw.json.gz`` each event, other ``.gz`` packed, the rest ``[times, sizes]`` as JSON.

    All memory is of the category "Unknown".
    """
    events = memory_events(trace, device)
    raw = [[time, action, -size if action == DESTROY else size, UNKNOWN] for time, action, size in events]
    _write(os.fspath(path), raw, curve(events))


def export_categories(profile: Any, path: Union[str, "os.PathLike[str]"], device: str) -> None:
    """The same files, with the categories that torch's MemoryProfile ``profile`` found."""
    theirs: Any = importlib.import_module("torch.profiler._memory_profiler")
    timeline = theirs.MemoryProfileTimeline(profile)
    name = os.fspath(path)
    raw: Any = []
    if name.endswith("raw.json.gz"):
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "raw.json")
            timeline.export_memory_timeline_raw(file, device)
            with open(file, encoding="utf-8") as written:
                raw = json.load(written)
    _write(name, raw, timeline._coalesce_timeline(device))


def _write(name: str, raw: List[List[int]], times_and_sizes: Tuple[List[int], List[List[int]]]) -> None:
    if name.endswith(".html"):
        _write_html(times_and_sizes, name)
        return
    data: Any = raw if name.endswith("raw.json.gz") else times_and_sizes
    if name.endswith(".gz"):
        with gzip.open(name, "wt", encoding="utf-8") as packed:
            json.dump(data, packed)
    else:
        with open(name, "w", encoding="utf-8") as file:
            json.dump(data, file)


def _write_html(times_and_sizes: Tuple[List[int], List[List[int]]], path: str) -> None:
    if importlib.util.find_spec("matplotlib") is None:
        print("export_memory_timeline_html failed because matplotlib was not found.")
        return
    pyplot: Any = importlib.import_module("matplotlib.pyplot")
    times, sizes = times_and_sizes
    figure = pyplot.figure(figsize=(20, 12), dpi=80)
    axes = figure.gca()
    milliseconds = [(time - times[0]) / 1e3 for time in times]
    for at, (_, color) in enumerate(CATEGORIES):
        below = [sum(row[: at + 1]) / 1024**3 for row in sizes]
        above = [sum(row[: at + 2]) / 1024**3 for row in sizes]
        axes.fill_between(milliseconds, below, above, color=color, alpha=0.7)
    figure.legend([name for name, _ in CATEGORIES])
    axes.set_xlabel("Time (ms)")
    axes.set_ylabel("Memory (GB)")
    peak = max((sum(row) for row in sizes), default=0)
    axes.set_title(f"Most at once: {peak / 1024**3:.2f} GiB")
    picture = io.BytesIO()
    figure.savefig(picture, format="png")
    pyplot.close(figure)
    encoded = base64.b64encode(picture.getvalue()).decode("ascii")
    with open(path, "w", encoding="utf-8") as file:
        file.write(
            '<html>\n<head><meta charset="utf-8" /><title>GPU Memory Timeline HTML</title></head>\n'
            f"<body>\n  <img src='data:image/png;base64,{encoded}'>\n</body>\n</html>"
        )
