"""What lanescope writes holds every field that Perfetto and chrome://tracing require: docs/formats/kineto_json.md."""

from __future__ import annotations

import collections
import json
import os
import pathlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHARED = pathlib.Path(os.environ.get("LANESCOPE_SHARED_TRACES", ROOT.parent / "shared" / "traces"))


def traces():
    data = ROOT / "tests" / "data"
    found = sorted([*data.glob("*/trace.json*"), *data.glob("h200/*.json.gz"), *data.glob("ddp4/*/*.json.gz")])
    if SHARED.is_dir():
        found += [path for path in sorted(SHARED.glob("*/*.json*")) if path.stat().st_size < 400_000]
    return found


def refuse(constant):
    raise ValueError(f"{constant} is not JSON")


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def problems_of(event):
    """What a viewer would stumble over in one event."""
    phase = event.get("ph")
    if phase not in {"X", "i", "s", "t", "f", "b", "e", "n", "C", "M"}:
        return f"ph {phase!r}"
    if "pid" not in event or (phase != "M" and "tid" not in event and phase != "C"):
        return "pid or tid is missing"
    if not isinstance(event.get("name"), str):
        return "name is not a text"
    if "cat" in event and not isinstance(event["cat"], str):
        return "cat is not a text"
    if phase != "M" and not is_number(event.get("ts")):
        return "ts is not a number"
    if phase == "X" and not (is_number(event.get("dur")) and event["dur"] >= 0):
        return "dur is not a number from 0 up"
    if phase in "stfbe" and "id" not in event:
        return "id is missing"
    if phase == "i" and event.get("s") not in {"t", "p", "g"}:
        return "scope s is missing"
    if phase == "C" and not all(is_number(value) for value in event.get("args", {}).values()):
        return "a counter's args are not numbers"
    return None if isinstance(event.get("args", {}), dict) else "args is not an object"


def is_mark(event):
    """The recording's own spans and marks, which come last, as Kineto has them."""
    if event["ph"] == "X":
        return event["pid"] == "Spans"
    return event["ph"] == "i" and (event["pid"] == "Traces" or event["name"] == "Record Window End")


@pytest.mark.parametrize("trace", traces(), ids=lambda path: f"{path.parent.name}-{path.name}")
def test_written_events_have_what_viewers_require(trace, tmp_path, run):
    out = tmp_path / "clean.json"
    done = run("convert", trace, out)
    if done.code == 2:  # not a trace: refused, and nothing is left
        assert "expected" in done.err and not out.exists()
        return
    assert done.code == 0, done.err
    content = json.loads(out.read_bytes().decode("utf-8"), parse_constant=refuse)
    assert isinstance(content, dict) and isinstance(content["traceEvents"], list)
    ends = collections.defaultdict(set)
    last, marks = None, 0
    for event in content["traceEvents"]:
        assert problems_of(event) is None, (problems_of(event), event)
        if is_mark(event):
            marks += 1
        elif event["ph"] != "M":
            assert marks == 0, f"comes after the recording's own spans: {event}"
            assert last is None or event["ts"] >= last, f"not sorted by time at {event}"
            last = event["ts"]
        if event["ph"] in "sf":
            ends[(event.get("cat"), event["name"], str(event["id"]))].add(event["ph"])
    assert all(both == {"s", "f"} for both in ends.values()), "an arrow has only one end"
