"""torch.profiler's words, recorded by lanescope.

What differs, on purpose: results cover every recorded cycle unless ``acc_events=False``; a window that is still open
when the profile ends is kept; exporting works as often as you like; an empty result says why it is empty; ``start``,
``step`` and ``stop`` may come from different threads; operators of every thread are recorded, and profiles may overlap.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
import uuid
import warnings
import weakref
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, List, Optional, Sequence, Set, Type, Union

from . import _core, _job, _stacks, _torch
from ._budget import parse_budget
from ._activities import ProfilerActivity, activity_bits, offer_nvtx, parse_activities, supported_activities
from ._flight import parse_last, parse_slow_step
from ._sizes import LEAST_SIZE, parse_size
from ._schedule import ProfilerAction, action_value, always
from .averages import KeyAverages
from .events import STACK_METRICS, EventList

if TYPE_CHECKING:
    from .explanations import Explanation

_warned: Set[str] = set()
_RECORDING = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


def _warn(message: str, *, once: bool = False, stacklevel: int = 3) -> None:
    if once:
        if message in _warned:
            return
        _warned.add(message)
    warnings.warn("lanescope: " + message, UserWarning, stacklevel=stacklevel + 1)


def _weak(method: Callable[..., Any], when_gone: Any = None) -> Callable[..., Any]:
    """Calls the bound ``method`` as long as its object lives, and keeps nothing alive."""
    reference = weakref.WeakMethod(method)

    def call(*args: Any) -> Any:
        found = reference()
        return when_gone if found is None else found(*args)

    return call


# Where torch._C._profiler._ExperimentalConfig keeps a field: it shows few of them, but pickles all, in this order.
_EXPERIMENTAL_FIELDS = {"capture_overload_names": 8}


def _flag(config: Any, name: str) -> bool:
    if hasattr(config, name):
        return bool(getattr(config, name))
    try:
        return config.__getstate__()[_EXPERIMENTAL_FIELDS[name]] is True
    except (AttributeError, IndexError, KeyError, TypeError):
        return False


class profile:
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
        with_stack: the Python lines that each operator and range was called from, up to 128 frames.
        with_flops: floating point operations, from the shapes (records shapes).
        with_modules: accepted; not recorded by this version (one warning).
        experimental_config: torch's object is accepted; ``capture_overload_names`` is honoured, every thread is recorded
            in any case, the rest belongs to Kineto.
        execution_trace_observer: started and stopped with the recorded windows, like torch.profiler does.
        acc_events: results cover all cycles so far (default); False: only the last one, which is torch.profiler's default.
        use_cuda: deprecated, as in torch.profiler.
        custom_trace_id_callback: gives the trace id; called at the start of each cycle. Default: a random one.
        post_processing_timeout_s: accepted; lanescope has no long post-processing to cut short.
        last: a flight recorder: record for ever and keep what came last, ``"10s"``, ``"500ms"``, ``"2m"`` or seconds; the
            results are these. Memory and file stay bounded. Excludes ``schedule``. (lanescope only, like the next three.)
        slow_step: with ``last``: a step (see :meth:`step`) that takes more than so many times the median of the steps before
            it makes a dump, at most one in ``last``; ``2.0`` or ``"2x"``.
        max_dumps: at most so many dumps for slow steps.
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
            (shapes, then stacks, then operators for a while), and the trace and a warning say what and when. None: no limit,
            and the cost is not measured (lanescope only).
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
        acc_events: bool = True,
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
    ) -> None:
        self._running = False  # first: __del__ looks at it, whatever fails below
        self.activities = parse_activities(activities)
        if use_cuda is not None:
            warnings.warn("`use_cuda` is deprecated, use `activities`", FutureWarning, stacklevel=2)
            (self.activities.add if use_cuda else self.activities.discard)(ProfilerActivity.CUDA)
        if not self.activities:
            raise AssertionError("no activity is left; expected at least ProfilerActivity.CPU")
        # 0: not chosen by the caller, so a machine without a GPU is no news.
        self._activity_bits = 0 if activities is None and use_cuda is None else activity_bits(self.activities)
        self.all_api = all_api
        self.detach = detach
        self.record_shapes = record_shapes
        self.profile_memory = profile_memory
        self.with_stack = with_stack
        self.with_flops = with_flops
        self.with_modules = with_modules
        self.experimental_config = experimental_config
        self.execution_trace_observer = execution_trace_observer
        self.acc_events = acc_events
        self.custom_trace_id_callback = custom_trace_id_callback
        self.post_processing_timeout_s = post_processing_timeout_s
        self.on_trace_ready = on_trace_ready
        self.schedule: Callable[[int], Any] = schedule if schedule is not None else always
        self.record_steps = schedule is not None
        self.preset_metadata: Dict[str, str] = {}
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
        self._max_bytes = None if max_size is None else parse_size(max_size, LEAST_SIZE)
        self._disk_reserve_bytes = None if disk_reserve is None else parse_size(disk_reserve)
        self._budget_ratio = 0.0 if budget is None else parse_budget(budget)
        self._spool_path = ""  # `lanescope record` names the file itself
        self._free_name = False  # and takes the next free name when that one is taken
        self._trace_id: Optional[str] = None
        self._job_json = ""  # the distributedInfo that was written last
        self._owner_pid = 0
        self._holds_flag = False
        self._warn_about_what_is_missing()
        self.step_num = 0
        self.current_action = action_value(self.schedule(0))
        self._core: Optional[_core.Profiler] = None

    def _warn_about_what_is_missing(self) -> None:
        unseen = sorted(a.name for a in self.activities if a not in (ProfilerActivity.CPU, ProfilerActivity.CUDA))
        if unseen:
            _warn(f"{', '.join(unseen)} activity is not recorded by this version; the CPU side is", once=True, stacklevel=4)
        if ProfilerActivity.CUDA in self.activities - supported_activities():
            _warn(
                "CUDA activity is not recorded: this installation was built without CUPTI; `lanescope doctor` says how to get it",
                once=True,
                stacklevel=4,
            )
        if self.with_modules:
            _warn("with_modules: not recorded by this version, going on without", once=True, stacklevel=4)

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
        """Starts with step 0 of the schedule. The first time with a new torch this compiles the observer (seconds)."""
        if self._running:
            raise RuntimeError("this profile is already running; stop() it first, or make another one")
        if _torch.loaded_torch() is not None and ProfilerActivity.CPU in self.activities:
            reason = _torch.ensure_observer()
            if reason:
                _warn(f"torch operators are not recorded, only ranges: {reason}", once=True)
        if self.with_stack:
            reason = _stacks.start()
            if reason:
                _warn(f"with_stack: going on without stacks: {reason}", once=True)
        if ProfilerActivity.CUDA in self.activities:
            offer_nvtx()
        core = _core.Profiler(
            # The core must not keep this object alive: it would never be freed.
            schedule=_weak(self._planned_action, ProfilerAction.NONE.value) if self.record_steps else None,
            first_action=self.current_action.value,
            on_trace_ready=_weak(self._trace_ready),
            activities=self._activity_bits,
            all_api=self.all_api,
            detach=self.detach,
            record_shapes=self.record_shapes or self.with_flops,
            profile_memory=self.profile_memory,
            with_stack=self.with_stack,
            with_flops=self.with_flops,
            capture_overload_names=_flag(self.experimental_config, "capture_overload_names"),
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
        self._before(self.current_action)
        try:
            core.start()
        except BaseException:
            self._after(ProfilerAction.NONE)
            raise
        self._running = True
        self._owner_pid = os.getpid()
        self._describe(core)
        _job.listen(self.describe_job)

    def stop(self) -> None:
        """Ends the profile. A window that is open is kept, and ``on_trace_ready`` is called for it."""
        core = self._core
        if core is None or not self._running:
            return
        _job.listen_no_more(self.describe_job)
        self.describe_job()
        self._running = False
        try:
            core.stop()
        finally:
            self._after(ProfilerAction.NONE)
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
        try:
            _job.listen_no_more(self.describe_job)
            core.stop()
        finally:
            self._after(ProfilerAction.NONE)
        kept = f"what it recorded is in {core.spool_path()}" if self._output_dir or self._spool_path else "its results are gone"
        _warn(
            f"a profile was dropped while it recorded, which ended it; {kept}. "
            "Keep it and call stop(), or use it in a `with` statement"
        )

    def step(self) -> None:
        """Says that the next step begins. Stopping a window and ``on_trace_ready`` happen inside this call."""
        action = action_value(self.schedule(self.step_num + 1))
        previous, self.current_action = self.current_action, action
        self.step_num += 1
        core = self._core
        if core is None or not self._running:
            return
        next_cycle = previous is ProfilerAction.RECORD_AND_SAVE and action in _RECORDING
        self._before(action)
        if previous is ProfilerAction.RECORD_AND_SAVE or (self._holds_flag and action not in _RECORDING):
            self.describe_job()
        try:
            core.step(action.value)
        finally:
            self._after(action)
            if next_cycle:
                self._name_cycle()
            self._pass_on(core.take_warnings())

    def _pass_on(self, lines: Iterable[str]) -> None:
        for line in lines:
            about_gpu = line.startswith("cupti: ")
            if about_gpu and ProfilerActivity.CUDA in self.activities - supported_activities():
                continue  # said when the profile was made
            _warn(line, once=about_gpu, stacklevel=4)

    def _before(self, action: ProfilerAction) -> None:
        if action in _RECORDING and not self._holds_flag:
            self._holds_flag = True
            self._name_cycle()
            _torch.hold_flag()
            if self.execution_trace_observer is not None:
                self.execution_trace_observer.start()

    def _after(self, action: ProfilerAction) -> None:
        if action not in _RECORDING and self._holds_flag:
            self._holds_flag = False
            _torch.release_flag()
            if self.execution_trace_observer is not None:
                self.execution_trace_observer.stop()

    def _planned_action(self, step: int) -> int:
        return action_value(self.schedule(step)).value

    def _trace_ready(self) -> None:
        if self.on_trace_ready is not None:
            self.on_trace_ready(self)

    # -- what goes into the trace -------------------------------------------------------------------------------------

    def _name_cycle(self) -> None:
        callback = self.custom_trace_id_callback
        self._trace_id = str(callback()) if callback is not None else uuid.uuid4().hex.upper()
        if self._core is not None:
            self._core.add_metadata_json("trace_id", json.dumps(self._trace_id))

    def _describe(self, core: _core.Profiler) -> None:
        for name in ("profile_memory", "record_shapes", "with_stack", "with_flops"):
            if getattr(self, name):
                core.add_metadata_json(name, "1")
        for key, value in self.preset_metadata.items():
            core.add_metadata_json(key, value)
        self.describe_job()

    def describe_job(self) -> None:
        """Writes this process's place in its job into the trace, when it has one and it is not written yet.

        Called by itself when a window opens or ends and when torch.distributed is set up or taken down.
        """
        if self._core is None or "distributedInfo" in self.preset_metadata:
            return
        info = _job.job_json()
        if info and info != self._job_json:
            self._job_json = info
            self._core.add_metadata_json("distributedInfo", info)

    def add_metadata(self, key: str, value: str) -> None:
        """A text into the trace's top-level entries; any text is escaped as it should be."""
        self.add_metadata_json(key, json.dumps(value))

    def add_metadata_json(self, key: str, value: str) -> None:
        """One JSON value into the trace's top-level entries.

        Raises InvalidArgumentError when ``value`` is not JSON; torch.profiler would write a file that nothing can read.
        """
        _check_json(key, value)
        if self._core is not None:
            self._core.add_metadata_json(key, value)
        else:
            self.preset_metadata[key] = value

    def preset_metadata_json(self, key: str, value: str) -> None:
        """Like :meth:`add_metadata_json`, before ``start()``; it goes into every trace of this profile."""
        _check_json(key, value)
        self.preset_metadata[key] = value
        if self._core is not None:
            self._core.add_metadata_json(key, value)

    def set_custom_trace_id_callback(self, callback: Callable[[], str]) -> None:
        """The next cycles' trace ids come from ``callback``."""
        self.custom_trace_id_callback = callback

    def get_trace_id(self) -> Optional[str]:
        """The id of the last recorded cycle; None before the first one."""
        return self._trace_id

    def toggle_collection_dynamic(self, enable: bool, activities: Iterable[Any]) -> None:
        """Not recorded by this version: warns and goes on."""
        _warn("toggle_collection_dynamic does nothing in this version; use a schedule", once=True)

    # -- results ------------------------------------------------------------------------------------------------------

    def _result(self) -> _core.Profiler:
        if self._core is None:
            raise RuntimeError("this profile was never started: use it in a `with` statement, or call start() and stop()")
        return self._core

    @property
    def trace(self) -> _core.Trace:
        """What was recorded so far, as columns (nanoseconds). Built when first asked for.

        Raises UnavailableError with the reason when nothing was recorded.
        """
        return self._result().trace()

    def _trace_or_empty(self) -> _core.Trace:
        try:
            return self._result().trace()
        except _core.UnavailableError:  # empty_reason tells why
            return _core.Trace()

    def events(self) -> EventList:
        """Every recorded event, not aggregated; times in microseconds, like torch.profiler's FunctionEvent list."""
        return EventList(self._trace_or_empty(), warning=self.empty_reason)

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> KeyAverages:
        """Sums per operator name, for ``.table()`` and as a list of rows."""
        return KeyAverages(
            self._trace_or_empty(),
            group_by_input_shape=group_by_input_shape,
            group_by_stack_n=group_by_stack_n,
            group_by_overload_name=group_by_overload_name,
            profile_memory=self.profile_memory,
            with_flops=self.with_flops,
            empty_reason=self.empty_reason,
        )

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

        Raises InvalidArgumentError when nothing was recorded with ``with_stack=True``.
        """
        if metric not in STACK_METRICS:
            raise ValueError(f"metric is self_cpu_time_total or self_cuda_time_total; found {metric!r}")
        if not self.with_stack:
            raise _core.InvalidArgumentError("export_stacks: expected a profile(with_stack=True), found one without stacks")
        self.events().export_stacks(os.fspath(path), metric)

    def export_memory_timeline(self, path: Union[str, "os.PathLike[str]"], device: Optional[str] = None) -> None:
        """Raises UnsupportedError; torch has deprecated it for torch.cuda.memory._record_memory_history."""
        raise _core.UnsupportedError("export_memory_timeline: not written by this version of lanescope")

    @property
    def profiler(self) -> "profile":
        """torch.profiler's inner object; here the profile itself, which has the same methods."""
        return self

    @property
    def function_events(self) -> EventList:
        """:meth:`events`, by the name that torch.autograd.profiler.profile gives it."""
        return self.events()

    @property
    def spool_path(self) -> str:
        """The recorder's own file; it outlives a killed process. Empty before ``start()``."""
        return "" if self._core is None else self._core.spool_path()

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


def _check_json(key: str, value: str) -> None:
    try:
        json.loads(value)
    except (TypeError, ValueError) as error:
        raise _core.InvalidArgumentError(f"metadata {key!r}: expected one JSON value, found {value!r:.80}: {error}") from None


def tensorboard_trace_handler(
    dir_name: Union[str, "os.PathLike[str]"],
    worker_name: Optional[str] = None,
    use_gzip: bool = False,
    use_python_export: bool = False,
) -> Callable[[profile], None]:
    """An ``on_trace_ready`` that writes ``<worker>.<time in ns>.pt.trace.json[.gz]`` into a directory for TensorBoard.

    ``worker_name`` should differ between the processes of a job; default: ``<hostname>_<pid>``.
    """
    directory = os.fspath(dir_name)

    def handler(prof: profile) -> None:
        os.makedirs(directory, exist_ok=True)
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        name = f"{worker}.{time.time_ns()}.pt.trace.json{'.gz' if use_gzip else ''}"
        prof.export_chrome_trace(os.path.join(directory, name))

    return handler
