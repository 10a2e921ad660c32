"""`lanescope view` of a trace with an index: its lanes are mapped, and it answers as it does without."""

from __future__ import annotations

import json
import pathlib
import shutil
import struct
import time
from typing import Any, Dict, List, Tuple

import pytest

from conftest import DATA
from view_server import View, has_page, saved_data, viewing, write_trace

TRACE = DATA / "h200_mlp_train" / "trace.json.gz"
MANY = 3000  # steps; more than the first answer lists


def first_answers(view: View) -> Tuple[Any, List[bytes], Any]:
    meta = view.json("/api/meta")
    trace = meta["traces"][0]
    lanes = [lane["lane"] for lane in trace["lanes"]]
    frames = [view.ask("POST", "/api/frame", {"t0": 0, "t1": trace["span_ns"], "step": max(1, trace["span_ns"] // parts), "lanes": lanes}).content
              for parts in (100, 1000, 8000)]
    return meta, frames, view.json("/api/names", {"names": list(range(40))})


def section_names(index: pathlib.Path) -> List[str]:
    data = index.read_bytes()
    count = struct.unpack_from("<I", data, 56)[0]
    return [data[64 + 64 * i: 88 + 64 * i].rstrip(b"\0").decode() for i in range(count)]


@pytest.fixture
def place(tmp_path: pathlib.Path) -> Tuple[pathlib.Path, Dict[str, str]]:
    path = tmp_path / "trace.json.gz"
    shutil.copy(TRACE, path)
    return path, {"XDG_CACHE_HOME": str(tmp_path / "cache")}


def test_lanes_of_an_index_are_those_of_the_trace(binary: str, run: Any, place: Any) -> None:
    path, env = place
    with viewing(binary, path, env={**env, "LANESCOPE_INDEX": "off"}) as view:
        without = first_answers(view)
        explained, gaps = view.json("/api/explain?trace=0"), view.json("/api/gaps?trace=0")
    assert run("index", path, env=env).code == 0
    names = section_names(path.with_name("trace.json.gz.lanescope"))
    assert names[-20:][0] == "view.values" and names[-1] == "view.counter_ranges" and len(names) == 56
    with viewing(binary, path, env=env) as view:
        assert first_answers(view) == without
        # What needs the facts comes to the same, too.
        assert view.json("/api/explain?trace=0") == explained
        assert view.json("/api/gaps?trace=0") == gaps


def test_details_of_an_event_do_not_wait_for_the_rules(binary: str, run: Any, place: Any) -> None:
    path, env = place
    assert run("index", path, env=env).code == 0
    with viewing(binary, path, env=env) as view:
        count = view.json("/api/meta")["traces"][0]["slice_count"]
        asked = range(0, count, max(1, count // 150))
        before = [view.json("/api/event", {"slice": slice_}) for slice_ in asked]
        assert all(event["pending"] for event in before)
        assert any(event["chain"] and event["args"] for event in before)
        view.json("/api/explain?trace=0")
        later = {"pending", "findings", "forward", "arrows", "arrow_count"}  # the forward operator has an arrow
        for event, slice_ in zip(before, asked):
            after = view.json("/api/event", {"slice": slice_})
            assert "pending" not in after
            assert {key: value for key, value in event.items() if key not in later} == {
                key: value for key, value in after.items() if key not in later}
            assert event["arrows"] == after["arrows"][: len(event["arrows"])]


def test_sums_tables_and_gaps_do_not_wait_for_the_rules(binary: str, run: Any, place: Any) -> None:
    path, env = place
    assert run("index", path, env=env).code == 0
    with viewing(binary, path, env=env) as view:
        span = view.json("/api/meta")["traces"][0]["span_ns"]
        parts = [{}, {"t0": span // 3, "t1": span // 2}]
        questions = [("/api/area", part) for part in parts]
        questions += [("/api/table", {"table": table, **part}) for table in ("kernels", "operators", "names") for part in parts]

        def answers() -> List[Any]:
            return [view.json(path, body) for path, body in questions] + [view.json("/api/memory?trace=0")]

        before, gaps = answers(), view.json("/api/gaps?trace=0")
        one = view.json("/api/gap", {"index": 3})
        assert gaps["pending"] and one["pending"] and gaps["total"] > 3
        assert any(answer.get("launch_delay") for answer in before) and all(answer.get("rows", True) for answer in before)
        view.json("/api/explain?trace=0")
        assert answers() == before
        known = view.json("/api/gaps?trace=0")
        later = {"ends_at", "launch", "blame", "cpu", "cpu_slice", "finding"}
        assert "pending" not in known and any(gap.get("ends_at") is not None for gap in known["gaps"])
        assert [{key: gap[key] for key in gap.keys() - later} for gap in known["gaps"]] == gaps["gaps"]
        assert gaps["by_cause"] == known["by_cause"]


def test_the_first_view_adds_its_lanes_to_an_index(binary: str, run: Any, place: Any) -> None:
    path, env = place
    assert run("index", path, env=env).code == 0
    index = path.with_name("trace.json.gz.lanescope")
    # As a copy from elsewhere: its lanes are checked once, and are then known.
    whole = index.read_bytes()
    index.unlink()
    index.write_bytes(whole)
    checked = pathlib.Path(env["XDG_CACHE_HOME"]) / "lanescope" / "checked"
    # The steps have a note of their own; a page does not write it.
    before = {each.name: each.read_bytes() for each in checked.iterdir() if not each.name.endswith("-steps")}
    assert len(before) == 2  # of the columns and of the lanes
    with viewing(binary, path, env=env) as view:
        without = first_answers(view)
        deadline = time.monotonic() + 30
        while any((checked / name).read_bytes() == text for name, text in before.items()):
            assert time.monotonic() < deadline, "no note that this index was checked"
            time.sleep(0.1)
    assert index.read_bytes() == whole  # it was right, so it stays
    with viewing(binary, path, env=env) as view:
        assert first_answers(view) == without


def test_damaged_lanes_are_not_used(binary: str, run: Any, place: Any) -> None:
    path, env = place
    with viewing(binary, path, env={**env, "LANESCOPE_INDEX": "off"}) as view:
        without = first_answers(view)
    assert run("index", path, env=env).code == 0
    index = path.with_name("trace.json.gz.lanescope")
    whole = index.read_bytes()
    names = section_names(index)
    for name in ("view.lanes", "view.start_ns", "view.cells", "view.rows"):
        number = names.index(name)
        offset = struct.unpack_from("<Q", whole, 64 + 64 * number + 24)[0]
        damaged = bytearray(whole)
        damaged[offset: offset + 8] = b"\xff" * 8
        index.unlink(missing_ok=True)
        index.write_bytes(damaged)
        with viewing(binary, path, env={**env, "LANESCOPE_INDEX": "read"}) as view:
            assert first_answers(view) == without, name


@pytest.fixture(scope="module")
def many_steps(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Step number n + 5 begins at n * 100 us, those after number 1505 50 us later: it takes longest."""
    events = []
    for step in range(MANY):
        at = 1000 + 100 * step + (50 if step > 1500 else 0)
        events.append({"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step + 5}", "pid": 7, "tid": 7, "ts": at, "dur": 90})
        events.append({"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 7, "tid": 7, "ts": at + 1, "dur": 50})
    return write_trace(tmp_path_factory.mktemp("steps") / "many.json", events)


def test_many_steps_come_in_pages(binary: str, many_steps: pathlib.Path) -> None:
    with viewing(binary, many_steps) as view:
        answer = view.ask("GET", "/api/meta")
        assert len(answer.content) < 100_000
        trace = json.loads(answer.content)["traces"][0]
        assert trace["step_count"] == MANY and trace["steps"] == []
        assert trace["steps_per_bar"] == 19 and len(trace["bars"]) == 158  # 3000 / 160, rounded up
        assert trace["bars"][1]["first_start_ns"] == 19 * 100_000
        assert trace["bars"][1500 // 19]["longest"][0]["number"] == 1505  # the longest of its bar
        assert trace["typical"][0]["index"] == trace["typical_step"] and trace["typical"][0]["steady"]
        page = view.json("/api/steps", {"from": 1000, "limit": 500})
        assert page["total"] == MANY and [step["index"] for step in page["steps"]] == list(range(1000, 1500))
        assert view.json("/api/steps", {"at": 1500 * 100_000 + 10, "limit": 500})["found"] == 1500
        assert view.json("/api/steps", {"at": 1500 * 100_000 - 1, "limit": 500})["found"] == 1499
        by_number = view.json("/api/steps", {"number": 3004, "limit": 500})
        assert by_number["found"] == 2999 and by_number["steps"][-1]["number"] == 3004 and by_number["steps"][0]["index"] == 2500
        nothing = view.json("/api/steps", {"number": 4, "limit": 500})
        assert nothing["found"] == -1
        assert view.json("/api/steps", {"at": -1, "limit": 500})["found"] == -1
        assert view.json("/api/steps", {"from": 5_000_000})["steps"] == []
        for wrong in ({"limit": 0}, {"limit": 1001}, {"from": -1}, {"at": "x"}):
            view.refused("/api/steps", wrong)


def test_a_saved_page_has_the_steps_of_its_range(binary: str, run: Any, many_steps: pathlib.Path, tmp_path: pathlib.Path) -> None:
    if not has_page(binary):
        pytest.skip("the command was built without its page (needs Node.js)")
    page = tmp_path / "look.html"
    assert run("view", many_steps, "--html", page, "--window", "10ms..11ms").code == 0
    steps = saved_data(page.read_text())["answers"]["/api/steps"]["steps"]
    assert [step["index"] for step in steps] == list(range(100, 110))
