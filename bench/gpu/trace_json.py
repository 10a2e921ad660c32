"""A Kineto-style trace read with plain json, for checks that do not trust lanescope's own reader.

Times are exact integers of nanoseconds. What belongs together is found by containment and by correlation id only.
"""

from __future__ import annotations

import bisect
import collections
import dataclasses
import gzip
import json
import pathlib
import re
from typing import Any, Dict, List, Optional, Tuple

CPU = ("cpu_op", "user_annotation")
CALLS = ("cuda_runtime", "cuda_driver")
DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")
STEP = re.compile(r"ProfilerStep#\d+$")


def exact_ns(text: Any) -> int:
    """Microseconds as written ("12.345", 12, "1e3") to nanoseconds, without a double in between where that is possible."""
    whole, _, fraction = str(text).partition(".")
    if (whole.lstrip("-") + fraction).isdigit():
        sign = -1 if whole.startswith("-") else 1
        return 1000 * int(whole) + sign * int((fraction + "000")[:3])
    return round(1000 * float(text))


@dataclasses.dataclass
class Event:
    cat: str
    name: str
    pid: Any
    tid: Any
    start: int  # ns
    end: int
    args: Dict[str, Any]

    @property
    def thread(self) -> Tuple[Any, Any]:
        return self.pid, self.tid

    @property
    def correlation(self) -> Optional[int]:
        return self.args.get("correlation")

    @property
    def external_id(self) -> Optional[int]:
        return self.args.get("External id")


# Calls newer than the table of names that torch.profiler was built with; it writes "INVALID" and CUPTI's number.
CALLS_BY_NUMBER = {461: "cudaStreamGetCaptureInfo", 486: "cudaEventElapsedTime"}


def call_name(raw: Dict[str, Any]) -> str:
    name: str = raw["name"]
    if name == "INVALID" and raw.get("cat") == "cuda_runtime":
        return CALLS_BY_NUMBER.get(raw.get("args", {}).get("cbid"), name)
    return name


class Containment:
    """Ranges of one thread; what encloses a moment. Each range knows the nearest earlier one that holds its start."""

    def __init__(self, ranges: List[Event]) -> None:
        self.ranges = sorted(ranges, key=lambda e: (e.start, -e.end))
        self.starts = [e.start for e in self.ranges]
        self.outer: List[int] = []
        for at, event in enumerate(self.ranges):
            self.outer.append(self._holding(at - 1, event.start))

    def _holding(self, at: int, moment: int) -> int:
        while at >= 0 and self.ranges[at].end <= moment:
            at = self.outer[at]
        return at

    def chain(self, moment: int) -> List[Event]:
        """Outermost first; half-open ranges [start, end)."""
        found: List[Event] = []
        at = self._holding(bisect.bisect_right(self.starts, moment) - 1, moment)
        while at >= 0:
            found.append(self.ranges[at])
            at = self._holding(self.outer[at], moment)
        return found[::-1]


class TraceJson:
    """Raises OSError, ValueError for what is no JSON, KeyError for what is no trace."""

    def __init__(self, path: Any) -> None:
        data = pathlib.Path(path).read_bytes()
        if data[:2] == b"\x1f\x8b":
            data = gzip.decompress(data)
        self.document = json.loads(data, parse_float=str)
        self.cpu: List[Event] = []
        self.calls: List[Event] = []
        self.device: List[Event] = []
        self.gpu_annotations = 0
        for raw in self.document["traceEvents"]:
            cat = raw.get("cat", "")
            if raw.get("ph") != "X":
                continue
            target = self.cpu if cat in CPU else self.calls if cat in CALLS else self.device if cat in DEVICE else None
            self.gpu_annotations += cat == "gpu_user_annotation"
            if target is not None:
                start = exact_ns(raw["ts"])
                target.append(Event(cat, call_name(raw), raw.get("pid"), raw.get("tid"), start, start + exact_ns(raw["dur"]),
                                    raw.get("args", {})))
        by_thread: Dict[Any, List[Event]] = collections.defaultdict(list)
        for event in self.cpu:
            by_thread[event.thread].append(event)
        self.containment = {thread: Containment(events) for thread, events in by_thread.items()}
        self.windows = sorted((e for e in self.cpu if e.cat == "user_annotation" and STEP.match(e.name)), key=lambda e: e.start)
        self._window_starts = [e.start for e in self.windows]
        # One correlation id has several calls when a runtime call makes a driver call: the outer one began first.
        self.call_of: Dict[Any, Event] = {}
        for call in sorted(self.calls, key=lambda e: e.start, reverse=True):
            self.call_of[call.correlation] = call
        self.step_threads = {e.thread for e in self.windows}
        self.autograd_threads = {e.thread for e in self.cpu if e.name.startswith("autograd::engine::evaluate_function")}

    def launch(self, event: Event) -> Optional[Event]:
        """The call that started this work of the device; None: the trace has none."""
        return None if event.correlation is None else self.call_of.get(event.correlation)

    def chain(self, call: Event) -> List[Event]:
        found = self.containment.get(call.thread)
        return found.chain(call.start) if found is not None else []

    def step(self, moment: int) -> Optional[int]:
        """Number of the window, from 0, that holds the moment."""
        at = bisect.bisect_right(self._window_starts, moment) - 1
        return at if at >= 0 and moment < self.windows[at].end else None

    def is_followed(self, event: Event) -> bool:
        """On a thread that torch.profiler follows: the one that steps, or autograd's."""
        return event.thread in self.step_threads or event.thread in self.autograd_threads


def owner(chain: List[Event]) -> Optional[Event]:
    """Whose External id work of the device bears: the innermost operator's around its call, without one the innermost
    annotation's. Kineto keeps two stacks of ids and asks that of the operators first: NCCL's kernels bear the id of
    record_param_comms although nccl:all_reduce is inside it."""
    for event in reversed(chain):
        if event.cat == "cpu_op":
            return event
    return chain[-1] if chain else None


@dataclasses.dataclass
class ExternalIds:
    """External id as written, and the id of the range that owns the launching call."""

    agree: int = 0
    differ: int = 0
    missing: int = 0  # no id is written although a range owns the call (torch.profiler loses one now and then)
    no_call: int = 0  # work of the device without a call: launched before the window
    outside: int = 0  # launched outside every range, and no id written: they agree on nothing
    example: str = ""

    @property
    def pairs(self) -> int:
        return self.agree + self.differ + self.missing


def check_external_ids(trace: TraceJson) -> ExternalIds:
    result = ExternalIds()
    for event in trace.device:
        call = trace.launch(event)
        if call is None:
            result.no_call += 1
            continue
        owning = owner(trace.chain(call))
        expected = owning.external_id if owning is not None else None
        if expected is None and event.external_id in (None, 0):
            result.outside += 1
        elif expected == event.external_id:
            result.agree += 1
        else:
            if event.external_id in (None, 0):
                result.missing += 1
            else:
                result.differ += 1
            result.example = result.example or (f"{event.name[:60]!r} correlation {event.correlation}: External id "
                                                f"{event.external_id}, owner by containment {expected} "
                                                f"({owning.name if owning is not None else 'none'})")
    return result
