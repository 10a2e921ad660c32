"""Side tasks of torch.profiler's profile: step counts for Kineto's daemon, execution traces.

This module never imports torch: it does something only for programs that have imported it.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Optional

STEPPER = "ProfilerStep"  # torch.profiler.profiler.PROFILER_STEP_NAME


def _step_tracker() -> Optional[Any]:
    """torch.autograd.profiler.KinetoStepTracker while Kineto's daemon (Dynolog) is in use, else None.

    Without a daemon nobody reads the count, and the first count would start Kineto; torch 2.13 makes the same check.
    """
    if not os.environ.get("KINETO_USE_DAEMON"):
        return None
    return getattr(sys.modules.get("torch.autograd.profiler"), "KinetoStepTracker", None)


def begin_counting_steps() -> None:
    """A profile starts."""
    tracker = _step_tracker()
    if tracker is not None:
        tracker.init_step_count(STEPPER)


def count_step() -> None:
    """A profile steps: a daemon's request for a trace of some iterations sees this one."""
    tracker = _step_tracker()
    if tracker is not None:
        tracker.increment_step(STEPPER)


def end_counting_steps() -> None:
    """A profile stops: the program's other step counters go on."""
    tracker = _step_tracker()
    if tracker is not None:
        tracker.erase_step_count(STEPPER)


def execution_trace_from_environment() -> Optional[Any]:
    """torch's ExecutionTraceObserver if the variable ENABLE_PYTORCH_EXECUTION_TRACE is 1, like torch.profiler; else None."""
    if os.environ.get("ENABLE_PYTORCH_EXECUTION_TRACE") != "1":
        return None
    observer = getattr(sys.modules.get("torch.profiler"), "ExecutionTraceObserver", None)
    make = getattr(observer, "build_execution_trace_obs_from_env", None)  # torch 2.6
    return None if make is None else make()


# Where torch._C._profiler._ExperimentalConfig keeps a field: it shows few of them, but pickles all, in this order.
_EXPERIMENTAL_FIELDS = {"adjust_profiler_step": 5, "capture_overload_names": 8}


def experimental_flag(config: Any, name: str) -> bool:
    """Whether torch's experimental config switches ``name`` on."""
    if hasattr(config, name):
        return bool(getattr(config, name))
    try:
        return config.__getstate__()[_EXPERIMENTAL_FIELDS[name]] is True
    except (AttributeError, IndexError, KeyError, TypeError):
        return False
