"""lanescope and torch.profiler in one process at the same time: each records its own window, and neither ends the other's."""

from __future__ import annotations

import pathlib
import threading
import warnings

import pytest

torch = pytest.importorskip("torch", reason="needs torch")
lanescope = pytest.importorskip("lanescope", reason="needs the lanescope package (PYTHONPATH)")

from torch.profiler import ProfilerActivity, record_function  # noqa: E402

from both_profilers import load, names, need_observer, ranges, threads, under_torch  # noqa: E402


@pytest.fixture(scope="module", autouse=True)
def observer() -> None:
    need_observer()


def step(name: str) -> None:
    with record_function(name):
        pass
    with torch._C._profiler._RecordFunctionFast("f:" + name):
        pass


def test_torch_profiler_inside_lanescope(tmp_path: pathlib.Path) -> None:
    theirs = torch.profiler.profile(activities=[ProfilerActivity.CPU], profile_memory=True)
    with lanescope.profile(activities=[lanescope.ProfilerActivity.CPU], profile_memory=True) as ours:
        step("a")
        with theirs:
            step("b")
        assert torch.autograd.profiler._is_profiler_enabled is True  # ours still records
        step("c")
    assert torch.autograd.profiler._is_profiler_enabled is False
    ours.export_chrome_trace(str(tmp_path / "ours.json"))
    theirs.export_chrome_trace(str(tmp_path / "theirs.json"))
    assert ranges(load(tmp_path / "ours.json")) == ["a", "f:a", "b", "f:b", "c", "f:c"]
    assert ranges(load(tmp_path / "theirs.json")) == ["b", "f:b"]


def test_lanescope_inside_torch_profiler(tmp_path: pathlib.Path) -> None:
    ours = lanescope.profile(activities=[lanescope.ProfilerActivity.CPU])
    with torch.profiler.profile(activities=[ProfilerActivity.CPU]) as theirs:
        step("a")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with ours:
                step("b")
        assert torch.autograd.profiler._is_profiler_enabled is True
        step("c")
    ours.export_chrome_trace(str(tmp_path / "ours.json"))
    theirs.export_chrome_trace(str(tmp_path / "theirs.json"))
    assert ranges(load(tmp_path / "ours.json")) == ["b", "f:b"]
    assert ranges(load(tmp_path / "theirs.json")) == ["a", "f:a", "b", "f:b", "c", "f:c"]


def test_overlapping_the_other_way_round(tmp_path: pathlib.Path) -> None:
    theirs = torch.profiler.profile(activities=[ProfilerActivity.CPU])
    ours = lanescope.profile(activities=[lanescope.ProfilerActivity.CPU])
    theirs.start()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours.start()
    step("a")
    theirs.stop()
    assert torch.autograd.profiler._is_profiler_enabled is True
    step("b")
    ours.stop()
    assert torch.autograd.profiler._is_profiler_enabled is False
    ours.export_chrome_trace(str(tmp_path / "ours.json"))
    theirs.export_chrome_trace(str(tmp_path / "theirs.json"))
    assert ranges(load(tmp_path / "ours.json")) == ["a", "f:a", "b", "f:b"]
    assert ranges(load(tmp_path / "theirs.json")) == ["a", "f:a"]


def test_torch_profiler_of_all_threads_inside_lanescope(tmp_path: pathlib.Path) -> None:
    from torch._C._profiler import _ExperimentalConfig

    with lanescope.profile(activities=[lanescope.ProfilerActivity.CPU]) as ours:
        theirs = under_torch(lambda: step("b"), tmp_path, experimental_config=_ExperimentalConfig(profile_all_threads=True))
        step("c")
    ours.export_chrome_trace(str(tmp_path / "ours.json"))
    assert ranges(theirs) == ["b", "f:b"]
    assert ranges(load(tmp_path / "ours.json")) == ["b", "f:b", "c", "f:c"]


def test_started_on_one_thread_and_stopped_on_another(tmp_path: pathlib.Path) -> None:
    prof = lanescope.profile(activities=[lanescope.ProfilerActivity.CPU], profile_memory=True)
    starter = threading.Thread(target=prof.start)
    starter.start()
    starter.join()
    step("a")
    torch.ones(1000)
    stopper = threading.Thread(target=prof.stop)
    stopper.start()
    stopper.join()
    step("after")
    prof.export_chrome_trace(str(tmp_path / "ours.json"))
    trace = load(tmp_path / "ours.json")
    assert ranges(trace) == ["a", "f:a"]
    assert [e["args"]["Bytes"] for e in trace["traceEvents"] if e.get("name") == "[memory]"] == [4000, -4000]
    assert "aten::ones" in names(threads(under_torch(lambda: torch.ones(2), tmp_path)))  # still starts on this thread


def test_ranges_open_at_start_and_at_stop(tmp_path: pathlib.Path) -> None:
    prof = lanescope.profile(activities=[lanescope.ProfilerActivity.CPU])
    with record_function("open before start"):
        prof.start()
        step("a")
    with record_function("open at stop"):
        prof.stop()
    step("after")
    prof.export_chrome_trace(str(tmp_path / "ours.json"))
    assert ranges(load(tmp_path / "ours.json")) == ["a", "f:a", "open at stop"]
