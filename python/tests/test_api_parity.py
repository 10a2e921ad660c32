"""Replacing `from torch.profiler import ...` by `from lanescope import ...` finds every name and every argument."""

from __future__ import annotations

import inspect

import pytest

import lanescope

torch_profiler = pytest.importorskip("torch.profiler")



def arguments(function):
    return [name for name in inspect.signature(function).parameters if name != "self"]


def test_every_public_name_exists():
    assert [name for name in torch_profiler.__all__ if not hasattr(lanescope, name)] == []


def test_what_speaks_of_torchs_own_recorder_is_torchs(run_python):
    from lanescope import ExecutionTraceObserver, _ExperimentalConfig, itt, kineto_available

    assert ExecutionTraceObserver is torch_profiler.ExecutionTraceObserver
    assert kineto_available is torch_profiler.kineto_available
    assert itt is torch_profiler.itt and _ExperimentalConfig is torch_profiler._ExperimentalConfig
    run_python(
        code="""
import sys
from lanescope import ExecutionTraceObserver, profile  # sorted imports have lanescope before torch
assert sys.modules["torch.profiler"].ExecutionTraceObserver is ExecutionTraceObserver
"""
    )
    run_python(
        code="""
import sys
sys.modules["torch"] = None  # torch is not installed
import lanescope
for name in ("kineto_available", "ExecutionTraceObserver", "itt", "_ExperimentalConfig"):
    try:
        getattr(lanescope, name)
    except AttributeError as error:
        assert "torch cannot be imported" in str(error)
    else:
        raise SystemExit(name)
assert not hasattr(lanescope, "whatever")
"""
    )


def test_the_names_below_profile_are_there(torch):
    from lanescope import KinetoStepTracker, RecordScope, _KinetoProfile

    assert KinetoStepTracker is torch_profiler.KinetoStepTracker and RecordScope is torch_profiler.RecordScope
    low = _KinetoProfile(activities=[lanescope.ProfilerActivity.CPU], record_shapes=True)
    low.start()
    torch.ones(2)
    low.stop()
    assert [event.name for event in low.events()].count("aten::ones") == 1
    assert isinstance(lanescope.profile(), _KinetoProfile)


def test_every_public_attribute_of_torchs_profile_is_there(torch):
    """Of a profile that has run; what is left out is how torch keeps its own state."""
    internals = {"action_map", "has_cudagraphs", "mem_tl", "step_rec_fn"}
    with torch_profiler.profile(activities=[torch_profiler.ProfilerActivity.CPU]) as theirs:
        pass
    with lanescope.profile(activities=[lanescope.ProfilerActivity.CPU]) as ours:
        pass
    names = [name for name in dir(theirs) if not name.startswith("_") and name not in internals]
    assert [name for name in names if not hasattr(ours, name)] == []


def test_every_public_attribute_of_torchs_inner_object_is_there(torch):
    """``prof.profiler``; what is left out is how torch configures its C++ profiler."""
    internals = {"config", "create_trace_id", "default_trace_id", "profiler_kind", "profiling_end_time_ns", "profiling_start_time_ns"}
    values = ("enabled", "entered", "use_cpu", "use_cuda", "kineto_activities", "acc_events", "record_shapes")
    found = []
    for module in (torch_profiler, lanescope):
        prof = module.profile(activities=[module.ProfilerActivity.CPU], record_shapes=True)
        assert prof.profiler is None
        with prof:
            running = [getattr(prof.profiler, name) for name in values]
        assert [getattr(prof.profiler, name) for name in values] == running
        found.append((prof.profiler, running))
    (theirs, their_values), (ours, our_values) = found
    names = [name for name in dir(theirs) if not name.startswith("_") and name not in internals]
    assert [name for name in names if not hasattr(ours, name)] == []
    assert our_values == their_values and their_values[:2] == [True, True]


@pytest.mark.filterwarnings("ignore")
def test_kineto_activities_are_those_that_torch_can_record(torch):
    found = []
    for module in (torch_profiler, lanescope):
        activities = [module.ProfilerActivity.CPU, module.ProfilerActivity.CUDA]
        with module.profile(activities=activities) as prof:
            pass
        found.append((prof.profiler.kineto_activities, prof.profiler.use_cpu, prof.profiler.use_cuda))
    assert found[0] == found[1]


def test_flags_may_be_any_value_that_is_true_or_false(torch):
    flags = dict(record_shapes=1, profile_memory="yes", with_stack=0, with_flops=[], with_modules=None, acc_events=0)
    with lanescope.profile(activities=[lanescope.ProfilerActivity.CPU], **flags) as prof:
        torch.ones(2, 3) + 1
    assert [event.input_shapes for event in prof.events() if event.name == "aten::add"] == [[[2, 3], [], []]]
    assert prof.with_modules is False and prof.profile_memory is True


def test_profile_takes_every_argument():
    theirs = inspect.signature(torch_profiler.profile.__init__).parameters
    ours = inspect.signature(lanescope.profile.__init__).parameters
    assert [name for name in theirs if name not in ours] == []
    different = {
        name: (theirs[name].default, ours[name].default)
        for name in theirs
        if name != "self" and theirs[name].default != ours[name].default
    }
    assert different == {}


@pytest.mark.parametrize("name", [n for n in dir(torch_profiler.profile) if not n.startswith("_")])
def test_profile_has_every_method_with_every_argument(name):
    theirs, ours = getattr(torch_profiler.profile, name), getattr(lanescope.profile, name)
    if callable(theirs):
        assert [a for a in arguments(theirs) if a not in arguments(ours)] == []


@pytest.mark.parametrize("name", ["schedule", "tensorboard_trace_handler"])
def test_functions_take_every_argument(name):
    theirs = arguments(getattr(torch_profiler, name))  # older torch has fewer; ours take all of the newest
    assert arguments(getattr(lanescope, name))[: len(theirs)] == theirs


def test_what_torch_2_14_added_is_there(torch, monkeypatch):
    from lanescope import _warnings

    with lanescope.profile(activities=[lanescope.ProfilerActivity.CPU], with_stack=True) as prof:
        torch.ones(2)
    keys = [row.key for row in prof.key_averages()]
    for averages in (prof.key_averages, prof.events().key_averages):
        rows = averages(include_python_functions=True)
        assert [row.count for row in rows if row.key.startswith("<built-in method ones ")] == [1]
        assert [row.key for row in averages()] == keys
    monkeypatch.setattr(_warnings, "_said", set())
    with pytest.warns(UserWarning, match="this list holds no calls of Python functions"):
        assert [row.key for row in lanescope.EventList(list(prof.events())).key_averages(include_python_functions=True)] == keys
    prof.wait_for_exports()
    assert prof.take_pending_cupti_export() is None
    assert prof.events()[0].metadata is None  # as torch's without expose_kineto_event_metadata


def test_events_have_every_public_attribute_of_torchs(torch):
    """What is left out builds torch's tree of events."""
    building = {"append_cpu_child", "append_kernel", "set_cpu_parent"}
    events = []
    for profiler in (torch_profiler, lanescope):
        with profiler.profile(activities=[profiler.ProfilerActivity.CPU]) as prof:
            torch.ones(2)
        events.append(prof.events()[0])
    names = [name for name in dir(events[0]) if not name.startswith("_") and name not in building]
    assert [name for name in names if not hasattr(events[1], name)] == []


def test_enumerations_have_the_same_numbers():
    theirs = {name: int(value) for name, value in torch_profiler.ProfilerActivity.__members__.items()}
    ours = {name: value.value for name, value in lanescope.ProfilerActivity.__members__.items()}
    assert {name: ours.get(name) for name in theirs} == theirs
    for action in torch_profiler.ProfilerAction:  # torch before 2.13 has no DEVICE_STOPPED
        assert lanescope.ProfilerAction[action.name].value == action.value


def test_table_and_key_averages_take_every_argument():
    from torch.autograd.profiler_util import EventList

    ours = lanescope.KeyAverages
    parameters = inspect.signature(EventList.table).parameters
    assert arguments(ours.table)[: len(parameters) - 1] == arguments(EventList.table)
    for name, parameter in parameters.items():
        assert inspect.signature(ours.table).parameters[name].default == parameter.default


def test_limits_that_torch_takes_are_taken(torch):
    """None: all rows; and a number of frames below 0 is none."""
    texts = []
    for profiler in (torch_profiler, lanescope):
        with profiler.profile(activities=[profiler.ProfilerActivity.CPU]) as prof:
            torch.ones(2) + 1
        rows = prof.key_averages()
        lengths = [len(rows.table(row_limit=limit).splitlines()) for limit in (None, -1, 0, 1)]
        texts.append((lengths, len(prof.key_averages(group_by_stack_n=-1)), len(prof.profiler.table(row_limit=None).splitlines())))
    assert texts[0] == texts[1]


def test_a_negative_time_for_results_is_refused(torch):
    for profiler in (torch_profiler, lanescope):
        with pytest.raises(ValueError, match="post_processing_timeout_s"):
            profiler.profile(activities=[profiler.ProfilerActivity.CPU], post_processing_timeout_s=-1.0).start()


def test_a_schedule_that_is_false_is_none(torch):
    for profiler in (torch_profiler, lanescope):
        with profiler.profile(activities=[profiler.ProfilerActivity.CPU], schedule={}) as prof:
            torch.ones(2)
        assert [event.name for event in prof.events()].count("aten::ones") == 1


def test_chosen_kinds_of_events_are_kept_and_a_warning_says_that_all_are_recorded(torch, monkeypatch):
    from lanescope import _warnings

    monkeypatch.setattr(_warnings, "_said", set())
    CPU = lanescope.ProfilerActivity.CPU
    with pytest.warns(UserWarning, match="named for CPU .* all kinds are recorded"):
        prof = lanescope.profile(activities=iter([{CPU: ["cpu_op"]}]))
    assert prof.activities == {CPU} and prof.activity_filters == {CPU: {"cpu_op"}}
    assert lanescope.profile(activities=[CPU]).activity_filters == {}


def test_rows_have_the_fields_of_torchs_rows():
    from torch.autograd.profiler_util import FunctionEvent, FunctionEventAvg

    public = {"key", "count", "cpu_time", "cpu_time_total", "self_cpu_time_total", "device_time", "device_time_total"}
    public |= {"self_device_time_total", "cpu_memory_usage", "self_cpu_memory_usage", "device_memory_usage", "flops"}
    public |= {"self_device_memory_usage", "input_shapes", "overload_name", "stack", "is_async", "device_type"}
    public |= {"use_device", "node_id", "is_legacy", "is_remote"}
    theirs = FunctionEventAvg()
    assert [name for name in public if not hasattr(theirs, name)] == []  # the list above is of torch's names
    with lanescope.profile() as prof:
        with lanescope.record_function("x"):
            pass
    row = prof.key_averages()[0]
    assert [name for name in public if not hasattr(row, name)] == []
    for name in ("cuda_time", "cuda_time_total", "self_cuda_time_total", "cpu_time_str", "device_time_str"):
        assert hasattr(lanescope.FunctionEventAvg, name)
    event_names = [n for n in inspect.signature(FunctionEvent.__init__).parameters]
    assert hasattr(FunctionEvent, "self_cuda_memory_usage") and hasattr(lanescope.FunctionEvent, "self_cuda_memory_usage")
    fields = {"id", "name", "thread", "fwd_thread", "input_shapes", "is_async", "sequence_nr", "device_type"}
    assert fields <= set(event_names)
    assert [n for n in fields if not hasattr(lanescope.FunctionEvent, n)] == []
