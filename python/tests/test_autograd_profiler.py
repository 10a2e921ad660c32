"""Programs that use the older torch.autograd.profiler see the same with lanescope.autograd_profiler."""

from __future__ import annotations

import pytest

import lanescope
from lanescope import autograd_profiler


def work(torch):
    x = torch.ones(4, 4, requires_grad=True)
    for _ in range(2):
        (x @ x).sum().backward()


def rows(prof):
    return sorted((row.key, row.count, str(row.input_shapes), row.cpu_memory_usage) for row in prof.key_averages(True))


def test_the_results_are_torchs(torch):
    found = {}
    for module in (torch.autograd.profiler, autograd_profiler):
        with module.profile(record_shapes=True, profile_memory=True, use_kineto=True) as prof:
            with module.record_function("mine"):
                work(torch)
        assert isinstance(prof.function_events, list) and len(prof.function_events) > 5
        assert {event.name for event in prof.function_events} >= {"mine", "aten::mm"}
        found[module] = [
            rows(prof),
            sorted(event.name for event in prof.function_events),
            [line.split() for line in prof.table(row_limit=3).splitlines() if "Self CPU %" in line],
            prof.total_average().key,
            prof.self_cpu_time_total > 0,
        ]
        assert "aten::mm" in str(prof)
    assert found[autograd_profiler] == found[torch.autograd.profiler]


def test_a_disabled_profile_records_nothing_and_needs_no_recorder(torch):
    for module in (torch.autograd.profiler, autograd_profiler):
        with module.profile(False) as prof:
            work(torch)
        assert prof is None
    prof = autograd_profiler.profile(enabled=False)
    with prof:
        work(torch)
    assert "unfinished" in str(prof) and "unfinished" in repr(prof) and prof.profiler is None


def test_an_object_records_one_block(torch):
    for module, pattern in ((torch.autograd.profiler, "not reentrant"), (autograd_profiler, "make a new one")):
        prof = module.profile()
        with prof:
            work(torch)
        with pytest.raises(RuntimeError, match=pattern):
            prof.__enter__()


def test_an_exception_leaves_the_block_and_the_results_stay(torch):
    with pytest.raises(KeyError):
        with autograd_profiler.profile() as prof:
            torch.ones(2)
            raise KeyError("the program's own")
    assert [event.name for event in prof.function_events if event.name == "aten::ones"] == ["aten::ones"]


def test_the_gpu_alone_needs_a_gpu_to_be_asked_for():
    assert autograd_profiler.profile(use_cpu=False).activities == {lanescope.ProfilerActivity.CPU}
    for wanted in (dict(use_cuda=True), dict(use_device="cuda")):
        prof = autograd_profiler.profile(use_cpu=False, **wanted)
        assert prof.activities == {lanescope.ProfilerActivity.CUDA} and prof.use_device == "cuda"


def test_other_names_are_torchs(torch):
    assert autograd_profiler.emit_itt is torch.autograd.profiler.emit_itt
    with pytest.raises(AttributeError, match="no_such_name"):
        autograd_profiler.no_such_name
