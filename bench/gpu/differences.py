"""What differs between torch.profiler's trace of a program and lanescope's trace of the same program.

Compared per ProfilerStep window. Work of the device belongs to the window in which it was launched, so that kernels
still running when a window ends change nothing. Work without a launching call (torch.profiler keeps some that warm-up
launched) is counted separately and may be only in torch.profiler's trace.
"""

from __future__ import annotations

import collections
import dataclasses
import json
import re
import statistics
from typing import Any, Callable, Counter, Dict, Hashable, Iterable, List, Optional, Tuple

from trace_json import Event, TraceJson, check_external_ids

EQUAL, EXPLAINED, DIFFERENT = "equal", "explained", "DIFFERENT"


@dataclasses.dataclass
class Difference:
    what: str
    name: str
    torch: Any
    lanescope: Any
    reason: str = ""  # empty: nothing explains it

    def __str__(self) -> str:
        return f"{self.what}: {self.name}: torch.profiler {self.torch}, lanescope {self.lanescope}" + (
            f" ({self.reason})" if self.reason else "")


@dataclasses.dataclass
class Comparison:
    differences: List[Difference] = dataclasses.field(default_factory=list)
    counts: Dict[str, Tuple[int, int]] = dataclasses.field(default_factory=dict)  # what: (torch, lanescope)
    notes: Dict[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def verdict(self) -> str:
        if any(not d.reason for d in self.differences):
            return DIFFERENT
        return EXPLAINED if self.differences else EQUAL

    def add(self, what: str, name: str, torch: Any, lanescope: Any, reason: str = "") -> None:
        self.differences.append(Difference(what, name, torch, lanescope, reason))


PerStep = List[Counter[Hashable]]


def per_step(trace: TraceJson, events: Iterable[Event], key: Callable[[Event], Hashable],
             moment: Callable[[Event], Optional[int]]) -> PerStep:
    found: PerStep = [collections.Counter() for _ in trace.windows]
    for event in events:
        at = moment(event)
        step = None if at is None else trace.step(at)
        if step is not None:
            found[step][key(event)] += 1
    return found


def compare_counts(result: Comparison, what: str, theirs: PerStep, ours: PerStep,
                   explain: Callable[[Hashable, int, int], str] = lambda *_: "") -> None:
    result.counts[what] = (sum(sum(c.values()) for c in theirs), sum(sum(c.values()) for c in ours))
    for name in sorted({n for step in theirs + ours for n in step}, key=str):
        left, right = [c[name] for c in theirs], [c[name] for c in ours]
        if left != right:
            steps = [step for step, (a, b) in enumerate(zip(left, right)) if a != b]
            where = "every step" if len(steps) == len(left) else f"steps {', '.join(map(str, steps[:5]))}" + (
                ", ..." if len(steps) > 5 else "")
            result.add(what, f"{str(name)[:160]} in {where}", sum(left), sum(right), explain(name, sum(left), sum(right)))


def explain_shifting(shifting: str) -> Callable[[Hashable, int, int], str]:
    """Operators whose step is a matter of chance (programs.Entry.shifting): only their sums must be near each other."""

    def explain(name: Hashable, torch: int, lanescope: int) -> str:
        moved = bool(shifting) and isinstance(name, tuple) and re.match(shifting, str(name[-1])) is not None
        near = min(torch, lanescope) >= 0.9 * max(torch, lanescope)
        return "a worker's batch arrived in another step" if moved and near else ""

    return explain


def compare_calls(result: Comparison, theirs: PerStep, ours: PerStep, explained: Dict[str, Any]) -> None:
    def explain(name: Hashable, torch: int, lanescope: int) -> str:
        if lanescope == 0:
            return explained.get("torch_only_calls", {}).get(name, "")
        if torch == 0:
            return explained.get("lanescope_only_calls", {}).get(name, "")
        return ""

    compare_counts(result, "runtime calls", theirs, ours, explain)


def compare_other_threads(result: Comparison, theirs: TraceJson, ours: TraceJson) -> None:
    """Threads that torch.profiler follows only by chance: operators in lanescope's trace alone are wanted."""
    left, right = ({e.name for e in t.cpu if not t.is_followed(e) and t.step(e.start) is not None} for t in (theirs, ours))
    for name in sorted(left - right):
        result.add("operators of other threads", name, "seen", "missing")
    if right - left:
        result.add("operators of other threads", f"{len(right - left)} names such as {sorted(right - left)[0]}", "missing",
                   "seen", "torch.profiler follows the stepping thread and autograd's; lanescope follows every thread")


def launch_shape(event: Event) -> Hashable:
    args = event.args
    return (event.name, f"grid {args.get('grid')}", f"block {args.get('block')}", f"shared {args.get('shared memory')}")


def compare_device(result: Comparison, theirs: TraceJson, ours: TraceJson) -> None:
    def launched(trace: TraceJson) -> Callable[[Event], Optional[int]]:
        def moment(event: Event) -> Optional[int]:
            call = trace.launch(event)
            return call.start if call is not None and trace.is_followed(call) else None

        return moment

    def chain(trace: TraceJson) -> Callable[[Event], Hashable]:
        def key(event: Event) -> Hashable:
            call = trace.launch(event)
            assert call is not None
            names = [e.name for e in trace.chain(call) if not e.name.startswith("ProfilerStep#")]
            return " > ".join([*names, call.name, event.name])

        return key

    kinds = {"kernels": ("kernel", lambda e: e.name), "kernel launch shapes": ("kernel", launch_shape),
             "copies": ("gpu_memcpy", lambda e: (e.name, e.args.get("bytes"))),
             "memsets": ("gpu_memset", lambda e: (e.name, e.args.get("bytes")))}
    for what, (cat, key) in kinds.items():
        compare_counts(result, what, *(per_step(t, [e for e in t.device if e.cat == cat], key, launched(t))
                                       for t in (theirs, ours)))
    compare_counts(result, "op chains", *(per_step(t, t.device, chain(t), launched(t)) for t in (theirs, ours)))
    left, right = (sum(t.launch(e) is None for e in t.device) for t in (theirs, ours))
    if right:
        result.add("work without a launching call", "all names", left, right)
    elif left:
        result.add("work without a launching call", "all names", left, right,
                   "torch.profiler keeps what warm-up launched and the window did not")
    streams = [len({(e.args.get("device"), e.args.get("stream")) for e in t.device if t.launch(e) is not None})
               for t in (theirs, ours)]
    if streams[0] != streams[1]:
        result.add("streams", "number of", *streams)


def compare_traces(theirs: TraceJson, ours: TraceJson, explained: Dict[str, Any], *, steps: Optional[int],
                   device: str, shifting: str = "") -> Comparison:
    """`steps`: how many windows both must have; None: as many as each other, at least one."""
    result = Comparison()
    windows = (len(theirs.windows), len(ours.windows))
    if windows[0] != windows[1] or (steps is not None and windows[0] != steps) or windows[0] == 0:
        result.add("windows", f"ProfilerStep ranges (expected {'the same' if steps is None else steps})", *windows)
        return result
    compare_counts(result, "CPU operators and ranges",
                   *(per_step(t, filter(t.is_followed, t.cpu), lambda e: (e.cat, e.name.split("#")[0] if
                     e.name.startswith("ProfilerStep#") else e.name), lambda e: e.start) for t in (theirs, ours)),
                   explain_shifting(shifting))
    compare_other_threads(result, theirs, ours)
    compare_calls(result, *(per_step(t, filter(t.is_followed, t.calls), lambda e: e.name, lambda e: e.start)
                            for t in (theirs, ours)), explained)
    compare_device(result, theirs, ours)
    for name, trace in (("torch.profiler", theirs), ("lanescope", ours)):
        ids = check_external_ids(trace)
        result.notes[f"External ids of {name}"] = dataclasses.asdict(ids)
        result.counts[f"external ids {name}"] = (ids.agree, ids.pairs)
        if ids.differ:
            result.add("External ids", f"{ids.agree} of {ids.pairs} agree in {name}'s trace, first: {ids.example}", "-", "-")
        elif ids.missing:
            result.add("External ids", f"{ids.missing} of {ids.pairs} are not written in {name}'s trace", "-", "-",
                       "torch.profiler loses one now and then" if trace is theirs else "")
        if device == "cuda" and not any(e.cat == "kernel" for e in trace.device):
            result.add("recorded at all", f"kernels of {name}", *(len(t.device) for t in (theirs, ours)))
        if not trace.cpu:
            result.add("recorded at all", f"operators of {name}", *(len(t.cpu) for t in (theirs, ours)))
    result.notes["gpu_user_annotation rows"] = [theirs.gpu_annotations, ours.gpu_annotations]
    return result


def kernel_medians(traces: List[TraceJson]) -> Dict[str, float]:
    """Median duration in ns per kernel name, over all windows of all traces. Without NCCL's: they run until the last rank has
    come, so their time is not theirs."""
    durations: Dict[str, List[int]] = collections.defaultdict(list)
    for trace in traces:
        for event in trace.device:
            call = trace.launch(event)
            if event.name.startswith("nccl"):
                continue
            if event.cat == "kernel" and call is not None and trace.step(call.start) is not None:
                durations[event.name].append(event.end - event.start)
    return {name: statistics.median(values) for name, values in durations.items()}


def compare_kernel_time(result: Comparison, theirs: List[TraceJson], ours: List[TraceJson], tolerance: Optional[float]) -> None:
    """Sum over kernel names of count times median duration. `tolerance` None: shown, not judged."""
    left, right = kernel_medians(theirs), kernel_medians(ours)
    if not left or not right:
        return
    counts = collections.Counter(e.name for e in theirs[0].device if e.cat == "kernel" and e.name in left)
    totals = [sum(n * medians.get(name, 0.0) for name, n in counts.items()) for medians in (left, right)]
    ratio = totals[1] / totals[0] if totals[0] else float("inf")
    result.notes["kernel time"] = {"torch_ns": totals[0], "lanescope_ns": totals[1], "ratio": ratio, "judged": tolerance,
                                   "median_ns": {name: [left.get(name), right.get(name)] for name in sorted({*left, *right})}}
    if tolerance is not None and abs(ratio - 1) > tolerance:
        result.add("kernel time", f"median per name, summed, more than {100 * tolerance:g} % apart", f"{totals[0]:.0f} ns",
                   f"{totals[1]:.0f} ns")


def load_explained(path: str) -> Dict[str, Any]:
    with open(path, encoding="utf-8") as file:
        explained: Dict[str, Any] = json.load(file)
    for key in ("torch_only_calls", "lanescope_only_calls"):
        if not isinstance(explained.get(key), dict):
            raise SystemExit(f"{path}: expected an object under {key!r}")
    return explained
