"""Which steps are recorded: torch.profiler's actions and schedule, without torch."""

from __future__ import annotations

from typing import Callable

from ._torch_enums import SharedEnum
from ._warnings import warn


class ProfilerAction(SharedEnum):
    """What the profiler does during one step; torch.profiler's members when torch is loaded."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3
    DEVICE_STOPPED = 4  # a state of torch.profiler; lanescope never uses it, and no schedule may return it


def schedule(
    *,
    wait: int,
    warmup: int,
    active: int,
    repeat: int = 0,
    skip_first: int = 0,
    skip_first_wait: int = 0,
) -> Callable[[int], ProfilerAction]:
    """A function from step number to action, for ``profile(schedule=...)``. All arguments count steps.

    After ``skip_first`` steps the cycle ``wait`` (do nothing), ``warmup`` (get ready, record nothing that is kept),
    ``active`` (record) runs ``repeat`` times, or until the end when ``repeat`` is 0. A ``skip_first_wait`` other than 0
    leaves out the first cycle's ``wait``.

    Raises AssertionError for a negative count and for ``active`` below 1, as torch.profiler does.
    """
    if min(wait, warmup, repeat, skip_first) < 0 or active <= 0:
        raise AssertionError(
            "a schedule needs wait, warmup, repeat, skip_first >= 0 and active > 0; found "
            f"wait={wait}, warmup={warmup}, active={active}, repeat={repeat}, skip_first={skip_first}"
        )
    if warmup == 0:
        warn("lanescope: a schedule without warm-up steps may measure one-time costs of the first recorded step")
    length = wait + warmup + active

    def action(step: int) -> ProfilerAction:
        if step < 0:
            raise AssertionError(f"a step number is >= 0; found {step}")
        if step < skip_first:
            return ProfilerAction.NONE
        step -= skip_first
        if skip_first_wait != 0:
            step += wait
        if repeat > 0 and step / length >= repeat:  # torch.profiler's float division, on purpose
            return ProfilerAction.NONE
        position = step % length
        if position < wait:
            return ProfilerAction.NONE
        if position < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if position < length - 1 else ProfilerAction.RECORD_AND_SAVE

    return action


def always(_step: int) -> ProfilerAction:
    """The schedule of a profile without one: records every step."""
    return ProfilerAction.RECORD


NONE, WARMUP, RECORD, RECORD_AND_SAVE, DEVICE_STOPPED = range(5)
RECORDING = (RECORD, RECORD_AND_SAVE)


def action_number(action: object) -> int:
    """The number of what a user's schedule returned: a ProfilerAction of ours or of torch.profiler, or its number."""
    number = getattr(action, "value", action)
    if not isinstance(number, int) or not NONE <= number <= DEVICE_STOPPED:
        raise ValueError(f"a schedule returns a ProfilerAction; found {action!r}")
    if number == DEVICE_STOPPED:
        raise ValueError("a schedule may return NONE, WARMUP, RECORD or RECORD_AND_SAVE; found DEVICE_STOPPED")
    return number
