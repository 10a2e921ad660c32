"""Python frames: switched on and off in ``_core``, which records each call of a function while a window is open.

Up to Python 3.11 ``_core`` sets the profile hook of each thread; from 3.12 on its callbacks are given to
``sys.monitoring`` here. docs/decisions/python_frames.md says what is recorded, what it costs, and how it works
with other profilers.
"""

from __future__ import annotations

import atexit
import os
import sys
import weakref
from types import CodeType
from typing import Any, Dict, List, Optional, Set

from . import _core, _stacks

# Events of sys.monitoring: enough for a function that neither yields nor is resumed.
_MODULE_EVENTS = ("PY_START", "PY_RETURN")
_TOOL_NAME = "lanescope"

_owners: Dict[int, bool] = {}  # who wants frames: True: every frame; False: only modules
_with_imports: Set[int] = set()  # owners that also want what imports run
_tool: Optional[int] = None  # of sys.monitoring
_module_code: Optional[CodeType] = None
_counts_for: Optional["weakref.ref[object]"] = None  # the profile whose windows share module numbers
_prepared = False
_ended = False


def _find_module_code() -> Optional[CodeType]:
    """The code of nn.Module.__call__, if the program has imported torch."""
    module = getattr(sys.modules.get("torch.nn"), "Module", None)
    return getattr(getattr(module, "__call__", None), "__code__", None)


def _find_import_code() -> Optional[CodeType]:
    """The code of the function that Python calls to import a module that is not loaded yet."""
    return getattr(getattr(sys.modules.get("_frozen_importlib"), "_find_and_load", None), "__code__", None)


def hold(owner: object, *, every_frame: bool, imports: bool = True) -> List[str]:
    """Records frames from now on, in the open window. Returns lines for the user.

    Without ``imports`` the import of a module is one frame, and what runs in it is left out.
    """
    global _counts_for, _module_code, _prepared
    if _ended:
        return []
    reason = _stacks.start()
    if reason:  # with_stack has already reported it
        return [] if every_frame else [f"going on without Python frames: {reason}"]
    if not _prepared:
        _prepared = True
        atexit.register(_end)
        os.register_at_fork(after_in_child=_forget)
    is_new = not _owners and (_counts_for is None or _counts_for() is not owner)
    if is_new:
        _counts_for = weakref.ref(owner)
    _owners[id(owner)] = every_frame
    if imports:
        _with_imports.add(id(owner))
    _module_code = _find_module_code()
    foreign = _core.start_frames(_module_code, None if _with_imports else _find_import_code(), is_new)
    return _monitor() if hasattr(sys, "monitoring") else _describe_foreign_hooks(foreign)


def _describe_foreign_hooks(foreign: int) -> List[str]:
    if foreign == 0:
        return []
    threads = "a thread" if foreign == 1 else f"{foreign} threads"
    return [
        f"no Python frames of {threads}: another profile hook is set there (sys.setprofile, a profiler), which is left as it "
        "is; end it before the recording to have them"
    ]


def release(owner: object) -> List[str]:
    """Stops frames for ``owner``; the hooks stay while another owner needs them."""
    _with_imports.discard(id(owner))
    if _owners.pop(id(owner), None) is None or _owners:
        return []
    _unmonitor()
    if _core.stop_frames() == 0:
        return []
    return ["Python frames end early on some threads: another profile hook was set there (sys.setprofile, a profiler)"]


def _monitor() -> List[str]:
    global _tool
    monitoring: Any = getattr(sys, "monitoring")
    if _tool is None:
        free = [number for number in (3, 4, 2, 5, 1, 0) if monitoring.get_tool(number) is None]
        if not free:
            return ["no Python frames: all places of sys.monitoring are taken by other tools"]
        _tool = free[0]
        monitoring.use_tool_id(_tool, _TOOL_NAME)
    events = monitoring.events
    callbacks = _core.frame_callbacks()
    for name, callback in callbacks.items():
        monitoring.register_callback(_tool, getattr(events, name), callback)
    if any(_owners.values()):
        wanted = 0
        for name in callbacks:
            wanted |= getattr(events, name)
        monitoring.set_events(_tool, wanted)
    else:
        monitoring.set_events(_tool, events.PY_UNWIND)
        if _module_code is not None:
            monitoring.set_local_events(_tool, _module_code, sum(getattr(events, name) for name in _MODULE_EVENTS))
    monitoring.restart_events()  # if the last window's budget was used up
    return []


def _unmonitor() -> None:
    global _tool
    if _tool is None:
        return
    monitoring: Any = getattr(sys, "monitoring")
    monitoring.set_events(_tool, 0)
    if _module_code is not None:
        monitoring.set_local_events(_tool, _module_code, 0)
    monitoring.free_tool_id(_tool)
    _tool = None


def _forget() -> None:
    """A forked child does not continue its parent's recording."""
    if _owners:
        _owners.clear()
        _with_imports.clear()
        _unmonitor()
        _core.stop_frames()


def _end() -> None:
    """Python is about to free the objects that the hooks read."""
    global _ended
    _ended = True
    _forget()
