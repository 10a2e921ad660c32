"""ProfilerActivity, ProfilerAction and DeviceType are torch's own members wherever torch is loaded."""

from __future__ import annotations

import copy
import pickle

import pytest

import lanescope
from lanescope import DeviceType, ProfilerAction, ProfilerActivity


@pytest.fixture
def theirs():
    torch = pytest.importorskip("torch")
    return {
        ProfilerActivity: torch.profiler.ProfilerActivity,
        ProfilerAction: torch.profiler.ProfilerAction,
        DeviceType: torch.autograd.DeviceType,
    }


def test_members_are_torchs_own(theirs):
    for ours, torchs in theirs.items():
        for name, member in torchs.__members__.items():
            assert getattr(ours, name) is ours[name] is ours(member) is ours(getattr(member, "value")) is member
            assert isinstance(member, ours) and member in ours
        assert dict(ours.__members__) == dict(torchs.__members__)
        assert list(ours) == list(torchs.__members__.values()) == list(reversed(list(reversed(ours))))
        assert len(ours) == len(torchs.__members__)
        assert issubclass(torchs, ours)


def test_orders_are_torchs(theirs):
    """Where torch's members have an order, ours have the same; where they have none, sorting fails in both."""
    for ours, torchs in theirs.items():

        def order(members):
            try:
                return sorted(members)
            except TypeError as error:
                return str(error)

        assert order(ours.__members__.values()) == order(torchs.__members__.values())


def test_an_older_torch_has_fewer_members_and_a_newer_one_more(run_python):
    """Of a torch that is made up."""
    run_python(
        code="""
import sys, types
from enum import Enum
import lanescope
from lanescope import DeviceType, ProfilerAction

class ProfilerActionOfTorch(Enum):
    NONE, WARMUP, RECORD, RECORD_AND_SAVE = range(4)
    LATER = 9

module = types.ModuleType("torch.profiler.profiler")
module.ProfilerAction = ProfilerActionOfTorch
sys.modules["torch.profiler.profiler"] = module
assert list(ProfilerAction) == list(ProfilerActionOfTorch) and len(ProfilerAction) == 5
assert ProfilerAction.LATER is ProfilerAction["LATER"] is ProfilerAction(9) is ProfilerActionOfTorch.LATER
assert ProfilerAction.DEVICE_STOPPED.value == 4 and ProfilerAction["DEVICE_STOPPED"].value == 4
assert "DEVICE_STOPPED" not in ProfilerAction.__members__ and "LATER" in ProfilerAction.__members__
for get in (lambda: ProfilerAction.NEVER, lambda: ProfilerAction["NEVER"], lambda: DeviceType.NEVER, lambda: ProfilerAction(7)):
    try:
        get()
    except (AttributeError, KeyError, ValueError):
        continue
    raise SystemExit("found what there is not")
"""
    )


def test_a_number_that_is_no_member_is_refused():
    for ours in (ProfilerActivity, ProfilerAction, DeviceType):
        with pytest.raises(ValueError, match="77"):
            ours(77)
        with pytest.raises(KeyError):
            ours["Often"]
        with pytest.raises(AttributeError):
            ours.Often


def test_torch_profiler_takes_our_activities_and_we_take_its(theirs):
    torch = pytest.importorskip("torch")
    with torch.profiler.profile(activities=[ProfilerActivity.CPU]) as prof:
        torch.ones(2).sin()
    assert "aten::sin" in [event.name for event in prof.events()]
    assert lanescope.profile(activities=[torch.profiler.ProfilerActivity.CPU]).activities == {ProfilerActivity.CPU}


def test_a_schedule_returns_torchs_actions(theirs):
    """What Lightning asks of the schedule that it is given."""
    plan = lanescope.schedule(wait=1, warmup=1, active=2)
    assert all(isinstance(plan(step), theirs[ProfilerAction]) for step in range(8))
    prof = lanescope.profile(schedule=plan)
    assert isinstance(prof.current_action, theirs[ProfilerAction])


def test_events_have_torchs_device_type(torch):
    with lanescope.profile() as prof:
        torch.ones(2).sin()
    for row in [prof.events()[0], prof.key_averages()[0]]:
        assert row.device_type == torch.autograd.DeviceType.CPU == row.device_type
        assert isinstance(row.device_type, torch.autograd.DeviceType)


def test_members_are_copied_and_pickled(theirs):
    for ours in theirs:
        for member in ours:
            assert pickle.loads(pickle.dumps(member)) == member == copy.deepcopy(member)


BEFORE_AND_AFTER = """
import copy, pickle, sys
import lanescope
from lanescope import DeviceType, ProfilerAction, ProfilerActivity

taken = {ours: dict(ours.__members__) for ours in (ProfilerActivity, ProfilerAction, DeviceType)}
pickled = pickle.dumps(taken)
in_a_set = {member for members in taken.values() for member in members.values()}
assert pickle.loads(pickled) == taken
assert all(type(member) is ours for ours, members in taken.items() for member in members.values())
assert lanescope.DeviceType.CUDA.value == 1 and int(DeviceType.HPU) == 15 and hash(DeviceType.HPU) == 15
assert repr(ProfilerActivity.CUDA) == "<ProfilerActivity.CUDA: 2>" and f"{ProfilerActivity.CUDA}" == "ProfilerActivity.CUDA"
assert "torch" not in sys.modules
import torch

theirs = {ProfilerActivity: torch.profiler.ProfilerActivity, ProfilerAction: torch.profiler.ProfilerAction,
          DeviceType: torch.autograd.DeviceType}
for ours, members in taken.items():
    others = list(theirs[ours].__members__.values())
    for name, early in members.items():
        same = theirs[ours].__members__.get(name)
        if same is None:
            continue
        assert early == same and same == early and not early != same and not same != early, name
        assert hash(early) == hash(same) and {early: 1}[same] == 1 and {same: 1}[early] == 1 and same in in_a_set
        assert len({early, same}) == 1 and isinstance(early, theirs[ours]) and isinstance(early, ours) and early in ours
        assert [other for other in others if early == other] == [same] == [other for other in others if other == early]
        assert early != 0 and same != 0 and same != "CPU" and not same == 0
        assert copy.copy(early) == copy.deepcopy(early) == early and str(early) == str(same)
assert pickle.loads(pickled)[DeviceType]["CPU"] is torch.autograd.DeviceType.CPU
assert pickle.loads(pickle.dumps(torch.autograd.DeviceType.CPU)) == taken[DeviceType]["CPU"]
early = taken[ProfilerActivity]["CPU"]
with torch.profiler.profile(activities=[early]) as prof:
    torch.ones(2).sin()
assert "aten::sin" in [event.name for event in prof.events()]
assert lanescope.profile(activities=[early]).activities == {torch.profiler.ProfilerActivity.CPU}
assert ProfilerActivity.CPU is torch.profiler.ProfilerActivity.CPU
"""


def test_members_taken_before_torch_was_there_equal_torchs(run_python):
    pytest.importorskip("torch")
    run_python(code=BEFORE_AND_AFTER)


def test_torchs_equality_is_left_alone_when_nobody_took_a_member_early(run_python):
    pytest.importorskip("torch")
    run_python(
        code="""
import sys
import lanescope
assert "torch" not in sys.modules
import torch
assert "lanescope" not in str(torch.autograd.DeviceType.__eq__)
from lanescope import DeviceType
assert DeviceType.CPU is torch.autograd.DeviceType.CPU
assert torch.autograd.DeviceType.__eq__.__module__ is None or "lanescope" not in torch.autograd.DeviceType.__eq__.__module__
"""
    )
