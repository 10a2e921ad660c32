"""How much recording may cost."""

from __future__ import annotations

from . import _core


def parse_budget(budget: str) -> float:
    """``"1%"``, ``"0.5%"``, ``"2.5 %"`` as a ratio (0.01, ...); ValueError says what is expected."""
    ratio = _core.parse_percent(budget) if isinstance(budget, str) else None
    if ratio is None:
        raise ValueError(f"expected a share of the time from 0.1% to 50%, such as 1% or 2.5%; found {budget!r}")
    return ratio
