"""Enumerations that torch also has: when torch is loaded, their members are torch's.

``ProfilerActivity.CPU`` looks for torch in ``sys.modules`` at each access, so with torch imported, in any order, it is
``torch.profiler.ProfilerActivity.CPU``. A member taken before the import of torch stays ours but behaves like torch's:
equal, the same hash, ``isinstance`` is true. docs/decisions/python_package.md says why.
"""

from __future__ import annotations

import sys
from enum import Enum, EnumMeta
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Mapping, Optional, Tuple, Type

from ._after_import import after_import

# Our name -> torch's module, and whether torch made it with pybind11 (its == returns False for any other type).
_TORCH_ENUMS: Dict[str, Tuple[str, bool]] = {
    "ProfilerAction": ("torch.profiler.profiler", False),
    "ProfilerActivity": ("torch._C._profiler", True),
    "DeviceType": ("torch._C._autograd", True),
}
_found: Dict[str, type] = {}
_early_enums: List[type] = []  # our enumerations with members taken before torch was imported


def torchs(ours: type) -> Optional[type]:
    """torch's enumeration of the same name, if the program has loaded it."""
    name = type.__getattribute__(ours, "__name__")
    found = _found.get(name)
    if found is None and name in _TORCH_ENUMS:
        found = getattr(sys.modules.get(_TORCH_ENUMS[name][0]), name, None)
        if isinstance(found, type):
            _found[name] = found
    return found


def _register_early_members() -> None:
    """torch is imported now. pybind11's ``==`` never asks the other object, so teach it our members."""
    for ours in _early_enums:
        theirs = torchs(ours)
        if theirs is not None:
            _compare_with_ours(theirs, ours)
    _early_enums.clear()


def _compare_with_ours(theirs: Any, ours: type) -> None:
    equal, unequal = theirs.__eq__, theirs.__ne__

    def __eq__(self: Any, other: object) -> Any:
        return self.name == other.name if type(other) is ours else equal(self, other)  # type: ignore[attr-defined]

    def __ne__(self: Any, other: object) -> Any:
        return self.name != other.name if type(other) is ours else unequal(self, other)  # type: ignore[attr-defined]

    theirs.__eq__, theirs.__ne__ = __eq__, __ne__


class SharedEnumMeta(EnumMeta):
    """Returns torch's member with the same name if there is one."""

    def _shared(cls, member: Any) -> Any:
        theirs = torchs(cls)
        if theirs is not None:
            return getattr(theirs, "__members__").get(member._name_, member)
        if cls not in _early_enums and _TORCH_ENUMS[cls.__name__][1]:
            _early_enums.append(cls)
            if len(_early_enums) == 1:
                after_import("torch", _register_early_members)
        return member

    def _torch_member(cls, name: str) -> Any:
        """torch's member that we do not have, because that torch is newer; None: there is none."""
        theirs = torchs(cls)
        return None if theirs is None else getattr(theirs, "__members__").get(name)

    def __getattribute__(cls, name: str) -> Any:
        value = super().__getattribute__(name)
        return cls._shared(value) if not name.startswith("_") and type(value) is cls else value

    def __getattr__(cls, name: str) -> Any:
        member = None if name.startswith("_") else cls._torch_member(name)
        if member is None:
            raise AttributeError(f"{type.__getattribute__(cls, '__name__')} has no member {name!r}")
        return member

    def __call__(cls, value: Any, *args: Any, **kwargs: Any) -> Any:
        theirs = torchs(cls)
        if theirs is not None and type(value) is theirs:
            return value
        try:
            return cls._shared(super().__call__(value, *args, **kwargs))
        except ValueError:
            for member in () if theirs is None else getattr(theirs, "__members__").values():
                if member.value == value:
                    return member
            raise

    def __getitem__(cls, name: str) -> Any:
        member = cls._member_map_.get(name)
        found = cls._torch_member(name) if member is None else cls._shared(member)
        if found is None:
            raise KeyError(name)
        return found

    def __iter__(cls) -> Iterator[Any]:
        yield from cls.__members__.values()

    def __reversed__(cls) -> Iterator[Any]:
        yield from reversed(list(cls.__members__.values()))

    def __len__(cls) -> int:
        return len(cls.__members__)

    @property
    def __members__(cls) -> Mapping[str, Any]:  # type: ignore[override]
        """Those of torch when it is loaded: an older torch lacks some of ours, and a newer one has more."""
        theirs = torchs(cls)
        if theirs is not None:
            return MappingProxyType(dict(getattr(theirs, "__members__")))
        return MappingProxyType({name: cls._shared(member) for name, member in cls._member_map_.items()})

    def __contains__(cls, value: Any) -> bool:
        return isinstance(value, cls) or value in cls._value2member_map_

    def __instancecheck__(cls, instance: Any) -> bool:
        return cls.__subclasscheck__(type(instance))

    def __subclasscheck__(cls, subclass: type) -> bool:
        return type.__subclasscheck__(cls, subclass) or subclass is torchs(cls)


class SharedEnum(Enum, metaclass=SharedEnumMeta):
    """Our member; with torch imported, only members taken earlier are left."""

    if not TYPE_CHECKING:

        @property
        def __class__(self) -> Type[Any]:  # isinstance() asks it
            return torchs(type(self)) or type(self)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if type(other) is torchs(type(self)):
            return bool(self._name_ == other.name)  # type: ignore[attr-defined]
        return NotImplemented

    def __hash__(self) -> int:  # as for torch's members: by number if pybind11 made them, else by name
        return hash(self._value_) if _TORCH_ENUMS[type(self).__name__][1] else hash(self._name_)

    def __int__(self) -> int:
        return int(self._value_)

    __index__ = __int__

    def __reduce_ex__(self, protocol: Any) -> Any:  # torch's member where it is read with torch loaded
        return type(self), (self._value_,)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}.{self._name_}: {self._value_}>"

    def __str__(self) -> str:
        return f"{type(self).__name__}.{self._name_}"

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)

    def __dir__(self) -> List[str]:
        return dir(type(self))
