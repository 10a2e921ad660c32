"""A real list whose elements are made on first use.

Programs get a list, as from torch.profiler, and a table needs no million objects. Python code sees no difference. C
code that reads a list's memory directly (heapq) sees an empty list until then, so such calls need ``list(x)``.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Callable, Iterable, List, Optional, TypeVar

T = TypeVar("T")
_filling = threading.RLock()


class LazyList(List[T]):
    """:meth:`_later` sets how many elements there are and how to make them; without it, this is a plain list."""

    _load: Optional[Callable[[], Iterable[T]]] = None
    _length = 0
    _is_own = True  # the elements are not, or no longer, exactly those from _load

    def _later(self, length: int, load: Callable[[], Iterable[T]]) -> None:
        self._length = length
        self._load = load
        self._is_own = False

    def _fill(self) -> None:
        with _filling:
            if self._load is not None:
                list.extend(self, self._load())
                self._load = None

    def __len__(self) -> int:
        return self._length if self._load is not None else list.__len__(self)

    # Mypy keeps list's types of the methods below.
    if not TYPE_CHECKING:

        def __reduce_ex__(self, protocol: Any) -> Any:
            return _plain, (type(self), self._state(), list(self))

    def _state(self) -> Any:
        """The attributes of this list besides its elements; all can be pickled."""
        return {}


def _plain(kind: Any, state: Any, elements: List[Any]) -> Any:
    made = kind.__new__(kind)
    made.__dict__.update(state)
    list.extend(made, elements)
    return made


def _fill_first(name: str, changes: bool) -> Callable[..., Any]:
    method = getattr(list, name)

    def call(self: LazyList[Any], *args: Any, **kwargs: Any) -> Any:
        if self._load is not None:
            self._fill()
        if changes:
            self._is_own = True
        return method(self, *[_filled(each) for each in args], **kwargs)

    call.__name__, call.__doc__ = name, method.__doc__
    return call


def _filled(other: Any) -> Any:
    if isinstance(other, LazyList):
        other._fill()
    return other


def __radd__(self: LazyList[Any], other: Any) -> Any:
    return other + list(self) if isinstance(other, list) else NotImplemented


for _name in ("__getitem__", "__iter__", "__reversed__", "__contains__", "__eq__", "__ne__", "__lt__", "__le__", "__gt__",
              "__ge__", "__add__", "__mul__", "__rmul__", "copy", "count", "index"):  # fmt: skip
    setattr(LazyList, _name, _fill_first(_name, False))
for _name in ("__setitem__", "__delitem__", "__iadd__", "__imul__", "append", "clear", "extend", "insert", "pop", "remove",
              "reverse", "sort"):  # fmt: skip
    setattr(LazyList, _name, _fill_first(_name, True))
setattr(LazyList, "__radd__", __radd__)
