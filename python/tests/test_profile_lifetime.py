"""profile objects go away: when they are stopped and dropped, dropped while they run, or the interpreter ends."""

from __future__ import annotations

import gc
import json
import os
import pathlib
import threading
import warnings
import weakref

import pytest

import lanescope
from lanescope import ProfilerAction, profile, record_function, schedule


def record_something(prof):
    with record_function("work"):
        pass
    prof.step()


def names_of(prof):
    return {event.name for event in prof.events()}


def test_a_stopped_profile_goes_with_its_last_reference_and_takes_its_spool_along():
    prof = profile(schedule=lambda step: ProfilerAction.RECORD, on_trace_ready=lambda done: done.step_num)
    with prof:
        record_something(prof)
    spool = prof.spool_path
    assert "work" in names_of(prof) and os.path.exists(spool)
    alive = weakref.ref(prof)
    gc.disable()  # a reference count is enough: nothing below waits for a collection
    try:
        del prof
        assert alive() is None
    finally:
        gc.enable()
    assert not os.path.exists(spool)


def test_profiles_of_a_loop_leave_one_at_a_time():
    alive = []
    for _ in range(5):
        with profile() as prof:
            record_something(prof)
        alive.append(weakref.ref(prof))
        prof.events()
    assert [reference() is not None for reference in alive] == [False] * 4 + [True]


def test_a_callback_that_knows_its_profile_is_no_obstacle():
    seen = []

    def record():
        prof = profile(
            schedule=schedule(wait=0, warmup=1, active=1, repeat=1), on_trace_ready=lambda _: seen.append(prof.step_num)
        )
        with prof:
            record_something(prof)
            record_something(prof)
        return weakref.ref(prof), prof.spool_path

    alive, spool = record()
    gc.collect()
    assert seen == [2]
    assert alive() is None and not os.path.exists(spool)


def test_an_exception_inside_a_profile_keeps_it_no_longer_than_itself():
    alive = None
    with pytest.raises(ZeroDivisionError):
        with profile() as prof:
            alive = weakref.ref(prof)
            del prof
            raise ZeroDivisionError
    gc.collect()
    assert alive() is None


def test_an_exception_of_on_trace_ready_keeps_its_profile_no_longer_than_itself():
    def ready(prof):
        raise ZeroDivisionError

    def record():
        prof = profile(on_trace_ready=ready)
        prof.start()
        with pytest.raises(ZeroDivisionError):
            prof.stop()
        return weakref.ref(prof)

    alive = record()
    gc.collect()
    assert alive() is None


def dropped_while_it_runs(**options):
    prof = profile(**options)
    prof.start()
    record_something(prof)
    return prof.spool_path


@pytest.mark.parametrize("in_another_thread", [False, True])
def test_a_profile_dropped_while_it_runs_ends_and_says_so(in_another_thread):
    ready = []
    spools = []
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")

        def drop():
            spools.append(dropped_while_it_runs(on_trace_ready=ready.append))

        if in_another_thread:
            thread = threading.Thread(target=drop)
            thread.start()
            thread.join()
        else:
            drop()
    assert ["was dropped while it recorded" in str(one.message) for one in said] == [True]
    assert "its results are gone" in str(said[0].message)
    assert ready == []  # the program's code does not run while an object is freed
    assert not os.path.exists(spools[0])
    with profile() as prof:  # the recorder is free for a new recording
        record_something(prof)
    assert names_of(prof) == {"work"}


def test_a_dropped_profile_with_a_folder_leaves_its_recording_there(tmp_path):
    with pytest.warns(UserWarning, match="what it recorded is in") as said:
        spool = dropped_while_it_runs(output_dir=tmp_path)
    assert spool in str(said[0].message)
    assert "work" in spool_names(spool)


def spool_names(path):
    return set(lanescope.read_trace(path).names)


def test_a_profile_dropped_while_warnings_are_errors_raises_nothing(capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dropped_while_it_runs()
    assert capsys.readouterr().err == ""


def test_a_dropped_profile_gives_torchs_flag_back(torch):
    import torch.autograd.profiler as torch_profiler

    assert torch_profiler._is_profiler_enabled is False
    with pytest.warns(UserWarning, match="was dropped"):
        dropped_while_it_runs()
    assert torch_profiler._is_profiler_enabled is False


def test_a_profile_that_cannot_start_holds_nothing(tmp_path, torch):
    import torch.autograd.profiler as torch_profiler

    (tmp_path / "file").write_text("")
    prof = profile(output_dir=tmp_path / "file")
    with pytest.raises(lanescope.Error), prof:
        pass
    assert torch_profiler._is_profiler_enabled is False
    assert "not started" in repr(prof) or "stopped" in repr(prof)
    alive = weakref.ref(prof)
    del prof
    gc.collect()
    assert alive() is None


def test_the_interpreter_may_end_while_a_profile_records(run_python, tmp_path):
    done = run_python(
        code="import lanescope\nprof = lanescope.profile()\nprof.start()\nwith lanescope.record_function('work'):\n    pass\n",
        env={"TMPDIR": str(tmp_path)},
    )
    said = [line for line in done.stderr.splitlines() if "what it saw is in " in line]
    assert len(said) == 1, done.stderr
    path = said[0].split("what it saw is in ")[1]
    assert pathlib.Path(path).parent == tmp_path
    assert "work" in spool_names(path)


@pytest.mark.parametrize("options", ["record_shapes=True", "profile_memory=True", "with_stack=True, with_flops=True"])
def test_a_torch_program_may_end_while_a_profile_records(run_python, tmp_path, torch, options):
    """torch's own state of the main thread is gone before the recorder ends the recording."""
    done = run_python(
        code=f"""
import torch
from lanescope import ProfilerActivity, profile
prof = profile(activities=[ProfilerActivity.CPU], output_dir={str(tmp_path / "out")!r}, {options})
prof.start()
torch.ones(2).neg()
"""
    )
    assert "the program ended while a profiler recorded" in done.stderr
    (spool,) = (tmp_path / "out").glob("*.lspool")
    assert "aten::neg" in {row.key for row in lanescope.key_averages(lanescope.read_trace(spool))}


def test_texts_of_one_recording_do_not_pile_up_in_the_process():
    # 70 MB of metadata in all, beyond the 64 MiB that texts may take in a process.
    sizes = []
    for number in range(700):
        prof = profile()
        prof.preset_metadata_json("settings", json.dumps(f"{number:06}" + "x" * 100_000))
        with prof:
            with record_function(f"work {number % 2}"):
                pass
        sizes.append(prof.stats()["file_bytes"])
    with profile() as prof:
        with record_function("a name that no recording had before"):
            pass
    assert names_of(prof) == {"a name that no recording had before"}
    assert max(sizes[2:]) == min(sizes[2:])


def test_a_cycle_s_trace_id_replaces_that_of_the_cycle_before():
    with profile(schedule=schedule(wait=0, warmup=1, active=1)) as prof:
        for _ in range(6):
            record_something(prof)
    assert prof.trace.metadata["trace_id"] == prof.get_trace_id()


def test_starts_and_stops_leave_nothing(run_python, tmp_path):
    starts = int(os.environ.get("LANESCOPE_RESTARTS", "1500"))
    done = run_python(
        str(pathlib.Path(__file__).with_name("restarts.py")), str(starts), env={"TMPDIR": str(tmp_path)}, timeout=3600
    )
    first, *later = (json.loads(line) for line in done.stdout.splitlines())
    assert later[-1]["starts"] == starts
    for counted in later:
        # Maps move by a few: the C library's heap splits and joins its own.
        assert (counted["files"], counted["threads"], counted["spools"]) == (first["files"], first["threads"], 0), counted
        assert abs(counted["maps"] - first["maps"]) <= 8, counted
    # 2 MiB: 1,500 starts left 7 MB when each profile stayed, and the C library's heap moves by some hundred KB.
    assert later[-1]["resident_bytes"] - first["resident_bytes"] < 2 << 20, (first, later[-1])
