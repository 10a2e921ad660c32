"""The schedule is torch.profiler's function, for any arguments."""

from __future__ import annotations

import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lanescope
from lanescope import ProfilerAction, schedule
from lanescope._schedule import action_number

counts = st.integers(min_value=-1, max_value=6)


def made(function, arguments):
    """The schedule, or the class of the exception; warnings as a number."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            return function(**arguments), len(caught)
        except AssertionError:
            return None, 0


@settings(max_examples=300, deadline=None)
@given(wait=counts, warmup=counts, active=counts, repeat=counts, skip_first=counts, skip_first_wait=counts)
def test_every_step_has_the_action_that_torch_gives_it(**arguments):
    torch_profiler = pytest.importorskip("torch.profiler")
    ours, our_warnings = made(schedule, arguments)
    theirs, their_warnings = made(torch_profiler.schedule, arguments)
    assert (ours is None) == (theirs is None)
    assert our_warnings == their_warnings
    if ours is not None:
        assert [ours(step).value for step in range(60)] == [theirs(step).value for step in range(60)]


def test_wait_warmup_active_repeat_once():
    plan = schedule(wait=1, warmup=1, active=2, repeat=1)
    A = ProfilerAction
    assert [plan(step) for step in range(6)] == [A.NONE, A.WARMUP, A.RECORD, A.RECORD_AND_SAVE, A.NONE, A.NONE]


def test_a_schedule_of_torch_is_understood_as_it_is():
    torch_profiler = pytest.importorskip("torch.profiler")
    plan = torch_profiler.schedule(wait=0, warmup=1, active=1)
    assert [action_number(plan(step)) for step in range(2)] == [1, 3]


def test_what_is_no_action_is_refused_with_its_value():
    with pytest.raises(ValueError, match="'often'"):
        action_number("often")
    with pytest.raises(ValueError, match="DEVICE_STOPPED"):
        action_number(lanescope.ProfilerAction.DEVICE_STOPPED)


def test_a_negative_step_is_refused():
    with pytest.raises(AssertionError):
        schedule(wait=0, warmup=1, active=1)(-1)
