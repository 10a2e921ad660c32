"""torch.profiler's words, recorded by lanescope.

What differs, on purpose: a warm-up that no active step followed leaves the results of the last cycle as they are;
exporting works as often as you like; an empty result says why it is empty; ``start``, ``step`` and ``stop`` may come from
different threads; operators of every thread are recorded, and profiles may overlap.
"""

from __future__ import annotations

import os
import sys
import weakref
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, List, Optional, Type, Union

from . import _activities, _beside_torch, _core, _frames, _job, _samples, _stacks, _tensors, _torch
from ._budget import parse_budget
from ._activities import ProfilerActivity, activity_bits, offer_nvtx, parse_activities
from ._flight import parse_last, parse_slow_step
from ._hardware import HardwareLanes, parse_interval
from ._metadata import TraceMetadata
from ._sizes import LEAST_SIZE, parse_size
from ._schedule import NONE, RECORD_AND_SAVE, RECORDING, ProfilerAction, action_number, always
from ._warnings import _said as _warned  # noqa: F401  # tests start anew
from ._warnings import warn
from .events import EventList
from .kineto_results import KinetoResults
from .results import NotStartedError, Results

if TYPE_CHECKING:
    from ._view import SavedView, View


def _warn(message: str, *, once: bool = False) -> None:
    warn("lanescope: " + message, once=once)


_HARDWARE_BYTES = 4 << 30  # as the recording's own limit


def _weak(method: Callable[..., Any], when_gone: Any = None) -> Callable[..., Any]:
    """Calls the bound ``method`` as long as its object lives, and keeps nothing alive."""
    reference = weakref.WeakMethod(method)

    def call(*args: Any) -> Any:
        found = reference()
        return when_gone if found is None else found(*args)

    return call


class profile(TraceMetadata, Results):
    """Records what the program does between ``start()`` and ``stop()``, or step by step by a ``schedule``.

    Replaces ``torch.profiler.profile``: same arguments, same methods. Needs no torch; with torch imported its operators
    are recorded on all threads.

    Its results live as long as this object. A profile that is dropped while it records ends there, with a warning;
    ``on_trace_ready`` is not called then.

    Args:
        activities: what to record, of :class:`ProfilerActivity`; default: what :func:`supported_activities` gives, and
            nothing is said on a machine without a GPU. Activities that are named and cannot be recorded give a warning.
        schedule: from a step number to a :class:`ProfilerAction`, see :func:`lanescope.schedule`. None records
            everything from ``start()`` to ``stop()``.
        on_trace_ready: called with this object after each finished cycle, on the thread that steps or stops.
        record_shapes: shapes, types, strides and small concrete inputs of operators.
        profile_memory: allocations and frees, in bytes.
        with_stack: each call of a Python or C function, as torch.profiler's ``python_function`` events, and the Python lines
            that each operator and range was called from, up to 128 frames.
        with_flops: floating point operations, from the shapes (records shapes).
        with_modules: without ``with_stack`` the calls of modules only (``nn.Module: Linear_0``).
        experimental_config: torch's object is accepted; ``capture_overload_names`` is honoured, every thread is recorded
            and operators have stacks in any case, ``adjust_profiler_step`` gives a warning, the rest belongs to Kineto.
        execution_trace_observer: started and stopped with the recorded windows, like torch.profiler does.
        acc_events: results cover all cycles so far; False (default): only the last one that recorded, and the temporary file
            keeps no more than 16 MiB of earlier ones. ``key_averages().cycles`` says which.
        use_cuda: deprecated, as in torch.profiler.
        custom_trace_id_callback: gives the trace id; called at the start of each cycle. Default: a random one.
        post_processing_timeout_s: accepted; lanescope has no long post-processing to cut short.
        last: a flight recorder: record for ever and keep what came last, ``"10s"``, ``"500ms"``, ``"2m"`` or seconds; the
            results are these. Memory and file stay bounded. Excludes ``schedule``. (lanescope only, like the next three.)
        slow_step: with ``last``: a step (see :meth:`step`) that takes more than so many times the median of the steps before
            it makes a dump; ``2.0`` or ``"2x"``.
        max_dumps: at most so many dumps for slow steps stay, those of the worst ones.
        dump_signal: with ``last``: this signal makes a dump, even while the program hangs in C code.
        output_dir: where the recorder's own file goes and stays (lanescope only). None: temporary, gone with this object.
        all_api: every call of the CUDA runtime and driver, not only those that start or wait for work (lanescope only).
        detach: whether CUPTI leaves the process at the end of each window, so that nothing of its cost stays (while it is
            in, a launch takes about 1 us more), and comes back with the next one (8 ms). None: with CUDA 13 and newer,
            unless ``last`` is given, and never in spite of another profiler (lanescope only).
        max_size: the recording's file grows no further, ``"500M"``, ``"4GiB"`` (default) or bytes; later records are dropped
            and counted, with ``last`` the oldest go (lanescope only, like the next one).
        disk_reserve: what the recording leaves free on its disk, ``"10G"`` or bytes. None: 5 % of the disk, 1 GB at least,
            but no more than half of what is free at the start.
        budget: what recording operators may cost, as a share of the time, ``"1%"`` or ``"0.5%"``. What costs more is left out
            (shapes, then stacks, then short operators, then all for a while), and the trace and a warning say what and when. None: no limit,
            and the cost is not measured (lanescope only).
        hardware: sample the GPU's hardware counters (SMs and tensor cores active, memory, PCIe, NVLink), clocks, power and
            temperature in a process of its own; True, or the interval: ``"100us"`` (default), ``"1ms"``. What cannot be
            sampled gives a warning. Not with ``last`` (lanescope only).
        sample_python: take the Python stack of every thread about so many times a second, ``True`` for 1000, without the
            GIL and without stopping anything (lanescope only). The samples are lanes of their own; ``lanescope flame``
            draws them.
    """

    def __init__(
        self,
        *,
        activities: Optional[Iterable[Any]] = None,
        schedule: Optional[Callable[[int], Any]] = None,
        on_trace_ready: Optional[Callable[[Any], Any]] = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: Optional[object] = None,
        execution_trace_observer: Optional[Any] = None,
        acc_events: bool = False,
        use_cuda: Optional[bool] = None,
        custom_trace_id_callback: Optional[Callable[[], str]] = None,
        post_processing_timeout_s: Optional[float] = None,
        output_dir: Optional[Union[str, "os.PathLike[str]"]] = None,
        last: Optional[Union[str, float]] = None,
        slow_step: Optional[Union[str, float]] = None,
        max_dumps: int = 8,
        dump_signal: Optional[int] = None,
        all_api: bool = False,
        detach: Optional[bool] = None,
        max_size: Optional[Union[str, int]] = None,
        disk_reserve: Optional[Union[str, int]] = None,
        budget: Optional[str] = None,
        hardware: Union[str, bool, None] = None,
        sample_python: Union[bool, int] = False,
    ) -> None:
        self._running = False  # first: __del__ looks at it, whatever fails below
        TraceMetadata.__init__(self, custom_trace_id_callback)
        self.activities = parse_activities(activities)
        if use_cuda is not None:
            warn("`use_cuda` is deprecated, use `activities` argument instead", FutureWarning)
            (self.activities.add if use_cuda else self.activities.discard)(ProfilerActivity.CUDA)
        if not self.activities:
            raise AssertionError("no activity is left; expected at least ProfilerActivity.CPU")
        # 0: not chosen by the caller, so a machine without a GPU is no news.
        self._activity_bits = 0 if activities is None and use_cuda is None else activity_bits(self.activities)
        self.all_api = all_api
        self.detach = detach
        self.record_shapes = bool(record_shapes)
        self.profile_memory = bool(profile_memory)
        self.with_stack = bool(with_stack)
        self.with_flops = bool(with_flops)
        self.with_modules = bool(with_modules)
        self.experimental_config = experimental_config
        if execution_trace_observer is None:
            execution_trace_observer = _beside_torch.execution_trace_from_environment()
        self.execution_trace_observer = execution_trace_observer
        self.acc_events = bool(acc_events)
        self.post_processing_timeout_s = post_processing_timeout_s
        self.on_trace_ready = on_trace_ready
        self.schedule: Callable[[int], Any] = schedule if schedule is not None else always
        self.record_steps = schedule is not None
        self._output_dir = "" if output_dir is None else os.fspath(output_dir)
        if last is None and (slow_step is not None or dump_signal is not None):
            raise ValueError("slow_step and dump_signal make dumps of a flight recorder: say with last= how much it keeps")
        if last is not None and schedule is not None:
            raise ValueError(
                "a schedule chooses its steps beforehand, and last= keeps what was just before something odd; give one of the two"
            )
        self._last_ns = 0 if last is None else parse_last(last)
        self._slow_step = 0.0 if slow_step is None else parse_slow_step(slow_step)
        self._max_dumps = max_dumps
        self._dump_signal = 0 if dump_signal is None else int(dump_signal)
        self._quiet_dumps = False
        self._frames_of_imports = True  # `lanescope record`: an import is one frame
        self._max_bytes = None if max_size is None else parse_size(max_size, LEAST_SIZE)
        self._disk_reserve_bytes = None if disk_reserve is None else parse_size(disk_reserve)
        self._budget_ratio = 0.0 if budget is None else parse_budget(budget)
        self._hardware = HardwareLanes(parse_interval(hardware) if hardware else 0)
        if self._hardware.interval_ns and last is not None:
            raise ValueError("hardware= and last= exclude each other: the file of hardware counters keeps all samples")
        self._sample_rate = _samples.parse_rate(sample_python)
        self._holds_samples = False
        self._spool_path = ""  # `lanescope record` names the file itself
        self._free_name = False  # and takes the next free name when that one is taken
        self._owner_pid = 0
        self._holds_flag = False
        self._holds_frames = False
        self._warn_about_what_is_missing()
        self.step_num = 0
        self._action = action_number(self.schedule(0))
        self._core: Optional[_core.Profiler] = None
        self._at_rest = False  # stopped, and the recording can go on: acc_events
        self._ends_with_us: Optional[_core.Profiler] = None
        self._by_hand = False  # prepare_trace, start_trace and stop_trace instead of start, step and stop
        self._last_events: Optional[EventList] = None
        self._last_kineto_results: Optional[KinetoResults] = None

    @property
    def current_action(self) -> ProfilerAction:
        """What the schedule says of the step at hand."""
        found: ProfilerAction = ProfilerAction(self._action)
        return found

    @property
    def use_device(self) -> Optional[str]:
        """"cuda" when its activity is asked for."""
        return "cuda" if ProfilerActivity.CUDA in self.activities else None

    def _warn_about_what_is_missing(self) -> None:
        unseen = sorted(a.name for a in self.activities if a not in (ProfilerActivity.CPU, ProfilerActivity.CUDA))
        if unseen:
            _warn(f"{', '.join(unseen)} activity is not recorded by this version; the CPU side is", once=True)
        if _beside_torch.experimental_flag(self.experimental_config, "adjust_profiler_step"):
            _warn(
                "adjust_profiler_step is ignored: ProfilerStep ranges begin and end with their steps. torch.profiler moves "
                "their starts into step() where the loop calls it; leave the option out",
                once=True,
            )
        if self._lacks_cupti():
            _warn(
                "CUDA activity is not recorded: this installation was built without CUPTI; `lanescope doctor` says how to get it",
                once=True,
            )

    def _lacks_cupti(self) -> bool:
        return ProfilerActivity.CUDA in self.activities and not _activities.cupti_library()

    # -- running ------------------------------------------------------------------------------------------------------

    def __enter__(self) -> "profile":
        self.start()
        return self

    def __exit__(
        self, exc_type: Optional[Type[BaseException]], exc: Optional[BaseException], tb: Optional[TracebackType]
    ) -> None:
        self.stop()
        if self.execution_trace_observer is not None:
            self.execution_trace_observer.cleanup()

    def start(self) -> None:
        """Starts with the step at hand of the schedule. The first time with a new torch this compiles the observer
        (seconds)."""
        if self._running:
            raise RuntimeError("this profile is already running; stop() it first, or make another one")
        self._run(by_hand=False)

    def _run(self, by_hand: bool) -> None:
        if _torch.loaded_torch() is not None and ProfilerActivity.CPU in self.activities:
            reason = _torch.ensure_observer()
            if reason:
                _torch.say_no_operators(reason)
        if self.with_stack:
            reason = _stacks.start()
            if reason:
                _warn(f"with_stack: going on without stacks and Python frames: {reason}", once=True)
        if ProfilerActivity.CUDA in self.activities:
            offer_nvtx()
        if self._core is not None and self._at_rest and self._owner_pid == os.getpid():
            if self._core.can_go_on():
                self._go_on(self._core, by_hand)
                return
            _warn(
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
            capture_overload_names=_beside_torch.experimental_flag(self.experimental_config, "capture_overload_names"),
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
        self._at_rest = False
        self._last_events = None
        self._last_kineto_results = None
        _beside_torch.begin_counting_steps()
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

        Raises NotStartedError when there is a step to record and nobody started; a second stop() does nothing.
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
            _beside_torch.end_counting_steps()
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
        _warn(
            f"a profile was dropped while it recorded, which ended it; {kept}. "
            "Keep it and call stop(), or use it in a `with` statement"
        )

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
            _beside_torch.count_step()
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
            _warn("step() records nothing, because this profile does not run: call start() or use it in a `with` statement", once=True)

    def _pass_on(self, lines: Iterable[str]) -> None:
        for line in lines:
            about_gpu = line.startswith("cupti: ")
            if about_gpu and self._lacks_cupti():
                continue  # said when the profile was made
            _warn(line, once=about_gpu)

    def _before(self, action: int) -> None:
        if action in RECORDING and not self._holds_flag:
            self._holds_flag = True
            self._name_cycle()
            _torch.hold_flag()
            if self.execution_trace_observer is not None:
                self.execution_trace_observer.start()

    def _frames_of(self, action: int) -> None:
        """Python frames come and go with the recorded windows; a window must be open when they come."""
        if (self.with_stack or self.with_modules) and action in RECORDING and not self._holds_frames:
            self._holds_frames = True
            if self.record_shapes and self.profile_memory and self.with_stack:
                _tensors.hold(self)
            for line in _frames.hold(self, every_frame=self.with_stack, imports=self._frames_of_imports):
                _warn(line, once=True)

        if self._sample_rate and action in RECORDING and not self._holds_samples:
            self._holds_samples = True
            reason = _samples.hold(self, self._sample_rate)
            if reason:
                _warn(f"sample_python: going on without samples: {reason}", once=True)

    def _after(self, action: int) -> None:
        if action not in RECORDING and self._holds_samples:
            self._holds_samples = False
            _samples.release(self)
        if action not in RECORDING and self._holds_frames:
            self._holds_frames = False
            _tensors.release(self)
            for line in _frames.release(self):
                _warn(line, once=True)
        if action not in RECORDING and self._holds_flag:
            self._holds_flag = False
            _torch.release_flag()
            if self.execution_trace_observer is not None:
                self.execution_trace_observer.stop()

    def _planned_action(self, step: int) -> int:
        return action_number(self.schedule(step))

    def _trace_ready(self) -> None:
        # The window is closed, the next step not yet begun: an execution trace has the same part of the program.
        if self.execution_trace_observer is not None:
            self.execution_trace_observer.stop()
        if self.on_trace_ready is not None:
            self._hardware.wait_for_samples()
            self.on_trace_ready(self)
        if self.execution_trace_observer is not None and self._running and self._action in RECORDING:
            self.execution_trace_observer.start()

    def toggle_collection_dynamic(self, enable: bool, activities: Iterable[Any]) -> None:
        """Stops recording in the middle of a window (``enable=False``), and goes on with it: what runs in between, ranges
        included, is not in the results.

        ``activities`` names what is switched: all that this profile records. The CPU side without its GPU work, or the
        other way round, is not switched (one warning): torch warns that such a trace joins calls to the wrong work.
        """
        named = {activity.name for activity in parse_activities(activities)}
        core = self._core
        if core is None or not self._running:
            return
        recorded = {activity.name for activity in self.activities} & {"CPU", "CUDA"}
        if "CUDA" in recorded and not (_activities.cupti_library() and _activities.has_gpu()):
            recorded.discard("CUDA")
        if not recorded <= named:
            left = ", ".join(sorted(recorded - named))
            _warn(f"toggle_collection_dynamic changes nothing: name {left} as well, it is recorded too", once=True)
            return
        self.describe_job()
        if enable:
            core.resume()
        else:
            core.pause()
        self._pass_on(core.take_warnings())

    def wait_for_exports(self) -> None:
        """Returns at once: :meth:`export_chrome_trace` has written its file when it returns (torch 2.14's method)."""

    def take_pending_cupti_export(self) -> None:
        """None: no file is left to be written later (torch 2.14's method)."""
        return None

    # -- the recording's files ----------------------------------------------------------------------------------------------

    @property
    def profiler(self) -> Optional["profile"]:
        """torch.profiler's inner object; here the profile itself, which has the same methods. None before start()."""
        return None if self._core is None else self

    @property
    def spool_path(self) -> str:
        """The recorder's own file; it outlives a killed process. Empty before ``start()``."""
        return "" if self._core is None else self._core.spool_path()

    def view(self, *, port: Optional[int] = None, open_browser: Optional[bool] = None,
             frame: Optional[bool] = None) -> "Union[View, SavedView]":
        """Opens a page that shows what was recorded: lanes, gaps with their causes, findings. See :func:`lanescope.view`."""
        from ._view import view_of

        return view_of(self, port=port, open_browser=open_browser, frame=frame)

    def dump(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes what was recorded up to now (with ``last``: the last seconds) as a recording of its own, ``.lspool``.

        Threads go on recording. Every lanescope command and :func:`read_trace` read it. Raises IoError when ``path`` exists
        or cannot be written, UnavailableError when nothing runs.
        """
        self._result().dump(os.fspath(path))

    def dumps(self) -> List[str]:
        """The files that slow steps and ``dump_signal`` left so far, in order."""
        return self._result().dumps()

    def stats(self) -> Dict[str, int]:
        """What recording took: file_bytes, dropped_records, depth_overflow, threads."""
        return self._result().stats()

    def __repr__(self) -> str:
        state = "running" if self._running else ("not started" if self._core is None else "stopped")
        return f"<lanescope.profile: {state}, step {self.step_num}, {self.current_action.name}>"
