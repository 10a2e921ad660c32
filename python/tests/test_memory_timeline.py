"""export_memory_timeline writes torch.profiler's files."""

from __future__ import annotations

import gzip
import importlib.util
import json
import warnings

import pytest

import lanescope
from lanescope import ProfilerActivity, memory_timeline


@pytest.fixture
def prof(torch):
    with lanescope.profile(activities=[ProfilerActivity.CPU], profile_memory=True) as prof:
        a = torch.empty(256)
        b = torch.empty(512)
        del a
        c = torch.empty(128)
        del b, c
    return prof


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*category Unknown.*")
        yield


def test_each_event_with_action_and_bytes(prof, tmp_path):
    path = tmp_path / "m.raw.json.gz"
    prof.export_memory_timeline(str(path))
    with gzip.open(path, "rt") as file:
        rows = json.load(file)
    create, destroy = memory_timeline.CREATE, memory_timeline.DESTROY
    assert [row[1:3] for row in rows] == [
        [create, 1024], [create, 2048], [destroy, -1024], [create, 512], [destroy, -2048], [destroy, -512]
    ]
    assert 0 < rows[0][0] and [row[0] for row in rows] == sorted(row[0] for row in rows)
    assert {row[3] for row in rows} == {memory_timeline.UNKNOWN}


@pytest.mark.parametrize("name", ["m.json", "m.json.gz"])
def test_times_and_sizes(prof, tmp_path, name):
    path = tmp_path / name
    prof.export_memory_timeline(str(path), device="cpu")
    times, sizes = json.loads((gzip.open if name.endswith(".gz") else open)(path, "rt").read())
    assert len(times) == len(sizes) and times == sorted(times) and all(len(row) == 9 for row in sizes)
    assert sizes[0][-1] >= 1024 and sizes[-1] == [0] * 9 and {sum(row[:-1]) for row in sizes} == {0}
    prof.export_memory_timeline(str(path), device="cuda:0")
    assert json.loads((gzip.open if name.endswith(".gz") else open)(path, "rt").read()) == [[], []]


def test_numbers_and_categories_are_torchs(prof):
    theirs = pytest.importorskip("torch.profiler._memory_profiler")
    assert [theirs.Action.PREEXISTING.value, theirs.Action.CREATE.value, theirs.Action.DESTROY.value] == [
        memory_timeline.PREEXISTING, memory_timeline.CREATE, memory_timeline.DESTROY
    ]  # fmt: skip
    assert [("Unknown" if c is None else c.name, color) for c, color in theirs._CATEGORY_TO_COLORS.items()] == list(
        memory_timeline.CATEGORIES
    )


def test_a_picture_needs_matplotlib(prof, tmp_path, monkeypatch, capsys):
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *a: None if name == "matplotlib" else find(name, *a))
    prof.export_memory_timeline(str(tmp_path / "m.html"))
    assert capsys.readouterr().out == "export_memory_timeline_html failed because matplotlib was not found.\n"
    assert not (tmp_path / "m.html").exists()


def test_a_picture(prof, tmp_path):
    pytest.importorskip("matplotlib").use("agg")
    prof.export_memory_timeline(str(tmp_path / "m.html"))
    assert "data:image/png;base64,iVBOR" in (tmp_path / "m.html").read_text()


def test_memory_profile_says_what_it_needs(prof, tmp_path):
    with pytest.raises(ValueError, match="^record_shapes=True, with_stack=True required for memory profiling"):
        prof._memory_profile()
    with pytest.raises(ValueError, match="profile_memory=True"):
        lanescope.profile().export_memory_timeline(str(tmp_path / "m.json"))


def test_what_was_there_before_comes_first(tmp_path):
    """A free of what nobody saw allocated, on the GPU and on the CPU."""

    def memory(ts, address, size, kind, device):
        args = {"Addr": address, "Bytes": size, "Device Type": kind, "Device Id": device}
        return {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 1, "ts": ts, "s": "t", "args": args}

    rows = [memory(10.0, 8, 100, 1, 0), memory(20.0, 9, -40, 1, 0), memory(30.0, 8, -100, 1, 0), memory(40.0, 8, 7, 0, -1)]
    op = {"ph": "X", "cat": "cpu_op", "name": "x", "pid": 1, "tid": 1, "ts": 5.0, "dur": 50.0}
    file = tmp_path / "t.json"
    file.write_text(json.dumps({"traceEvents": [op, *rows]}))
    trace = lanescope.read_trace(file)
    assert memory_timeline.has_device_memory(trace)
    before, create, destroy = memory_timeline.PREEXISTING, memory_timeline.CREATE, memory_timeline.DESTROY
    events = memory_timeline.memory_events(trace, "cuda")
    assert [(action, size) for _, action, size in events] == [(before, 40), (create, 100), (destroy, 40), (destroy, 100)]
    assert events[0][0] == -1
    times, sizes = memory_timeline.curve(events)
    assert [time - times[0] for time in times] == [0, 0, 10, 20] and [row[-1] for row in sizes] == [40, 140, 100, 0]
    assert [size for _, _, size in memory_timeline.memory_events(trace, "cpu")] == [7]
