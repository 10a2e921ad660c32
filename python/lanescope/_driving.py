"""Starts, steps and stops a profile, by its schedule or by hand, and ends one that nobody stops."""

from __future__ import annotations

import os
import sys
import weakref
from types import TracebackType
from typing import Any, Callable, Iterable, Optional, Set, Type, TypeVar

from . import _activities, _core, _job, _samples, _stacks, _torch, _torch_tools
from ._activities import ProfilerActivity, offer_nvtx
from ._schedule import NONE, RECORD_AND_SAVE, RECORDING, action_number
from ._warnings import warn_about
from ._windows import Windows
from .events import EventList
from .kineto_results import KinetoResults
from .results import NotStartedError

_Self = TypeVar("_Self", bound="Driving")

_HARDWARE_BYTES = 4 << 30  # as the recording's own limit


def _weak(method: Callable[..., Any], when_gone: Any = None) -> Callable[..., Any]:
    """Calls the bound ``method`` as long as its object lives, and keeps nothing alive."""
    reference = weakref.WeakMethod(method)

    def call(*args: Any) -> Any:
        found = reference()
        return when_gone if found is None else found(*args)

    return call


class Driving(Windows):
    """The part of :class:`lanescope.profile` that is driven by the program."""

    # Of `prof.profiler`, as torch.profiler's inner object has them.
    enabled: bool = True
    entered: bool = False  # True from the first start on
    use_cuda: bool = False  # torch.profiler gives the device by its name
    use_cpu: bool

    activities: Set[Any]
    schedule: Callable[[int], Any]
    record_steps: bool
    with_flops: bool
    acc_events: bool
    all_api: bool
    detach: Optional[bool]
    experimental_config: Optional[object]
    post_processing_timeout_s: Optional[float]
    step_num: int
    _activity_bits: int
    _output_dir: str
    _spool_path: str
    _free_name: bool
    _last_ns: int
    _slow_step: float
    _max_dumps: int
    _dump_signal: int
    _quiet_dumps: bool
    _max_bytes: Optional[int]
    _disk_reserve_bytes: Optional[int]
    _budget_ratio: float
    _last_events: Optional[EventList]
    _last_kineto_results: Optional[KinetoResults]

    def __init__(self, custom_trace_id_callback: Optional[Callable[[], str]]) -> None:
        self._running = False  # first: __del__ looks at it, whatever fails later
        super().__init__(custom_trace_id_callback)
        self._owner_pid = 0
        self._core: Optional[_core.Profiler] = None
        self._at_rest = False  # stopped, and the recording can go on: acc_events
        self._ends_with_us: Optional[_core.Profiler] = None
        self._by_hand = False  # prepare_trace, start_trace and stop_trace instead of start, step and stop

    def _lacks_cupti(self) -> bool:
        return ProfilerActivity.CUDA in self.activities and not _activities.cupti_library()

    def __enter__(self: _Self) -> _Self:
        self.start()
        return self

    def __exit__(
        self, exc_type: Optional[Type[BaseException]], exc: Optional[BaseException], tb: Optional[TracebackType]
    ) -> None:
        self.stop()
        if self.execution_trace_observer is not None:
            self.execution_trace_observer.cleanup()

    def start(self) -> None:
        """Starts with the schedule's current step. The first time with a new torch this compiles the observer
        (seconds). A profile that is already running begins anew, as in torch.profiler, with a warning."""
        if self._running:
            self._drop_window()
        self._run(by_hand=False)

    def _drop_window(self) -> None:
        """For start() of a running profile: what it recorded goes, without on_trace_ready."""
        kept = self._output_dir or self._spool_path
        warn_about(
            "start() of a profile that is already running begins anew; what it recorded before "
            + (f"is in {self._core.spool_path()}" if kept and self._core is not None else "is gone, as in torch.profiler")
            + ". Call stop() first to keep it"
        )
        ready, self.on_trace_ready = self.on_trace_ready, None
        try:
            self.stop()
        finally:
            self.on_trace_ready = ready
        self._at_rest = False  # acc_events: not gone on with

    def _run(self, by_hand: bool) -> None:
        if self.post_processing_timeout_s is not None and self.post_processing_timeout_s < 0:
            raise ValueError(f"post_processing_timeout_s must not be negative; found {self.post_processing_timeout_s}")
        if _torch.loaded_torch() is not None and ProfilerActivity.CPU in self.activities:
            reason = _torch.ensure_observer()
            if reason:
                _torch.say_no_operators(reason)
        if self.with_stack:
            reason = _stacks.start()
            if reason:
                warn_about(f"with_stack: going on without stacks and Python frames: {reason}", once=True)
        if ProfilerActivity.CUDA in self.activities:
            offer_nvtx()
        if self._core is not None and self._at_rest and self._owner_pid == os.getpid():
            if self._core.can_go_on():
                self._go_on(self._core, by_hand)
                return
            warn_about(
                "acc_events: another profile started since stop(), which ended this recording; the results of this profile are "
                "now those of what it records from here on",
                once=True,
            )
        core = _core.Profiler(
            # The core must not keep this object alive: it would never be freed.
            schedule=_weak(self._planned_action, NONE) if self.record_steps and not by_hand else None,
            first_action=self._action,
            first_step=self.step_num,
            on_trace_ready=_weak(self._trace_ready),
            activities=self._activity_bits,
            all_api=self.all_api,
            detach=self.detach,
            record_shapes=self.record_shapes or self.with_flops,
            profile_memory=self.profile_memory,
            with_stack=self.with_stack,
            with_flops=self.with_flops,
            with_modules=self.with_modules,
            capture_overload_names=_torch_tools.experimental_flag(self.experimental_config, "capture_overload_names"),
            accumulate=self.acc_events,
            output_dir=self._output_dir,
            spool_path=self._spool_path,
            free_name=self._free_name,
            last_ns=self._last_ns,
            slow_step=self._slow_step,
            max_dumps=self._max_dumps,
            dump_signal=self._dump_signal,
            quiet_dumps=self._quiet_dumps,
            max_bytes=self._max_bytes,
            disk_reserve_bytes=self._disk_reserve_bytes,
            budget_ratio=self._budget_ratio,
        )
        self._core = core
        self.entered = True
        self._at_rest = False
        self._last_events = None
        self._last_kineto_results = None
        _torch_tools.begin_counting_steps()
        self._by_hand = by_hand
        directory = os.path.dirname(self._spool_path) or self._output_dir
        counters = self._hardware.start(directory, self._max_bytes or _HARDWARE_BYTES)
        if by_hand:
            core.begin()
        else:
            self._before(self._action)
            try:
                core.start()
            except BaseException:
                self._after(NONE)
                self._hardware.stop()
                raise
        self._hardware.give_name(counters, core.spool_path())
        self._running = True
        self._owner_pid = os.getpid()
        if not by_hand:
            self._frames_of(self._action)
        self._describe(core)
        _job.listen(self.describe_job)
        self._pass_on(core.take_warnings())

    def _go_on(self, core: _core.Profiler, by_hand: bool) -> None:
        self._at_rest = False
        self._by_hand = by_hand
        self._running = True
        self._hardware.warn_when_going_on()
        _job.listen(self.describe_job)
        if not by_hand:
            self._before(self._action)
            core.go_on(self._action, self.step_num)
            self._frames_of(self._action)

    def _end(self, core: _core.Profiler) -> None:
        """Ends the recording; with acc_events a temporary one can go on until another profile starts, or this object goes."""
        try:
            self._end_recording(core)
        finally:
            self._hardware.stop()

    def _end_recording(self, core: _core.Profiler) -> None:
        if not self.acc_events or self._output_dir or self._spool_path:
            core.stop()
            return
        if self._ends_with_us is not core:
            self._ends_with_us = core
            weakref.finalize(self, core.stop)
        self._at_rest = True
        core.rest()

    def stop(self) -> None:
        """Ends the profile. A window that is open is kept, and ``on_trace_ready`` is called for it.

        Raises NotStartedError when there is a step to record and start() was never called; a second stop() does nothing.
        """
        core = self._core
        if core is None and self._action != NONE:
            raise NotStartedError("this profile was never started, so there is nothing to stop; call start() first")
        if core is None or not self._running:
            return
        _job.listen_no_more(self.describe_job)
        self.describe_job()
        self._running = False
        _samples.flush()
        try:
            self._end(core)
        finally:
            self._after(NONE)
            _torch_tools.end_counting_steps()
            self._pass_on(core.take_warnings())

    # What start(), step() and stop() are made of in torch.profiler: frameworks call these to open and close windows
    # themselves.

    def prepare_trace(self) -> None:
        """Warms up for :meth:`start_trace`; nothing is recorded yet."""
        if not self._running:
            self._run(by_hand=True)
        if self._core is not None:
            self._core.warm_up()

    def start_trace(self) -> None:
        """Opens a window; without schedule, ProfilerStep ranges or ``on_trace_ready``. Call :meth:`prepare_trace` first."""
        if self._core is None:
            raise NotStartedError("call prepare_trace() before start_trace()")
        if not self._running:
            self._run(by_hand=True)
        self._before(RECORD_AND_SAVE)
        self._core.open_window()
        self._frames_of(RECORD_AND_SAVE)

    def stop_trace(self) -> None:
        """Closes the window that :meth:`start_trace` or :meth:`start` opened; its results are there now."""
        core = self._core
        if core is None:
            raise NotStartedError("call prepare_trace() and start_trace() before stop_trace()")
        if not self._running:
            return
        self.describe_job()
        _samples.flush()
        try:
            core.close_window()
            if self._by_hand:
                self._running = False
                _job.listen_no_more(self.describe_job)
                self._end(core)
        finally:
            self._after(NONE)
            self._pass_on(core.take_warnings())

    def step(self) -> None:
        """Says that the next step begins. Stopping a window and ``on_trace_ready`` happen inside this call.

        Without start() the profile begins by itself where the schedule first warms up or records, as in torch.profiler.
        """
        action = action_number(self.schedule(self.step_num + 1))
        previous, self._action = self._action, action
        self.step_num += 1
        core = self._core
        if core is None or not self._running:
            self._step_at_rest(previous, action)
            return
        next_cycle = previous == RECORD_AND_SAVE and action in RECORDING
        self._before(action)
        if previous == RECORD_AND_SAVE or (self._holds_flag and action not in RECORDING):
            self.describe_job()
        if self._holds_samples and (previous == RECORD_AND_SAVE or action not in RECORDING):
            _samples.flush()
        try:
            core.step(action, self.step_num)  # programs that go on after a checkpoint set step_num
        finally:
            self._after(action)
            _torch_tools.count_step()
            self._frames_of(action)
            if next_cycle:
                self._name_cycle()
            self._pass_on(core.take_warnings())

    def _step_at_rest(self, previous: int, action: int) -> None:
        if action == NONE:
            return
        if previous in (NONE, RECORD_AND_SAVE):
            self._run(by_hand=False)
        elif action in RECORDING:
            warn_about("step() records nothing, because this profile does not run: call start() or use it in a `with` statement", once=True)

    def _planned_action(self, step: int) -> int:
        return action_number(self.schedule(step))

    def _pass_on(self, lines: Iterable[str]) -> None:
        for line in lines:
            about_gpu = line.startswith("cupti: ")
            if about_gpu and self._lacks_cupti():
                continue  # said when the profile was made
            warn_about(line, once=about_gpu)

    def __del__(self) -> None:
        # A running profile that nobody can stop any more. At the interpreter's end it is left to the recorder, which
        # finishes its file and says where it is.
        if not getattr(self, "_running", False) or sys.is_finalizing():
            return
        try:
            self._end_dropped()
        except BaseException:  # nobody can catch it here
            pass

    def _end_dropped(self) -> None:
        core = self._core
        self._running = False
        self.on_trace_ready = None  # the program's code does not run while an object is freed
        if core is None or self._owner_pid != os.getpid():
            return
        complete = self._by_hand and not core.is_window_open()  # prepared, and no window opened
        try:
            _job.listen_no_more(self.describe_job)
            core.stop()
        finally:
            self._after(NONE)
            self._hardware.stop()
        if complete:
            return
        kept = f"what it recorded is in {core.spool_path()}" if self._output_dir or self._spool_path else "its results are gone"
        warn_about(
            f"a profile was dropped while it recorded, which ended it; {kept}. "
            "Keep it and call stop(), or use it in a `with` statement"
        )
