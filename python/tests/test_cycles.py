"""Which cycles results are of, and what is kept of the others."""

from __future__ import annotations

import glob
import json
import os

import pytest

import lanescope
from lanescope import ProfilerActivity, profile, record_function, schedule

EACH = {"wait": 0, "warmup": 1, "active": 1}


def work(number, ranges=1):
    for _ in range(ranges):
        with record_function(f"work {number}"):
            pass


def names(prof):
    return [event.name for event in prof.events() if event.name.startswith("work")]


def run(cycles, *, ranges=1, plan=EACH, **options):
    with profile(activities=[ProfilerActivity.CPU], schedule=schedule(**plan), **options) as prof:
        for number in range(cycles):
            prof.step()
            work(number, ranges)
            prof.step()
    return prof


def test_the_last_cycle_is_the_result_and_a_handler_sees_its_own(tmp_path):
    seen = []

    def ready(prof):
        prof.export_chrome_trace(tmp_path / f"{len(seen)}.json")
        seen.append((names(prof), [row.key for row in prof.key_averages()], prof.key_averages().cycles))

    prof = run(3, plan={**EACH, "repeat": 3}, on_trace_ready=ready)
    assert seen == [([f"work {n}"], ["ProfilerStep*", f"work {n}"], range(n + 1, n + 2)) for n in range(3)]
    assert names(prof) == ["work 2"] and prof.cycles == prof.key_averages().cycles == range(3, 4)
    assert "cycle 3 of 3" in repr(prof.key_averages())
    prof.export_chrome_trace(tmp_path / "end.json")
    for file, number in (("0.json", 0), ("1.json", 1), ("2.json", 2), ("end.json", 2)):
        trace = lanescope.read_trace(tmp_path / file)
        assert [name for name in trace.names if name.startswith("work")] == [f"work {number}"]
        assert [step for step, _ in trace.steps] == [2 * number + 1]


def test_all_cycles_when_asked_for():
    prof = run(3, plan={**EACH, "repeat": 3}, acc_events=True)
    assert names(prof) == ["work 0", "work 1", "work 2"]
    assert prof.key_averages().cycles == range(1, 4) and "cycles 1 to 3" in repr(prof.key_averages())


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("steps", [0, 2, 3, 4])
def test_a_warm_up_at_the_end_is_no_cycle(accumulate, steps):
    with profile(activities=[ProfilerActivity.CPU], schedule=schedule(**EACH), acc_events=accumulate) as prof:
        for number in range(steps):
            work(number)
            prof.step()
    last = (steps + 1) // 2
    assert prof.cycles == range(1 if accumulate else max(last, 1), last + 1)
    assert len([event for event in prof.events() if event.name == "ProfilerStep*"]) == len(prof.cycles)
    assert bool(prof.empty_reason) == (steps == 0)


def test_results_are_torchs_after_the_run(torch):
    def rows(module, **options):
        with module.profile(activities=[ProfilerActivity.CPU], schedule=module.schedule(wait=1, warmup=1, active=2, repeat=2),
                            **options) as prof:  # fmt: skip
            for function in (torch.sin, torch.cos, torch.tan, torch.exp, torch.neg, torch.abs, torch.sqrt, torch.erf):
                function(torch.ones(2))
                prof.step()
        return sorted((row.key, row.count) for row in prof.key_averages())

    for options in ({}, {"acc_events": True}):
        assert rows(lanescope, **options) == rows(torch.profiler, **options)


def test_a_warm_up_at_the_end_leaves_the_last_cycle():
    with profile(activities=[ProfilerActivity.CPU], schedule=schedule(**EACH)) as prof:
        prof.step()
        work("kept")
        prof.step()
        assert names(prof) == ["work kept"]  # during the next warm-up
    assert names(prof) == ["work kept"] and prof.key_averages().cycles == range(1, 2)
    assert prof.current_action.name == "WARMUP"


def recordings(folder):
    return glob.glob(str(folder / "**" / "*.lspool*"), recursive=True)


def counted(prof):
    return sum(row.count for row in prof.key_averages())


def test_temporary_files_of_earlier_cycles_do_not_pile_up(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    most_files, sizes = [], []

    def ready(prof):
        most_files.append(len(recordings(tmp_path)))
        sizes.append(sum(os.stat(file).st_blocks * 512 for file in recordings(tmp_path)))

    cycle_bytes = 50_000 * 48
    prof = run(25, ranges=50_000, on_trace_ready=ready)
    assert most_files == [1] * 25  # a window is open, or was: the file before it is gone
    most = (16 << 20) + 2 * cycle_bytes + (8 << 20)  # 16 MiB, a cycle that began just below, what is prepared ahead
    assert max(sizes) < most < 25 * cycle_bytes, sizes
    assert [row.key for row in prof.key_averages()] == ["ProfilerStep*", "work 24"]
    # A machine that is slow to make room drops records, and says how many.
    assert 50_001 <= counted(prof) + prof.stats()["dropped_records"] and counted(prof) <= 50_001
    accumulated = run(25, ranges=50_000, acc_events=True)
    assert accumulated.stats()["file_bytes"] > 25 * cycle_bytes
    assert len(accumulated.key_averages()) == 26
    assert counted(accumulated) + accumulated.stats()["dropped_records"] == 25 * 50_001
    del prof, accumulated
    assert recordings(tmp_path) == []


def test_a_recording_that_is_kept_has_all_cycles(tmp_path):
    prof = run(3, output_dir=str(tmp_path))
    assert names(prof) == ["work 2"]
    (file,) = recordings(tmp_path)
    assert {"work 0", "work 1", "work 2"} <= set(lanescope.read_trace(file).names)


def test_a_profile_that_could_go_on_leaves_the_next_one_its_own_file(tmp_path):
    first = profile(activities=[ProfilerActivity.CPU], acc_events=True)
    for number in range(2):
        with first:  # nobody else recorded in between: it goes on
            work(number)
    second = run(3, output_dir=str(tmp_path))
    (file,) = recordings(tmp_path)
    assert second.spool_path == file != first.spool_path
    assert names(second) == ["work 2"] and names(first) == ["work 0", "work 1"]
    assert first.cycles == range(1, 3) and first.stats()["file_bytes"] != second.stats()["file_bytes"]
    with pytest.warns(UserWarning, match="another profile started since stop"), first:
        work("later")
    assert names(first) == ["work later"] and first.cycles == range(1, 2)


def test_a_profile_that_records_shares_its_file(tmp_path):
    with profile(activities=[ProfilerActivity.CPU]) as outer:
        with pytest.warns(UserWarning, match="shares the file of a recording that runs already: it is "):
            with profile(activities=[ProfilerActivity.CPU], output_dir=str(tmp_path)) as inner:
                work(0)
    path = inner.spool_path
    assert path == outer.spool_path and not recordings(tmp_path)
    del inner, outer
    assert "work 0" in lanescope.read_trace(path).names  # kept, though the first one was temporary
    os.remove(path)


def test_metadata_and_losses_outlive_the_cycle_that_they_came_with(tmp_path):
    prof = profile(activities=[ProfilerActivity.CPU], schedule=schedule(**EACH))
    prof.preset_metadata_json("always", '"there"')
    ids = []
    prof.on_trace_ready = lambda p: ids.append(p.trace.metadata["trace_id"])
    with prof:
        for number in range(3):
            prof.step()
            prof.add_metadata("late", "too") if number == 0 else None
            work(number)
            prof.step()
    assert len(set(ids)) == 3 and ids[-1] == prof.get_trace_id()
    prof.export_chrome_trace(tmp_path / "t.json")
    top = json.loads((tmp_path / "t.json").read_text())
    assert top["always"] == "there" and top["late"] == "too" and top["trace_id"] == ids[-1]


def test_cycles_of_profiles_that_overlap_stay_apart():
    with profile(activities=[ProfilerActivity.CPU]) as outer:
        inner = run(2)
        assert names(inner) == ["work 1"]
    assert names(outer) == ["work 0", "work 1"] and names(inner) == ["work 1"]


@pytest.mark.parametrize("acc_events", [False, True])
def test_an_empty_run_has_no_cycle(acc_events):
    with profile(activities=[ProfilerActivity.CPU], schedule=schedule(wait=5, warmup=1, active=1), acc_events=acc_events) as prof:
        prof.step()
    assert list(prof.cycles) == [] and len(prof.key_averages()) == 0 and "no cycle" in repr(prof.key_averages())
