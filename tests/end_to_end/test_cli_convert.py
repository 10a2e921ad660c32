"""What `lanescope convert` writes for other tools, read by readers that are not ours."""

from __future__ import annotations

import collections
import gzip
import json
import sqlite3

import pytest

from conftest import DATA

# Overlapping kernels, Python frames, copies.
TRACES = [DATA / "h200_stacks" / "train_everything.json.gz", DATA / "h200_mlp_train" / "trace.json.gz"]


@pytest.fixture(params=TRACES, ids=lambda path: path.parent.name)
def trace(request):
    return request.param


def slices_of(path):
    """(category, name, microseconds) of each slice, as Python's json reads them."""
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    return [(event.get("cat", ""), event["name"], event["dur"]) for event in events if event["ph"] == "X"]


def test_a_database_has_each_slice_and_the_views(run, trace, tmp_path):
    ran = run("convert", trace, "-o", "x.sqlite")
    assert ran.code == 0 and ran.out.startswith("wrote x.sqlite: "), ran
    slices = slices_of(trace)
    database = sqlite3.connect(tmp_path / "x.sqlite")
    assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    found = database.execute("SELECT category, name, dur FROM slice").fetchall()
    assert collections.Counter((cat or "", name, ns) for cat, name, ns in found) == \
        collections.Counter((cat, name, round(us * 1000)) for cat, name, us in slices)
    kernels = [name for cat, name, _ in slices if cat == "kernel"]
    assert database.execute("SELECT sum(count) FROM kernels_by_name").fetchone() == (len(kernels),)
    database.close()
    again = run("convert", trace, "x.sqlite")
    assert again.code == 2 and "--force" in again.complaint()
    assert run("convert", trace, "x.sqlite", "--force").code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.sqlite"]


def test_folded_stacks_add_up_to_the_time_of_the_outermost_slices(run, trace, tmp_path):
    assert run("convert", trace, "-o", "x.folded").code == 0
    lines = [line.rpartition(" ") for line in (tmp_path / "x.folded").read_text().splitlines()]
    assert lines and all(int(weight) > 0 and stack.count(";") >= 1 for stack, _, weight in lines)
    kernels = sum(int(weight) for stack, _, weight in lines if stack.startswith("GPU 0, stream 7;"))
    on_gpu = [us for cat, _, us in slices_of(trace) if cat in ("kernel", "gpu_memcpy", "gpu_memset", "gpu_user_annotation")]
    assert 0 < kernels <= round(sum(on_gpu) * 1000) + 1


def check_speedscope(scope):
    """The rules of speedscope's schema and of its importer for evented profiles."""
    assert scope["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    frames = scope["shared"]["frames"]
    assert all(isinstance(frame["name"], str) for frame in frames) and scope["profiles"]
    for profile in scope["profiles"]:
        assert profile["type"] == "evented" and profile["unit"] == "nanoseconds" and profile["name"]
        now, stack = profile["startValue"], []
        for event in profile["events"]:
            assert event["at"] >= now
            now = event["at"]
            assert 0 <= event["frame"] < len(frames)
            if event["type"] == "O":
                stack.append(event["frame"])
            else:
                assert event["type"] == "C" and stack.pop() == event["frame"]
        assert not stack and now <= profile["endValue"] < 2**53  # a JavaScript number holds it


def test_speedscope_has_each_slice_in_balanced_profiles(run, trace, tmp_path):
    assert run("convert", trace, "-o", "x.speedscope.json").code == 0
    scope = json.loads((tmp_path / "x.speedscope.json").read_text())
    check_speedscope(scope)
    opened = collections.Counter(scope["shared"]["frames"][event["frame"]]["name"] for profile in scope["profiles"]
                                 for event in profile["events"] if event["type"] == "O")
    assert opened == collections.Counter(name for _, name, _ in slices_of(trace))


def test_the_target_is_named_once(run, trace):
    assert "found none" in run("convert", trace).complaint()
    assert "found OUT and -o" in run("convert", trace, "a.json", "-o", "b.json").complaint()
    assert ".sqlite, .folded, .speedscope.json" in run("convert", trace, "a.lspool").complaint()
