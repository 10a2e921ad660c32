"""Each warning points at the line of the program that caused it."""

from __future__ import annotations

import ast
import pathlib
import warnings

import pytest

import lanescope
import lanescope.profiler as module
from lanescope import ProfilerActivity, _activities, _core, _stacks, _torch, profile, record_function, schedule

HERE = __file__
CPU = [ProfilerActivity.CPU]


@pytest.fixture(autouse=True)
def anew():
    module._warned.clear()


def caught(call):
    """The one warning of ``call``, which must point at a line of this file."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call()
    (warning,) = found
    assert warning.filename == HERE, f"{warning.message}: {warning.filename}:{warning.lineno}"
    return str(warning.message), warning.lineno


def line_of(call):
    return call.__code__.co_firstlineno


def use_cuda():
    profile(use_cuda=False)


def other_activity():
    profile(activities=[ProfilerActivity.CPU, ProfilerActivity.XPU])


def no_warm_up():
    schedule(wait=0, warmup=0, active=1)


def never_started():
    profile(activities=CPU).step()


def short_schedule():
    with profile(activities=CPU, schedule=schedule(wait=0, warmup=1, active=5)) as prof:
        prof.step()


def warm_up_without_active():
    prof = profile(activities=CPU, schedule=lambda step: [1, 0, 0][min(step, 2)])
    prof.start()
    prof.step()
    prof.stop()


def without_save():
    prof = profile(activities=CPU, schedule=lambda step: [2, 0, 0][min(step, 2)])
    prof.start()
    prof.step()
    prof.stop()


def memory_timeline(tmp_path):
    with profile(activities=CPU, profile_memory=True) as prof:
        with record_function("x"):
            pass
    prof.export_memory_timeline(str(tmp_path / "m.json"))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (use_cuda, "use_cuda"),
        (other_activity, "XPU activity is not recorded"),
        (no_warm_up, "without warm-up"),
        (never_started, "does not run"),
        (short_schedule, "before the schedule's cycle did"),
        (warm_up_without_active, "WARMUP to NONE"),
        (without_save, "without RECORD_AND_SAVE"),
    ],
)
def test_a_warning_points_at_the_program(call, words):
    message, line = caught(call)
    assert words in message and line_of(call) < line <= line_of(call) + 5


def test_the_memory_timelines_warning_points_at_the_program(tmp_path):
    message, line = caught(lambda: memory_timeline(tmp_path))
    assert "Unknown" in message and line == line_of(memory_timeline) + 4


def test_what_cannot_be_recorded_points_at_the_program(monkeypatch):
    def without_cupti():
        profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])

    monkeypatch.setattr(_activities, "cupti_library", lambda: "")
    message, line = caught(without_cupti)
    assert "built without CUPTI" in message and line == line_of(without_cupti) + 1


@pytest.mark.parametrize("way", ["start", "with", "step", "prepare_trace"])
def test_a_missing_observer_is_reported_on_stderr_once(monkeypatch, capsys, way):
    monkeypatch.setattr(_torch, "loaded_torch", lambda: module)
    monkeypatch.setattr(_torch, "ensure_observer", lambda: "no compiler")
    monkeypatch.setattr(_torch, "_reported_no_operators", False)

    def program():
        prof = profile(activities=CPU, schedule=lambda step: step and 2)
        if way == "with":
            with prof:
                return
        getattr(prof, way)()
        prof.stop()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program()
        program()
    assert capsys.readouterr().err == "lanescope: ERROR: torch operators are not recorded, only ranges: no compiler\n"


def test_stacks_that_cannot_be_recorded_point_at_the_program(monkeypatch):
    monkeypatch.setattr(_stacks, "start", lambda: "not here")

    def program():
        prof = profile(activities=CPU, with_stack=True)
        prof.start()
        prof.stop()

    message, line = caught(program)
    assert "not here" in message and line == line_of(program) + 2


def test_one_side_alone_points_at_the_program(monkeypatch):
    monkeypatch.setattr(_activities, "has_gpu", lambda: True)
    monkeypatch.setattr(_activities, "cupti_library", lambda: "there")

    def program():
        prof = profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])
        prof._core, prof._running = _core, True
        try:
            prof.toggle_collection_dynamic(False, CPU)
        finally:
            prof._running = False

    message, line = caught(program)
    assert "name CUDA as well" in message and line == line_of(program) + 4


def test_every_warning_of_the_package_goes_the_same_way():
    """``warnings.warn`` itself is called in one place, so no other can miss the program's line."""
    package = pathlib.Path(lanescope.__file__).parent
    callers = set()
    for path in package.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and node.attr == "warn" and getattr(node.value, "id", "") == "warnings":
                callers.add(path.name)
    assert callers == {"_warnings.py"}
