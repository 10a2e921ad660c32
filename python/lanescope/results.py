"""What a profile gives after it recorded, in torch.profiler's words: events, tables, files."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Optional, Sequence, Union

from ._activities import ProfilerActivity, has_gpu, torch_sees_cuda
from ._core import InvalidArgumentError, Profiler, Trace, UnavailableError, UnsupportedError
from ._warnings import warn
from .averages import FunctionEventAvg, KeyAverages
from .events import STACK_METRICS, EventList
from .tables import Table

if TYPE_CHECKING:
    from .explanations import Explanation
    from .kineto_results import KinetoResults


class NotStartedError(RuntimeError, AssertionError):
    """The profile was never started; torch.profiler raises AssertionError then."""


class NoStacksError(InvalidArgumentError, AssertionError):
    """Stacks are asked for that were not recorded; torch.profiler raises AssertionError then, and did ValueError before."""


class Results:
    """The part of :class:`lanescope.profile` that reads what was recorded."""

    acc_events: bool
    profile_memory: bool
    record_shapes: bool
    with_stack: bool
    with_flops: bool
    _core: Optional[Profiler]
    activities: Any
    _last_events: Optional[EventList]
    _last_kineto_results: "Optional[KinetoResults]"

    def _result(self) -> Profiler:
        if self._core is None:
            raise NotStartedError("this profile was never started: use it in a `with` statement, or call start() and stop()")
        return self._core

    @property
    def trace(self) -> Trace:
        """What was recorded so far, as columns (nanoseconds). Built when first asked for.

        Raises UnavailableError with the reason when nothing was recorded.
        """
        return self._result().trace()

    def _trace_or_empty(self) -> Trace:
        try:
            return self._result().trace()
        except UnavailableError:  # empty_reason tells why
            return Trace()

    @property
    def use_device(self) -> Optional[str]:
        """"cuda" when its activity is asked for."""
        return "cuda" if ProfilerActivity.CUDA in self.activities else None

    def _device_used(self) -> Optional[str]:
        """The device that torch.profiler names in each event, also when it did nothing."""
        return self.use_device if has_gpu() and torch_sees_cuda() else None

    def events(self) -> EventList:
        """Every recorded event, not aggregated: a list, made when it is first looked at; times in microseconds, like
        torch.profiler's FunctionEvent list. The same list until more is recorded."""
        trace = self._trace_or_empty()
        if self._last_events is None or self._last_events.trace is not trace:
            self._last_events = EventList(
                trace,
                use_device=self._device_used(),
                profile_memory=self.profile_memory,
                with_flops=self.with_flops,
                warning=self.empty_reason,
            )
        return self._last_events

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
        include_python_functions: bool = False,
    ) -> KeyAverages:
        """Sums per operator name, for ``.table()`` and as a list of rows; ``.cycles`` says of which recorded cycles.

        ``include_python_functions``: calls of Python and C functions are rows, too (needs ``with_stack``). torch has them only on
        request since 2.14. Makes an object for each event.
        """
        if include_python_functions:
            rows = self.events().key_averages(
                group_by_input_shape, group_by_stack_n, group_by_overload_name, include_python_functions
            )
            rows.cycles = self.cycles
            return rows
        averages = KeyAverages(
            self._trace_or_empty(),
            group_by_input_shape=group_by_input_shape,
            group_by_stack_n=group_by_stack_n,
            group_by_overload_name=group_by_overload_name,
            use_device=self._device_used(),
            profile_memory=self.profile_memory,
            with_flops=self.with_flops,
            warning=self.empty_reason,
        )
        averages.cycles = self.cycles
        return averages

    @property
    def cycles(self) -> range:
        """The recorded cycles that the results cover, counted from 1: the last one, or all with ``acc_events``."""
        last = self._result().cycle_count()
        return range(1 if self.acc_events else max(last, 1), last + 1)

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
        """torch's table of all events, one by one (:meth:`EventList.table`); :meth:`key_averages` has the sums."""
        return self.events().table(
            sort_by,
            row_limit,
            max_src_column_width,
            max_name_column_width,
            max_shapes_column_width,
            header,
            top_level_events_only,
            time_unit,
        )

    def total_average(self) -> FunctionEventAvg:
        """All events added up; its key is "Total"."""
        return self.key_averages().total_average()

    @property
    def self_cpu_time_total(self) -> float:
        """Self CPU time of all events, microseconds."""
        return self.key_averages().self_cpu_time_total

    def explain(
        self, *, step: Optional[int] = None, question: Optional[Union[str, Sequence[str]]] = None
    ) -> "Explanation":
        """What bounds a step of this recording, and why: :func:`lanescope.explain` of it.

        Raises UnavailableError with the reason when nothing was recorded, InvalidArgumentError for a step or a question
        that does not exist, RuntimeError when the profile was never started.
        """
        from .explanations import explain

        return explain(self.trace, step=step, question=question)

    def _never_recorded(self) -> str:
        """Why no window was ever opened; empty when one was. Unlike :attr:`empty_reason` it reads no recording."""
        core = self._result()
        return core.empty_reason() if core.window_count() == 0 else ""

    @property
    def empty_reason(self) -> str:
        """Why nothing was recorded; empty when something was."""
        return self._result().empty_reason()

    def export_chrome_trace(self, path: Union[str, "os.PathLike[str]"], use_python_export: bool = False) -> None:
        """Writes Chrome trace JSON as Kineto does, for Perfetto and chrome://tracing; ``.gz``, ``.zst`` by the name.

        Covers what :meth:`key_averages` covers. May be called again. ``use_python_export`` makes no difference.
        """
        self._result().export_chrome_trace(os.fspath(path))

    def export_stacks(self, path: Union[str, "os.PathLike[str]"], metric: str = "self_cpu_time_total") -> None:
        """Writes a line for each event with a stack, for flame graphs: frames from outermost to innermost joined by
        ``;``, a space, and the event's ``metric`` in whole microseconds; events of less than one are left out.

        As in torch.profiler calls of Python and C functions are events here, with the frames around them.

        Raises NoStacksError, an InvalidArgumentError, without ``with_stack=True``.
        """
        if not self.with_stack:
            raise NoStacksError("export_stacks: expected a profile(with_stack=True), found one without stacks")
        if metric not in STACK_METRICS:
            raise ValueError(f"metric is self_cpu_time_total or self_cuda_time_total; found {metric!r}")
        self.events().export_stacks(os.fspath(path), metric)

    def export_memory_timeline(self, path: Union[str, "os.PathLike[str]"], device: Optional[str] = None) -> None:
        """Memory over time of a ``device`` ("cuda:0", "cpu"; default: the first GPU where its memory was recorded, else the
        CPU) as torch.profiler writes it: ``.html`` a picture (needs matplotlib), ``.raw.json.gz`` each event, ``.json`` and
        ``.json.gz`` ``[times, sizes by category]``.

        The categories are torch's; without ``record_shapes=True`` and ``with_stack=True`` all memory is of the category
        "Unknown" (one warning): see :meth:`_memory_profile`. torch has deprecated this for
        torch.cuda.memory._record_memory_history; ``lanescope memory`` shows the peak and what held it. Raises ValueError
        without ``profile_memory=True``.
        """
        if not self.profile_memory:
            raise ValueError("profile_memory=True required for memory profiling.")
        from . import memory_timeline

        trace = self.trace
        if device is None:
            device = "cuda:0" if memory_timeline.has_device_memory(trace) else "cpu"
        if self.record_shapes and self.with_stack:
            memory_timeline.export_categories(self._memory_profile(), path, device)
            return
        warn(
            "lanescope: export_memory_timeline: all memory is of the category Unknown, because categories need "
            "record_shapes=True and with_stack=True; `lanescope memory` says which operators hold it",
            once=True,
        )
        memory_timeline.export(trace, path, device)

    def _memory_profile(self) -> Any:
        """torch's ``MemoryProfile``: its ``timeline`` has each allocation, change and free of a tensor, and its categories
        tell parameters, gradients, optimizer state, inputs, activations and temporary memory apart.

        Raises ValueError without ``record_shapes=True``, ``profile_memory=True`` and ``with_stack=True``, as torch does. One
        warning if there were too many tensors to identify all of them.
        """
        wanted = ("record_shapes", "profile_memory", "with_stack")
        missing = [f"{name}=True" for name in wanted if not getattr(self, name)]
        if missing:
            raise ValueError(f"{', '.join(missing)} required for memory profiling.")
        from .tensor_identities import memory_profile

        profile, lost = memory_profile(self._trace_or_empty())
        if lost:
            warn(
                f"lanescope: {lost} inputs of operators have no identity, because the window took more than 262144 tensors; "
                "memory that depends on them may be in a wrong category. Record fewer steps",
                once=True,
            )
        return profile

    @property
    def kineto_results(self) -> "Optional[KinetoResults]":
        """The raw events for scripts that read torch's object of this name; None before something was recorded.

        It has :meth:`~KinetoResults.events`, ``trace_start_ns()`` and ``save()``; ``experimental_event_tree()`` raises
        UnsupportedError.
        """
        from .kineto_results import KinetoResults

        if self._core is None:
            return None
        try:
            trace = self._core.trace()
        except UnavailableError:
            return None
        if self._last_kineto_results is None or self._last_kineto_results.trace is not trace:
            self._last_kineto_results = KinetoResults(trace, self.with_flops)
        return self._last_kineto_results

    @property
    def function_events(self) -> EventList:
        """:meth:`events`, by the name that torch.autograd.profiler.profile gives it."""
        return self.events()
