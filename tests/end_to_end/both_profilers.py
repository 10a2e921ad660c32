"""What tests of the observer share: a program under torch.profiler or under lanescope, and its trace as rows."""

from __future__ import annotations

import collections
import json
import pathlib
import re
from typing import Any, Callable, Dict, List, Optional, Tuple

import pytest

torch = pytest.importorskip("torch", reason="needs torch")
lanescope = pytest.importorskip("lanescope", reason="needs the lanescope package (PYTHONPATH)")

from torch.profiler import ProfilerActivity  # noqa: E402

SHAPE_KEYS = ("Input Dims", "Input type", "Input Strides", "Concrete Inputs")
Row = Tuple[Any, ...]


def load(path: pathlib.Path) -> Dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8", errors="replace"), strict=False)


def under_torch(program: Callable[[], Any], folder: pathlib.Path, **options: Any) -> Dict[str, Any]:
    with torch.profiler.profile(activities=[ProfilerActivity.CPU], **options) as prof:
        program()
    prof.export_chrome_trace(str(folder / "torch.json"))
    return load(folder / "torch.json")


def under_lanescope(program: Callable[[], Any], folder: pathlib.Path, **options: Any) -> Dict[str, Any]:
    with lanescope.profile(activities=[lanescope.ProfilerActivity.CPU], **options) as prof:
        program()
    prof.export_chrome_trace(str(folder / "lanescope.json"))
    return load(folder / "lanescope.json")


def nanoseconds(text: Any) -> int:
    return round(float(text) * 1000)


def threads(trace: Dict[str, Any], *, shapes: bool = False, drop: str = "") -> List[List[Row]]:
    """For each thread, in the order of their first rows: (depth, category, name, sequence, forward thread[, shapes])."""
    rows = [e for e in trace["traceEvents"] if e.get("ph") == "X" and e.get("cat") in ("cpu_op", "user_annotation")]
    if drop:
        rows = [e for e in rows if not re.match(drop, e["name"])]
    sequences = [e["args"]["Sequence number"] for e in rows if "Sequence number" in e["args"]]
    first_sequence = min(sequences, default=0)
    by_thread: Dict[Any, List[Dict[str, Any]]] = collections.defaultdict(list)
    for event in rows:
        by_thread[event["tid"]].append(event)
    result = []
    for events in by_thread.values():
        events.sort(key=lambda e: (nanoseconds(e["ts"]), -nanoseconds(e["dur"])))
        ends: List[int] = []
        thread: List[Row] = []
        for event in events:
            start = nanoseconds(event["ts"])
            while ends and start >= ends[-1]:
                ends.pop()
            args = event["args"]
            sequence = args.get("Sequence number")
            row: Row = (len(ends), event["cat"], event["name"], None if sequence is None else sequence - first_sequence,
                        args.get("Fwd thread id"))
            if shapes:
                row += tuple(json.dumps(args.get(key)) for key in SHAPE_KEYS)
            thread.append(row)
            ends.append(start + nanoseconds(event["dur"]))
        result.append((nanoseconds(events[0]["ts"]), thread))
    result.sort(key=lambda pair: pair[0])
    return [thread for _, thread in result]


def assert_same(program: Callable[[], Any], folder: pathlib.Path, *, warm: int = 1, shapes: bool = False, drop: str = "",
                torch_options: Optional[Dict[str, Any]] = None, **options: Any) -> List[List[Row]]:
    for _ in range(warm):
        program()
    options = dict(options, record_shapes=shapes)
    theirs = threads(under_torch(program, folder, **options, **(torch_options or {})), shapes=shapes, drop=drop)
    ours = threads(under_lanescope(program, folder, **options), shapes=shapes, drop=drop)
    assert sum(map(len, theirs)) > 0
    assert ours == theirs
    return ours


def names(rows: List[List[Row]]) -> List[str]:
    return [row[2] for thread in rows for row in thread]


def ranges(trace: Dict[str, Any]) -> List[str]:
    return [row[2] for thread in threads(trace) for row in thread if row[1] == "user_annotation" or row[2].startswith("f:")]


def need_observer() -> None:
    """Skips the test where the observer cannot be built; one thread, so that both profilers see the same calls."""
    from lanescope import _torch

    reason = _torch.ensure_observer()
    if reason:
        pytest.skip(f"needs the torch observer, which cannot be built here: {reason}")
    torch.set_num_threads(1)
    torch.set_grad_enabled(True)
