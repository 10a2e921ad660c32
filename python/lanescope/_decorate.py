"""``@record_function("name")``, and ranges that end with a future: called by the C type."""

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
        with around._recreate_cm():
            return function(*positional, **keywords)

    return wrapped


def end_with_future(around: record_function, future: Any) -> Any:
    """A future with the value or the error of ``future``, done when the range has ended."""

    def end(done: Any) -> Any:
        around._end_range()
        return done.value()

    return future.then(end)
