"""torch.profiler's interface to lanescope's recorder.

What differs, on purpose: a warm-up that no active step followed leaves the results of the last cycle as they are;
exporting works as often as you like; an empty result says why it is empty; ``start``, ``step`` and ``stop`` may come from
different threads; operators of every thread are recorded, and profiles may overlap.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, List, Optional, Set, Union

from . import _activities, _samples, _torch_tools
from ._activities import ProfilerActivity, activity_bits, activity_filters, parse_activities
from ._budget import parse_budget
from ._driving import Driving
from ._flight import parse_last, parse_slow_step
from ._hardware import parse_interval
from ._hardware_lanes import HardwareLanes
from ._schedule import ProfilerAction, action_number, always
from ._sizes import LEAST_SIZE, parse_size
from ._warnings import _said as _warned  # noqa: F401  # tests start anew
from ._warnings import warn, warn_about
from .events import EventList
from .kineto_results import KinetoResults
from .results import Results

if TYPE_CHECKING:
    from ._view import SavedView, View


class profile(Driving, Results):
    """Records what the program does between ``start()`` and ``stop()``, or step by step by a ``schedule``.

    Replaces ``torch.profiler.profile``: same arguments, same methods. Needs no torch; with torch imported its operators
    are recorded on all threads.

    Its results live as long as this object. A profile that is dropped while it records ends there, with a warning;
    ``on_trace_ready`` is not called then.

    Args:
        activities: what to record, of :class:`ProfilerActivity`; default: what :func:`supported_activities` gives, without a
            warning on a machine without a GPU. An activity that you name and that cannot be recorded gives a warning. So does
            a dict ``{activity: [kinds]}``: all kinds are recorded.
        schedule: from a step number to a :class:`ProfilerAction`, see :func:`lanescope.schedule`. None records
            everything from ``start()`` to ``stop()``.
        on_trace_ready: called with this object after each finished cycle, on the thread that steps or stops.
        record_shapes: shapes, types, strides and small concrete inputs of operators.
        profile_memory: allocations and frees, in bytes.
        with_stack: each call of a Python or C function, as torch.profiler's ``python_function`` events, and the Python lines
            that each operator and range was called from, up to 128 frames.
        with_flops: floating point operations, from the shapes (records shapes).
        with_modules: without ``with_stack``, only the calls of modules (``nn.Module: Linear_0``).
        experimental_config: torch's object. ``capture_overload_names`` works as in torch. ``adjust_profiler_step`` gives a
            warning. Its other options change nothing: every thread is recorded and operators have stacks in any case, and
            the rest belongs to Kineto.
        execution_trace_observer: started and stopped with the recorded windows, like torch.profiler does.
        acc_events: results cover all cycles so far. False (default): they cover only the last cycle that recorded, and the
            temporary file keeps no more than 16 MiB of earlier cycles. ``key_averages().cycles`` says which cycles are covered.
        use_cuda: deprecated, as in torch.profiler.
        custom_trace_id_callback: gives the trace id; called at the start of each cycle. Default: a random one.
        post_processing_timeout_s: accepted; lanescope has no long post-processing to cut short.
        last: a flight recorder: record for ever and keep only the last ``"10s"``, ``"500ms"``, ``"2m"`` or number of seconds.
            The results cover only this time. Memory and file stay bounded. Excludes ``schedule``. (lanescope only, like the
            next three.)
        slow_step: with ``last``: dump when a step (see :meth:`step`) takes more than this many times the median of the steps
            before it; ``2.0`` or ``"2x"``.
        max_dumps: how many dumps for slow steps are kept: those of the worst steps.
        dump_signal: with ``last``: this signal makes a dump, even while the program hangs in C code.
        output_dir: where the recorder's own file goes and stays (lanescope only). None: temporary, gone with this object.
        all_api: every call of the CUDA runtime and driver, not only those that start or wait for work (lanescope only).
        detach: whether CUPTI leaves the process at the end of each window and comes back with the next one (8 ms). While
            it is in the process, a launch takes about 1 us more. None: it leaves with CUDA 13 and newer, unless ``last``
            is given or another profiler uses CUPTI (lanescope only).
        max_size: the largest size of the recording's file, ``"500M"``, ``"4GiB"`` (default) or bytes. Later records are
            dropped and counted; with ``last``, the oldest are dropped (lanescope only, like the next one).
        disk_reserve: what the recording leaves free on its disk, ``"10G"`` or bytes. None: 5 % of the disk, 1 GB at least,
            but no more than half of what is free at the start.
        budget: what recording may cost, as a share of the time, ``"1%"`` or ``"0.5%"``. If recording costs more, it leaves
            things out: shapes, then stacks, then short operators, then everything for a while. Once left out, allocations stay
            out. The trace and a warning say what was left out and when. Without a schedule, the GPU is recorded in parts, each
            after enough of the budget was saved: with ``"1%"`` from the fourth or fifth second on. None: no limit, and the cost
            is not measured (lanescope only).
        hardware: sample the GPU's hardware counters (SMs and tensor cores active, memory, PCIe, NVLink), clocks, power and
            temperature in a separate process; True, or the interval: ``"100us"`` (default), ``"1ms"``. What cannot be
            sampled gives a warning. Not with ``last`` (lanescope only).
        sample_python: take the Python stack of every thread about this many times a second, ``True`` for 1000, without the
            GIL and without stopping anything (lanescope only). The samples get separate lanes; ``lanescope flame``
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
        Driving.__init__(self, custom_trace_id_callback)
        activities = None if activities is None else list(activities)
        self.activities = parse_activities(activities)
        self.activity_filters = activity_filters(activities)
        if use_cuda is not None:
            warn("`use_cuda` is deprecated, use `activities` argument instead", FutureWarning)
            (self.activities.add if use_cuda else self.activities.discard)(ProfilerActivity.CUDA)
        if not self.activities:
            raise AssertionError("no activity is left; expected at least ProfilerActivity.CPU")
        self.use_cpu = ProfilerActivity.CPU in self.activities
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
            execution_trace_observer = _torch_tools.execution_trace_from_environment()
        self.execution_trace_observer = execution_trace_observer
        self.acc_events = bool(acc_events)
        self.post_processing_timeout_s = post_processing_timeout_s
        self.on_trace_ready = on_trace_ready
        self.schedule: Callable[[int], Any] = schedule or always
        self.record_steps = bool(schedule)
        self._output_dir = "" if output_dir is None else os.fspath(output_dir)
        self._set_flight_recorder(last, slow_step, max_dumps, dump_signal)
        self._set_limits(max_size, disk_reserve, budget)
        self._frames_of_imports = True  # `lanescope record`: an import is one frame
        self._hardware = HardwareLanes(parse_interval(hardware) if hardware else 0)
        if self._hardware.interval_ns and last is not None:
            raise ValueError("hardware= and last= exclude each other: the file of hardware counters keeps all samples")
        self._sample_rate = _samples.parse_rate(sample_python)
        self._spool_path = ""  # `lanescope record` names the file itself
        self._free_name = False  # and takes the next free name when that one is taken
        self._warn_about_what_is_missing()
        self.step_num = 0
        self._action = action_number(self.schedule(0))
        self._last_events: Optional[EventList] = None
        self._last_kineto_results: Optional[KinetoResults] = None

    def _set_flight_recorder(
        self,
        last: Optional[Union[str, float]],
        slow_step: Optional[Union[str, float]],
        max_dumps: int,
        dump_signal: Optional[int],
    ) -> None:
        if last is None and (slow_step is not None or dump_signal is not None):
            raise ValueError("slow_step and dump_signal make dumps of a flight recorder: say with last= how much it keeps")
        if last is not None and self.record_steps:
            raise ValueError(
                "a schedule chooses its steps beforehand, and last= keeps what was just before something odd; give one of the two"
            )
        self._last_ns = 0 if last is None else parse_last(last)
        self._slow_step = 0.0 if slow_step is None else parse_slow_step(slow_step)
        self._max_dumps = max_dumps
        self._dump_signal = 0 if dump_signal is None else int(dump_signal)
        self._quiet_dumps = False

    def _set_limits(
        self, max_size: Optional[Union[str, int]], disk_reserve: Optional[Union[str, int]], budget: Optional[str]
    ) -> None:
        self._max_bytes = None if max_size is None else parse_size(max_size, LEAST_SIZE)
        self._disk_reserve_bytes = None if disk_reserve is None else parse_size(disk_reserve)
        self._budget_ratio = 0.0 if budget is None else parse_budget(budget)

    @property
    def current_action(self) -> ProfilerAction:
        """The schedule's action for the current step."""
        found: ProfilerAction = ProfilerAction(self._action)
        return found

    def _warn_about_what_is_missing(self) -> None:
        if self.activity_filters:
            filtered = ", ".join(sorted(activity.name for activity in self.activity_filters))
            warn_about(f"the kinds of events that are named for {filtered} are not chosen from: all kinds are recorded", once=True)
        unseen = sorted(a.name for a in self.activities if a not in (ProfilerActivity.CPU, ProfilerActivity.CUDA))
        if unseen:
            warn_about(f"{', '.join(unseen)} activity is not recorded by this version; the CPU side is", once=True)
        if _torch_tools.experimental_flag(self.experimental_config, "adjust_profiler_step"):
            warn_about(
                "adjust_profiler_step is ignored: ProfilerStep ranges begin and end with their steps. torch.profiler moves "
                "their starts into step() where the loop calls it; leave the option out",
                once=True,
            )
        if self._lacks_cupti():
            warn_about(
                "CUDA activity is not recorded: this installation was built without CUPTI; `lanescope doctor` says how to get it",
                once=True,
            )

    def toggle_collection_dynamic(self, enable: bool, activities: Iterable[Any]) -> None:
        """Pauses recording in the middle of a window (``enable=False``) or resumes it (``enable=True``). What runs in
        between, ranges included, is not in the results.

        ``activities`` must name all that this profile records. Otherwise the call changes nothing and gives one warning: a
        trace that lacks only the CPU side, or only the GPU work, would join calls to the wrong work, as torch warns.
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
            warn_about(f"toggle_collection_dynamic changes nothing: name {left} as well, it is recorded too", once=True)
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
    def kineto_activities(self) -> Set[ProfilerActivity]:
        """Of ``prof.profiler``, torch.profiler's inner object: what it records, without a GPU where torch sees none."""
        found = set(self.activities)
        if ProfilerActivity.CUDA in found and not (_activities.has_gpu() and _activities.torch_sees_cuda()):
            found.discard(ProfilerActivity.CUDA)
        return found

    @property
    def trace_id(self) -> str:
        """Of ``prof.profiler``: as :meth:`get_trace_id`."""
        return self.get_trace_id() or ""

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
        """Writes what was recorded up to now (with ``last``: the last seconds) as a separate recording, ``.lspool``.

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
