"""Programs that use the older torch.autograd.profiler see the same with lanescope.autograd_profiler."""

from __future__ import annotations

import inspect
import json
import warnings

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


def test_activities_are_chosen_as_torch_chooses_them(torch, monkeypatch):
    """Where there is a GPU, and where there is none."""
    from lanescope import _activities

    cpu, cuda = lanescope.ProfilerActivity.CPU, lanescope.ProfilerActivity.CUDA
    monkeypatch.setattr(_activities, "has_gpu", lambda: True)
    monkeypatch.setattr(_activities, "torch_sees_cuda", lambda: True)
    with pytest.warns(FutureWarning, match="use_cuda"):
        assert autograd_profiler.profile(use_cuda=True).activities == {cpu, cuda}
    alone = autograd_profiler.profile(use_cpu=False, use_kineto=True, use_device="cuda")
    assert alone.activities == {cuda} and alone.use_device == "cuda" and alone.use_cpu is False
    monkeypatch.setattr(_activities, "has_gpu", lambda: False)
    with pytest.warns(UserWarning, match="no GPU"):
        without = autograd_profiler.profile(use_device="cuda")
    assert without.activities == {cpu} and without.use_device is None


@pytest.mark.parametrize(
    "arguments",
    [
        dict(use_cpu=False),
        dict(use_cpu=False, use_device="cuda"),
        dict(use_cpu=False, use_kineto=True),
        dict(use_device="nonsense"),
        dict(use_device="nonsense", use_cpu=False, use_kineto=True),
        dict(schedule=None),
        dict(no_such_argument=1),
    ],
)
def test_what_torch_refuses_is_refused(torch, arguments):
    outcomes = []
    for module in (torch.autograd.profiler, autograd_profiler):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            try:
                module.profile(**arguments)
                outcomes.append(("made", len(said)))
            except (AssertionError, TypeError) as error:
                outcomes.append((type(error), len(said)))
    assert outcomes[0] == outcomes[1]


def test_the_arguments_are_torchs(torch):
    def signature(function):
        parameters = inspect.signature(function).parameters.values()
        return {p.name: (p.kind, p.default) for p in parameters if p.kind is not inspect.Parameter.VAR_KEYWORD}

    theirs, ours = signature(torch.autograd.profiler.profile), signature(autograd_profiler.profile)
    assert {name: ours[name] for name in theirs} == theirs  # an older torch has fewer
    later = [name for name in ours if name not in theirs]
    assert set(later) <= {"activity_filters", "post_processing_timeout_s", "custom_trace_id_callback", "acc_events"}


def test_an_export_takes_metadata_and_the_toggle_torchs_older_word(torch, tmp_path):
    with autograd_profiler.profile(use_kineto=True) as prof:
        work(torch)
    path = tmp_path / "trace.json"
    prof.export_chrome_trace(path, metadata={"model": '"small"'})
    assert json.loads(path.read_text())["model"] == "small"
    with autograd_profiler.profile() as prof:
        prof.toggle_collection_dynamic(enabled=False, activities=[lanescope.ProfilerActivity.CPU])
        work(torch)
    assert prof.function_events == []


def test_other_names_are_torchs(torch):
    assert autograd_profiler.emit_itt is torch.autograd.profiler.emit_itt
    with pytest.raises(AttributeError, match="no_such_name"):
        autograd_profiler.no_such_name
