"""``@record_function("name")``: called by the C type."""

from __future__ import annotations

import functools
from typing import Any, Callable, Optional, TypeVar, Union

from ._core import record_function

R = TypeVar("R")


def decorate(name: Union[str, bytes], args: Optional[str], function: Callable[..., R]) -> Callable[..., R]:
    """Returns ``function`` with a range of that name around every call."""

    @functools.wraps(function)
    def wrapped(*positional: Any, **keywords: Any) -> R:
        around = record_function(name, args)
        around.__enter__()
        try:
            return function(*positional, **keywords)
        finally:
            around.__exit__(None, None, None)

    return wrapped


def decorate_with(around: record_function, function: Callable[..., R]) -> Callable[..., R]:
    """The same with an object of a subclass, which every call enters and leaves."""

    @functools.wraps(function)
    def wrapped(*positional: Any, **keywords: Any) -> R:
        with around:
            return function(*positional, **keywords)

    return wrapped
