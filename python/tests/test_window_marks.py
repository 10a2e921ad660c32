"""Readers compare the ends of events with the mark at the trace's end, in floating point: ts + dur is rounded."""

from __future__ import annotations

import json

import lanescope
from lanescope import profile, record_function


def test_no_event_ends_after_the_end_mark(tmp_path):
    path = tmp_path / "trace.json"
    for _ in range(50):
        with profile(activities=[lanescope.ProfilerActivity.CPU]) as prof:
            still_open = record_function("still open")
            still_open.__enter__()
        still_open.__exit__(None, None, None)
        prof.export_chrome_trace(path)
        events = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
        (span,) = [event for event in events if event["name"] == "PyTorch Profiler (0)"]
        (mark,) = [event for event in events if event["name"] == "Record Window End"]
        ranges = [event for event in events if "dur" in event]
        assert {event["name"] for event in ranges} >= {"still open", "PyTorch Profiler (0)"}
        assert all(event["ts"] >= span["ts"] for event in ranges)
        assert all(event["ts"] + event["dur"] <= mark["ts"] for event in ranges)
