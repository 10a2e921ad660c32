"""Call stacks of operators and ranges: switched on in ``_core``, which reads them, and shown to the torch observer.

docs/decisions/python_stacks.md tells how they are read, and why that is safe.
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
    """The folders that modules come from, inner ones first: frames show file names below them, as torch.profiler does."""
    folders = list(site.getsitepackages()) if hasattr(site, "getsitepackages") else []
    folders += [path for path in sys.path if isinstance(path, str)]
    for find in ("getuserbase", "getusersitepackages"):
        if hasattr(site, find):
            folders.append(getattr(site, find)())
    whole = {os.path.join(os.path.abspath(folder), "") for folder in folders}
    return sorted((path for path in whole if path != os.sep and path.isprintable()), reverse=True)


def start() -> str:
    """From now on stacks can be recorded; empty, or one line that says why not."""
    global _running
    if _ended:
        return "Python is ending"
    reason = _core.start_stacks(path_prefixes())
    if not reason and not _running:
        _running = True
        atexit.register(_end)
    return reason


def _end() -> None:
    """Before the interpreter frees what busy threads would look at."""
    global _ended
    _ended = True
    _core.end_stacks()
