"""Calls a function once the program has imported a module; never imports it."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType
from typing import Any, Callable


def after_import(name: str, call: Callable[[], None]) -> None:
    """Calls ``call`` now if ``name`` is imported, else right after the program imports it. ``call`` must not raise."""
    if name in sys.modules:
        call()
    else:
        sys.meta_path.insert(0, _Watcher(name, call))


class _Watcher:
    """A finder that finds nothing; it removes itself when its module is requested."""

    def __init__(self, name: str, call: Callable[[], None]) -> None:
        self._name = name
        self._call = call

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != self._name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        loader: Any = getattr(spec, "loader", None)
        load: Any = getattr(loader, "exec_module", None)
        if load is None:
            return spec

        others = getattr(loader, "__dict__", {}).get("exec_module")  # of another watcher of this module

        def exec_module(module: ModuleType) -> None:
            if others is None:
                del loader.exec_module
            else:
                loader.exec_module = others
            load(module)
            self._call()

        try:
            loader.exec_module = exec_module
        except AttributeError:  # a loader that takes no attributes: the call never comes
            pass
        return spec
