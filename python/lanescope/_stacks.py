"""Call stacks of operators and ranges: ``_core`` reads them and gives them to the torch observer.

docs/decisions/python_stacks.md says how it reads them, and why that is safe.
"""

from __future__ import annotations

import atexit
import os
import site
import sys
from typing import List

from . import _core

_running = False
_ended = False


def path_prefixes() -> List[str]:
    """The folders of modules, inner ones first: frames show file names relative to them, as in torch.profiler."""
    folders = list(site.getsitepackages()) if hasattr(site, "getsitepackages") else []
    folders += [path for path in sys.path if isinstance(path, str)]
    for find in ("getuserbase", "getusersitepackages"):
        if hasattr(site, find):
            folders.append(getattr(site, find)())
    whole = {os.path.join(os.path.abspath(folder), "") for folder in folders}
    return sorted((path for path in whole if path != os.sep and path.isprintable()), reverse=True)


def start() -> str:
    """Enables recording of stacks. Empty, or one line that says why not."""
    global _running
    if _ended:
        return "Python is ending"
    reason = _core.start_stacks(path_prefixes())
    if not reason and not _running:
        _running = True
        atexit.register(_end)
    return reason


def _end() -> None:
    """Called before the interpreter frees objects that other threads still read."""
    global _ended
    _ended = True
    _core.end_stacks()
