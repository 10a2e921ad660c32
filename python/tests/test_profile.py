"""profile: schedules, results over cycles, exports, the couplings with torch."""

from __future__ import annotations

import json
import os
import threading
import warnings

import pytest

import lanescope
from lanescope import ProfilerAction, ProfilerActivity, profile, record_function, schedule


def step_ranges(prof):
    return [e.trace_name for e in prof.events() if e.name == "ProfilerStep*"]


def run_steps(prof, count):
    for number in range(count):
        with record_function(f"work {number}"):
            pass
        prof.step()


def test_a_schedule_records_its_active_steps():
    with profile(schedule=schedule(wait=1, warmup=1, active=2, repeat=1)) as prof:
        run_steps(prof, 6)
    assert step_ranges(prof) == ["ProfilerStep#2", "ProfilerStep#3"]
    assert [e.name for e in prof.events() if e.name.startswith("work")] == ["work 2", "work 3"]
    assert prof.step_num == 6 and prof.current_action is ProfilerAction.NONE


def test_results_cover_the_last_cycle_by_default():
    plan = schedule(wait=0, warmup=1, active=1, repeat=2)
    with profile(schedule=plan, acc_events=True) as prof:
        run_steps(prof, 4)
    assert step_ranges(prof) == ["ProfilerStep#1", "ProfilerStep#3"]
    with profile(schedule=plan) as prof:
        run_steps(prof, 4)
    assert step_ranges(prof) == ["ProfilerStep#3"]


def test_on_trace_ready_runs_after_each_cycle_with_results_at_hand(tmp_path):
    seen = []

    def ready(prof):
        prof.export_chrome_trace(tmp_path / f"{len(seen)}.json")
        seen.append((prof.step_num, step_ranges(prof)))

    with profile(schedule=schedule(wait=0, warmup=1, active=1), on_trace_ready=ready) as prof:
        run_steps(prof, 4)
    assert seen == [(2, ["ProfilerStep#1"]), (4, ["ProfilerStep#3"])]
    assert json.loads((tmp_path / "1.json").read_text())["traceEvents"]


def test_an_exception_of_on_trace_ready_reaches_the_program():
    def ready(prof):
        raise ZeroDivisionError("mine")

    prof = profile(schedule=schedule(wait=0, warmup=1, active=1), on_trace_ready=ready)
    prof.start()
    prof.step()
    with pytest.raises(ZeroDivisionError, match="mine"):
        prof.step()
    prof.stop()


def test_an_unfinished_window_is_kept_and_handed_over():
    ready = []
    with profile(schedule=schedule(wait=0, warmup=1, active=5), on_trace_ready=ready.append) as prof:
        run_steps(prof, 3)
    assert ready == [prof]
    assert "work 2" in [e.name for e in prof.events()]


def test_an_empty_result_says_why():
    with profile(schedule=schedule(wait=5, warmup=1, active=1)) as prof:
        run_steps(prof, 2)
    assert prof.empty_reason
    table = str(prof.key_averages().table())
    assert prof.empty_reason in table
    assert prof.empty_reason in repr(prof.events())


def test_a_profile_that_never_ran_says_so():
    with pytest.raises(RuntimeError, match="never started"):
        profile().key_averages()


def test_export_works_twice_and_packs_by_name(tmp_path):
    with profile() as prof:
        with record_function("once"):
            pass
    for name in ("a.json", "a.json", "b.json.gz"):
        prof.export_chrome_trace(str(tmp_path / name))
    assert (tmp_path / "b.json.gz").read_bytes()[:2] == b"\x1f\x8b"
    for name in ("a.json", "b.json.gz"):
        assert "once" in lanescope.read_trace(tmp_path / name).names
    with pytest.raises(OSError):
        prof.export_chrome_trace(tmp_path / "missing" / "a.json")


def test_metadata_reaches_the_file(tmp_path):
    prof = profile()
    prof.preset_metadata_json("preset", '{"a": 1}')
    with prof:
        prof.add_metadata("text", 'with "quotes" and \\')
        prof.add_metadata_json("number", "3.5")
        with pytest.raises(ValueError, match="JSON"):
            prof.add_metadata_json("bad", "{not json")
        with record_function("x"):
            pass
    prof.export_chrome_trace(tmp_path / "t.json")
    top = json.loads((tmp_path / "t.json").read_text())
    assert top["preset"] == {"a": 1} and top["text"] == 'with "quotes" and \\' and top["number"] == 3.5
    assert top["trace_id"] == prof.get_trace_id()


def test_the_trace_id_comes_from_the_callback_a_cycle():
    numbers = iter("ABCDEF")
    seen = []
    with profile(
        schedule=schedule(wait=0, warmup=1, active=1, repeat=2),
        custom_trace_id_callback=lambda: next(numbers),
        on_trace_ready=lambda prof: seen.append(prof.get_trace_id()),
    ) as prof:
        run_steps(prof, 4)
    assert seen == ["A", "B"]


def test_start_step_and_stop_may_come_from_different_threads():
    prof = profile(schedule=schedule(wait=0, warmup=1, active=1, repeat=1))

    def on_a_thread(call):
        thread = threading.Thread(target=call)
        thread.start()
        thread.join()

    on_a_thread(prof.start)
    on_a_thread(prof.step)
    with record_function("between"):
        pass
    on_a_thread(prof.step)
    prof.stop()
    prof.stop()
    assert "between" in [e.name for e in prof.events()]


def test_profiles_may_overlap():
    with profile() as outer:
        with record_function("one"):
            pass
        with profile() as inner:
            with record_function("two"):
                pass
    assert [e.name for e in outer.events()] == ["one", "two"]
    assert [e.name for e in inner.events()] == ["two"]


def test_starting_twice_begins_anew_with_a_warning_as_in_torch():
    calls = []
    prof = profile(on_trace_ready=calls.append)
    with prof:
        with record_function("dropped"):
            pass
        with pytest.warns(UserWarning, match="already running begins anew"):
            prof.start()
        assert calls == []
        with record_function("kept"):
            pass
    assert [e.name for e in prof.events()] == ["kept"]
    assert calls == [prof]


def test_starting_again_after_the_end_is_a_new_recording():
    prof = profile()
    with prof:
        pass
    with prof:
        with record_function("second time"):
            pass
    assert "second time" in [e.name for e in prof.events()]


@pytest.mark.parametrize("acc_events", [False, True])
def test_starting_twice_drops_the_open_window_only(acc_events):
    prof = profile(acc_events=acc_events)
    prof.start()
    with record_function("first"):
        pass
    prof.stop()
    prof.start()
    with pytest.warns(UserWarning, match="already running"):
        prof.start()
    with record_function("last"):
        pass
    prof.stop()
    assert [e.name for e in prof.events()] == ["last"]


def test_stacks_and_modules_are_no_reason_to_warn():
    import lanescope.profiler as module

    module._warned.clear()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        profile(with_stack=True, with_modules=True, activities=[ProfilerActivity.CPU])
    assert [str(w.message) for w in caught] == []


def test_activities_are_checked():
    with pytest.raises(ValueError, match="more than once"):
        profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CPU])
    with pytest.raises(TypeError, match="str"):
        profile(activities=["cpu"])
    with pytest.raises(AssertionError):
        profile(activities=[])


def test_a_folder_for_tensorboard_that_cannot_be_made_is_a_runtime_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RuntimeError, match="file.*cannot be made") as raised:  # torch.profiler's
        with profile(activities=[ProfilerActivity.CPU], on_trace_ready=lanescope.tensorboard_trace_handler(str(tmp_path / "file" / "log"))):
            pass
    assert isinstance(raised.value, OSError)


def test_tensorboard_trace_handler_writes_one_file_a_cycle(tmp_path):
    handler = lanescope.tensorboard_trace_handler(str(tmp_path / "log"), worker_name="w", use_gzip=True)
    with profile(schedule=schedule(wait=0, warmup=1, active=1, repeat=2), on_trace_ready=handler) as prof:
        run_steps(prof, 4)
    files = sorted((tmp_path / "log").iterdir())
    assert len(files) == 2 and all(f.name.startswith("w.") and f.name.endswith(".pt.trace.json.gz") for f in files)


def test_operators_of_torch_are_seen_with_shapes_and_threads(torch):
    x = torch.ones(3, 4, requires_grad=True)
    with profile(record_shapes=True, profile_memory=True, activities=list(torch.profiler.supported_activities())) as prof:
        loss = torch.mm(x, torch.ones(4, 5)).sum()
        loss.backward()
    events = {e.name: e for e in reversed(prof.events())}  # the first of each name
    assert events["aten::mm"].input_shapes == [[3, 4], [4, 5]]
    assert events["aten::mm"].sequence_nr >= 0
    assert "MmBackward0" in events
    rows = {(row.key, str(row.input_shapes)): row for row in prof.key_averages(group_by_input_shape=True)}
    assert rows["aten::mm", "[[3, 4], [4, 5]]"].cpu_memory_usage == 60  # 3 x 5 floats
    table = prof.key_averages().table(sort_by="self_cpu_memory_usage", row_limit=5)
    assert "CPU Mem" in table


def test_torchs_flag_is_put_back_as_it_was(torch):
    flag = lambda: torch.autograd.profiler._is_profiler_enabled
    with profile(schedule=schedule(wait=1, warmup=1, active=1, repeat=1)) as prof:
        assert not flag()
        prof.step()
        prof.step()
        assert flag()
        prof.step()
        assert not flag()
    assert not flag()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):
        with profile():
            assert flag()
        assert flag()
    assert not flag()


def test_torch_profiler_starts_and_stops_inside_and_around_ours(torch):
    def theirs():
        return torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU])

    with profile() as ours:
        with theirs() as inner:
            torch.ones(2).sin()
        torch.ones(2).cos()
    with theirs() as outer:
        with profile() as inside:
            torch.ones(2).tan()
        torch.ones(2).exp()
    assert {"aten::sin", "aten::cos"} <= {e.name for e in ours.events()}
    assert "aten::sin" in {e.name for e in inner.events()} and "aten::cos" not in {e.name for e in inner.events()}
    assert {"aten::tan", "aten::exp"} <= {e.name for e in outer.events()}
    assert "aten::tan" in {e.name for e in inside.events()}


def test_repr_says_how_it_stands():
    prof = profile()
    assert "not started" in repr(prof)
    with prof:
        assert "running" in repr(prof)
    assert "stopped" in repr(prof)
    assert "rows" in repr(prof.key_averages())


STEPS = """
import torch
from torch.autograd.profiler import KinetoStepTracker
import lanescope, torch.profiler
counted = []
for module in (torch.profiler, lanescope):
    before = KinetoStepTracker.current_step()
    with module.profile(activities=[module.ProfilerActivity.CPU], schedule=module.schedule(wait=1, warmup=1, active=1)) as prof:
        for _ in range(5):
            prof.step()
    counted.append(KinetoStepTracker.current_step() - before)
    counted.append("ProfilerStep" in KinetoStepTracker._step_dict)
print(counted)
"""


@pytest.mark.parametrize("daemon, expected", [("1", [5, False, 5, False]), ("", [0, False, 0, False])])
def test_steps_are_counted_for_kinetos_daemon_as_torch_profiler_does(torch, run_python, daemon, expected):
    assert run_python(code=STEPS, env={"KINETO_USE_DAEMON": daemon}).stdout.strip() == str(expected)


def test_the_environment_asks_for_an_execution_trace(torch, monkeypatch):
    monkeypatch.setenv("ENABLE_PYTORCH_EXECUTION_TRACE", "1")
    with profile() as prof:
        torch.ones(2)
    path = prof.execution_trace_observer.get_output_file_path()
    with open(path) as file:
        assert "aten::ones" in file.read()
    os.unlink(path)
    monkeypatch.delenv("ENABLE_PYTORCH_EXECUTION_TRACE")
    assert profile().execution_trace_observer is None


def test_a_program_may_set_the_number_of_the_step():
    """After a checkpoint is loaded, a training loop goes on at the step that it had reached."""
    saved = []
    with profile(
        schedule=schedule(wait=1, warmup=1, active=1), on_trace_ready=lambda prof: saved.append((prof.step_num, step_ranges(prof)))
    ) as prof:
        prof.step_num = 99
        for _ in range(6):
            prof.step()
    assert saved == [(102, ["ProfilerStep#101"]), (105, ["ProfilerStep#104"])]
