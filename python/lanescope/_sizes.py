"""How large a recording may become, and what it leaves free on its disk."""

from __future__ import annotations

from typing import Optional, Union

from . import _core

LEAST_SIZE = 1 << 20


def parse_size(size: Union[str, int], least: int = 0) -> int:
    """Bytes of ``"500M"``, ``"2G"``, ``"4GiB"`` or a number of bytes; ValueError says what is expected."""
    value: Optional[int] = None
    if isinstance(size, str):
        value = _core.parse_byte_size(size)
    elif isinstance(size, int) and not isinstance(size, bool) and size < 1 << 63:
        value = size
    if value is None or value < least:
        more = " of 1MiB or more" if least else ""
        raise ValueError(f"expected a size{more}, such as 500M, 2G or 4GiB (or a number of bytes); found {size!r}")
    return value
