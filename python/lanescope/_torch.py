"""Works with a torch that the program has imported; this module never imports torch.

Three things make torch's work visible while a profile records:
- the observer, a C++ library compiled against the user's torch, which registers itself with the recorder;
- torch's own flag ``torch.autograd.profiler._is_profiler_enabled``. Dynamo, AOTAutograd and Inductor ask it before they
  open their ranges; unset, a compiled program shows fewer rows. It is set through torch's own hooks while a window is
  open and put back afterwards, as it was found;
- a thin wrapper around torch's ``_enable_profiler`` and ``_disable_profiler``, so that torch.profiler starts and stops
  as if the observer were not there, and ranges reach it while it is on.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import sys
import threading
from typing import Any, Callable, Optional

from . import _core, _runtimes
from ._observer_build import ObserverUnavailable, build

OBSERVER_ABI = 6  # LANESCOPE_TORCH_OBSERVER_ABI

_lock = threading.RLock()
_library: Optional[ctypes.CDLL] = None
_reason: Optional[str] = None  # why there is no observer; None: not tried, or it exists
_reported_no_operators = False
_wrapped = False
_torch_profilers = 0  # torch's profilers that are on
_open_windows = 0  # open windows of ours
_set_by_us = False


def loaded_torch() -> Optional[Any]:
    """The torch module if its import is complete, else None."""
    torch = sys.modules.get("torch")
    whole = hasattr(torch, "compile") and "torch.autograd.profiler" in sys.modules
    return torch if whole else None


def ensure_observer(announce: Optional[bool] = None) -> str:
    """Loads the observer and compiles it if needed. Empty, or one line that says why torch operators are not recorded.

    Does nothing before torch is imported. Tries once per process.
    """
    global _library, _reason
    with _lock:
        if _library is not None:
            return ""
        if loaded_torch() is None:
            return "torch is not imported"
        if _reason is None:
            try:
                _library = _load(build(announce=announce))
                wrap_torch_profiler()
                _library.lanescope_torch_observer_announce(1 if _wrapped else 0)
                _library.lanescope_torch_observer_runtimes(0)
                _runtimes.listen(functools.partial(_library.lanescope_torch_observer_runtimes, 1))
                return ""
            except ObserverUnavailable as error:
                _reason = str(error)
        return _reason


def say_no_operators(reason: str) -> None:
    """Prints it on stderr once per process, before recording. Not a warning, because programs switch warnings off, and
    results without operators are of little use."""
    global _reported_no_operators
    if _reported_no_operators:
        return
    _reported_no_operators = True
    with contextlib.suppress(OSError, ValueError, AttributeError):  # stderr is closed
        print(f"lanescope: ERROR: torch operators are not recorded, only ranges: {reason}", file=sys.stderr, flush=True)


def _load(path: str) -> ctypes.CDLL:
    try:
        library = ctypes.CDLL(path)
        abi = int(library.lanescope_torch_observer_abi())
    except (OSError, AttributeError) as error:
        raise ObserverUnavailable(f"{path} could not be loaded: {error}") from None
    if abi != OBSERVER_ABI:
        raise ObserverUnavailable(f"{path} has interface {abi}, expected {OBSERVER_ABI}; delete it")
    line = ctypes.create_string_buffer(512)
    if library.lanescope_torch_observer_install(line, ctypes.c_size_t(len(line))) != 0:
        raise ObserverUnavailable(line.value.decode(errors="replace") or "it did not say why")
    library.lanescope_torch_observer_stacks(ctypes.c_void_p(_core.stack_function()))
    return library


def tensor_function() -> "Optional[Callable[[int, int], None]]":
    """Records a tensor's identity: of Tensor._cdata and a role. None: there is no observer."""
    if _library is None:
        return None
    function = ctypes.PyDLL(_library._name).lanescope_torch_observer_tensor
    function.argtypes = [ctypes.c_void_p, ctypes.c_uint32]
    function.restype = None
    return function


def observer_loaded() -> bool:
    """Whether torch operators are recorded while a window is open."""
    return _library is not None


def _pause_observer_around(function: Callable[..., Any], change: int) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        global _torch_profilers
        if _library is not None:
            _library.lanescope_torch_observer_pause()
        try:
            result = function(*args, **kwargs)
            with _lock:
                _torch_profilers = max(_torch_profilers + change, 0)
            return result
        finally:
            if _library is not None:
                _library.lanescope_torch_observer_resume()

    return call


def wrap_torch_profiler() -> None:
    """Wraps torch's start and stop, once; the wrappers stay."""
    global _wrapped, _torch_profilers
    with _lock:
        profiler = sys.modules.get("torch.autograd.profiler")
        if _wrapped or profiler is None or loaded_torch() is None:
            return
        if not (hasattr(profiler, "_enable_profiler") and hasattr(profiler, "_disable_profiler")):
            return
        _wrapped = True
        _torch_profilers = 1 if getattr(profiler, "_is_profiler_enabled", False) else 0
        profiler._enable_profiler = _pause_observer_around(profiler._enable_profiler, 1)  # type: ignore[attr-defined]
        profiler._disable_profiler = _pause_observer_around(profiler._disable_profiler, -1)  # type: ignore[attr-defined]
        if hasattr(profiler, "_run_on_profiler_stop"):
            profiler._run_on_profiler_stop = _keep_flag(profiler._run_on_profiler_stop)  # type: ignore[attr-defined]
        toggle = getattr(profiler, "_toggle_collection_dynamic", None)  # it treats the first state that it finds
                                                                        # as its own
        if toggle is not None:
            profiler._toggle_collection_dynamic = _pause_observer_around(toggle, 0)  # type: ignore[attr-defined]


def _keep_flag(run_on_stop: Callable[[], None]) -> Callable[[], None]:
    """torch clears its flag when its profiler ends; this sets it again while a window of ours is open."""

    @functools.wraps(run_on_stop)
    def call() -> None:
        global _set_by_us
        run_on_stop()
        with _lock:
            profiler = sys.modules.get("torch.autograd.profiler")
            hook = getattr(profiler, "_run_on_profiler_start", None)
            if _open_windows > 0 and hook is not None:
                hook()
                _set_by_us = True

    return call


def hold_flag() -> None:
    """A window opens: tells torch that a profiler is on. Paired with :func:`release_flag`."""
    global _open_windows, _set_by_us
    with _lock:
        wrap_torch_profiler()
        _open_windows += 1
        profiler = sys.modules.get("torch.autograd.profiler")
        hook = getattr(profiler, "_run_on_profiler_start", None)
        if hook is not None and not _set_by_us and not getattr(profiler, "_is_profiler_enabled", True):
            hook()
            _set_by_us = True


def release_flag() -> None:
    """The window has closed: restores torch's flag, unless torch's profiler has started in between."""
    global _open_windows, _set_by_us
    with _lock:
        _open_windows = max(_open_windows - 1, 0)
        if _open_windows == 0 and _set_by_us:
            _set_by_us = False
            hook = getattr(sys.modules.get("torch.autograd.profiler"), "_run_on_profiler_stop", None)
            if hook is not None and _torch_profilers == 0:
                hook()
