"""The list that programs of one folder enter themselves into; record.py of examples/fault_sets reads it."""

from __future__ import annotations

from typing import Any, Callable, Dict

Step = Callable[[], Any]
PAIRS: Dict[str, Callable[..., Step]] = {}


def pair(function: Callable[..., Step]) -> Callable[..., Step]:
    """Enters a program into the list. It takes a Setting and whether it is the good twin, and returns its step."""
    PAIRS[function.__name__] = function
    return function


def trap(function: Callable[..., Step]) -> Callable[..., Step]:
    """Enters a program that looks faulty and is not. There is one of it, called good."""
    function.variants = ("good",)  # type: ignore[attr-defined]
    return pair(function)


def recorded(**options: Any) -> Callable[[Callable[..., Step]], Callable[..., Step]]:
    """How a program is recorded, see record.py of examples/fault_sets: shapes, stacks, memory, marks (of steps), active (steps at most).
    apart: gains.py gives each twin a process of its own."""

    def enter(function: Callable[..., Step]) -> Callable[..., Step]:
        function.recording = options  # type: ignore[attr-defined]
        return function

    return enter
