"""Our lists, events and rows are torch's for isinstance(), once the program has loaded torch."""

from __future__ import annotations

import sys
from typing import Any


def instance_of(name: str) -> Any:
    """For ``__class__`` in a class body: the class of that name in torch.autograd.profiler_util, else the object's own."""

    def of(self: Any) -> Any:
        return getattr(sys.modules.get("torch.autograd.profiler_util"), name, type(self))

    return property(of)
