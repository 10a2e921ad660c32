"""Notices when the program makes a module of torch's lite interpreter or of its static runtime.

Their operators have scopes of their own. Around each node of a backward pass torch sorts the callbacks again by each
scope that they ask for, so the observer asks for these three only in programs that have such a module
(docs/decisions/torch_observer.md).
"""

from __future__ import annotations

import functools
import gc
import sys
from typing import Any, Callable, Optional

from ._after_import import after_import

# Of torch._C: whatever makes such a module from Python goes through one of them.
_MAKERS = ("_load_for_lite_interpreter", "_load_for_lite_interpreter_from_buffer", "_jit_to_static_module", "_fuse_to_static_module")

_CLASSES = ("LiteScriptModule", "StaticModule")

_used = False
_was_late = False  # torch was there before this module
_listener: Optional[Callable[[], None]] = None


def listen(call: Callable[[], None]) -> None:
    """Calls ``call`` when the first such module is made; now, if there is one already."""
    global _listener
    _listener = call
    if _used or (_was_late and _is_any_alive()):
        call()


def _is_any_alive() -> bool:
    """Python has no list of the modules, but each holds a reference to its class that no other object accounts for."""
    kinds = [type("Unused", (), {})]
    kinds += [getattr(sys.modules.get("torch._C"), name) for name in _CLASSES if hasattr(sys.modules.get("torch._C"), name)]
    unexplained = [sys.getrefcount(kind) - len(gc.get_referrers(kind)) for kind in kinds]
    return max(unexplained) > unexplained[0]


def _noting(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        global _used
        if not _used:
            _used = True
            if _listener is not None:
                _listener()
        return function(*args, **kwargs)

    return call


def _watch() -> None:
    makers = sys.modules.get("torch._C")
    for name in _MAKERS:
        function = getattr(makers, name, None)
        if function is not None:
            setattr(makers, name, _noting(function))


_was_late = "torch" in sys.modules
after_import("torch", _watch)
