"""``@record_function("name")``: called by the C type."""

from __future__ import annotations

import functools
from typing import Any, Callable, Optional, TypeVar

from ._core import record_function

R = TypeVar("R")


def decorate(name: str, args: Optional[str], function: Callable[..., R]) -> Callable[..., R]:
    """``function`` with a range of that name around every call."""

    @functools.wraps(function)
    def wrapped(*positional: Any, **keywords: Any) -> R:
        with record_function(name, args):
            return function(*positional, **keywords)

    return wrapped
