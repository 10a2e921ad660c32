"""Which steps are recorded: torch.profiler's actions and schedule, without torch."""

from __future__ import annotations

import warnings
from enum import Enum
from typing import Callable


class ProfilerAction(Enum):
    """What the profiler does during one step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3
    DEVICE_STOPPED = 4  # torch.profiler's own state; lanescope never enters it and no schedule may return it


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
        warnings.warn(
            "lanescope: a schedule without warm-up steps may measure one-time costs of the first recorded step",
            stacklevel=2,
        )
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
    """The schedule of a profile that was given none: every step is recorded."""
    return ProfilerAction.RECORD


def action_value(action: object) -> ProfilerAction:
    """Our ProfilerAction for what a user's schedule returned: ours, torch.profiler's, or its number.

    A schedule made by torch.profiler.schedule works unchanged.
    """
    if isinstance(action, ProfilerAction):
        ours = action
    else:
        try:
            ours = ProfilerAction(getattr(action, "value", action))
        except ValueError:
            raise ValueError(f"a schedule returns a ProfilerAction; found {action!r}") from None
    if ours is ProfilerAction.DEVICE_STOPPED:
        raise ValueError("a schedule may return NONE, WARMUP, RECORD or RECORD_AND_SAVE; found DEVICE_STOPPED")
    return ours
