"""What recording may cost: --budget and profile(budget=...)."""

from __future__ import annotations

import json
import re
import time

import pytest

import lanescope
from lanescope import record
from lanescope._budget import parse_budget


def test_budgets_are_read_as_people_type_them():
    assert {text: parse_budget(text) for text in ("1%", "0.5%", "2.5 %", "50%")} == pytest.approx(
        {"1%": 0.01, "0.5%": 0.005, "2.5 %": 0.025, "50%": 0.5}
    )
    for wrong in ("", "1", "0%", "51%", "one", 0.01, None):
        with pytest.raises(ValueError, match="a share of the time from 0.1% to 50%"):
            parse_budget(wrong)
    with pytest.raises(ValueError, match="such as 1% or 2.5%; found '1'"):
        lanescope.profile(budget="1")


def test_the_command_hands_the_budget_on():
    assert record.environment("out", budget="1%", base={})["LANESCOPE_RECORD_BUDGET"] == "1%"
    assert "LANESCOPE_RECORD_BUDGET" not in record.environment("out", base={})
    with pytest.raises(ValueError, match="^--budget: expected a share"):
        record.environment("out", budget="1", base={})


def tiny_operators(torch, until):
    """Adds ones; returns how many times."""
    one = torch.ones(1)
    count, end = 0, time.monotonic() + 60
    while not until(count) and time.monotonic() < end:
        for _ in range(1000):
            torch.add(one, one)
        count += 1000
    return count


def test_a_loop_of_tiny_operators_is_thinned_and_the_trace_says_so(tmp_path):
    torch = pytest.importorskip("torch")
    trace_path = tmp_path / "trace.json"
    with pytest.warns(UserWarning) as warned:
        with lanescope.profile(
            activities=[lanescope.ProfilerActivity.CPU], record_shapes=True, with_stack=True, budget="1%"
        ) as prof:
            began = time.monotonic()
            ran = tiny_operators(torch, lambda _: time.monotonic() - began > 4)
            with lanescope.record_function("the end"):
                pass
        prof.export_chrome_trace(trace_path)
    lines = [str(warning.message) for warning in warned]
    assert any(re.search(r"without input shapes: recording cost .* of the time, its budget is 1 %", line) for line in lines)
    assert any("with operators in parts only" in line for line in lines)

    written = json.loads(trace_path.read_text())
    # A loop like this spends so much in a millisecond that operators may pause before a level begins.
    levels = [period["what"] for period in written["lanescope_thinned"]]
    begun = [levels.index(level) for level in ("input shapes", "stacks", "short operators")]
    assert begun == sorted(begun) and "operators" in levels[begun[2] :]
    assert all(period["pause_count"] >= 1 for period in written["lanescope_thinned"] if period["what"] == "operators")
    cost = written["lanescope_cost"]
    assert cost["budget_ratio"] == 0.01 and cost["share_ratio"] > 0
    assert cost["cost_ns"] < cost["window_ns"]

    adds = [event for event in written["traceEvents"] if event.get("name") == "aten::add"]
    assert 0 < len(adds) < ran  # a pause left some out
    assert any("Input Dims" in event["args"] for event in adds) and any("Input Dims" not in event["args"] for event in adds)
    # No operator began in a pause: within 10 ms of its edges threads may still be at it.
    base = written["baseTimeNanoseconds"]
    for period in written["lanescope_thinned"]:
        for start, end in period.get("pauses", []):
            starts = [base + event["ts"] * 1000 for event in adds]
            assert not [ns for ns in starts if start + 10_000_000 < ns < (end or base * 2) - 10_000_000]
    # What the program itself marks is there in a pause, too.
    assert any(event.get("name") == "the end" for event in written["traceEvents"])


def test_operators_that_take_less_than_their_record_may_cost_are_left_out(tmp_path):
    torch = pytest.importorskip("torch")
    one, large = torch.ones(1), torch.ones(100_000)

    def work(seconds, adds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            torch.cumsum(large, 0)  # on this thread alone, some 100 us
            for _ in range(adds):
                torch.add(one, one)

    trace_path = tmp_path / "trace.json"
    with pytest.warns(UserWarning, match=r"without short operators \(under \d+ us\): recording cost") as warned:
        with lanescope.profile(activities=[lanescope.ProfilerActivity.CPU], budget="1%") as prof:
            # More and more of them, until they are too much: how many that is depends on what else the machine does. The
            # last increase is small, so leaving them out is enough for a while.
            adds, end = 4, time.monotonic() + 60
            while not any("without short operators" in str(each.message) for each in warned) and time.monotonic() < end:
                adds += max(adds // 3, 1)
                work(0.6, adds)
                prof.step()  # passes on what the recorder said
            work(1, adds)
        prof.export_chrome_trace(trace_path)
    written = json.loads(trace_path.read_text())
    base = written["baseTimeNanoseconds"]
    period = max(
        (period for period in written["lanescope_thinned"] if period["what"] == "short operators"),
        key=lambda period: (period["to_ns"] or base + 10**12) - period["from_ns"],
    )
    # Threads may still be at it within 10 ms of the edges.
    start = period["from_ns"] + 10_000_000
    end = (period["to_ns"] or base + 10**12) - 10_000_000
    inside = [
        event
        for event in written["traceEvents"]
        if event.get("cat") == "cpu_op" and start < base + event["ts"] * 1000 < end
    ]
    names = {event["name"] for event in inside}
    assert "aten::cumsum" in names and "aten::add" not in names
    assert written["lanescope_cost"]["left_out_operators"] > 100
    longest = period["shorter_than_ns"] / 1000
    before = [event["dur"] for event in written["traceEvents"] if event["name"] == "aten::add" and "dur" in event]
    assert sum(before) / len(before) < longest  # what was left out is short indeed


def test_milliseconds_are_enough_to_leave_out_details(tmp_path):
    torch = pytest.importorskip("torch")
    trace_path = tmp_path / "trace.json"
    with pytest.warns(UserWarning, match="without input shapes"):
        with lanescope.profile(activities=[lanescope.ProfilerActivity.CPU], record_shapes=True, budget="1%") as prof:
            tiny_operators(torch, lambda count: count >= 1000)  # what is done once at the start does not count here
            began_ns = time.time_ns()
            began = time.monotonic()
            tiny_operators(torch, lambda _: time.monotonic() - began > 1)
        prof.export_chrome_trace(trace_path)
    periods = json.loads(trace_path.read_text())["lanescope_thinned"]
    # Input shapes, or first a pause of operators.
    # At 30 % of the time, 4 ms are enough. Fifty times that, for a busy machine.
    assert periods[0]["from_ns"] - began_ns < 200_000_000


def test_ranges_of_the_program_count_and_pause_when_they_alone_are_too_much(tmp_path):
    pytest.importorskip("torch")
    trace_path = tmp_path / "trace.json"
    count = 0
    with pytest.warns(UserWarning, match="with operators and ranges of the program in parts only"):
        with lanescope.profile(
            activities=[lanescope.ProfilerActivity.CPU], schedule=lanescope.schedule(wait=0, warmup=1, active=1_000_000), budget="1%"
        ) as prof:
            prof.step()  # the warm-up ends
            end = time.monotonic() + 4
            while time.monotonic() < end:
                for _ in range(1000):
                    with lanescope.record_function("mine"):
                        pass
                count += 1000
                prof.step()
        prof.export_chrome_trace(trace_path)
    written = json.loads(trace_path.read_text())
    assert "operators and ranges" in [period["what"] for period in written["lanescope_thinned"]]
    cost = written["lanescope_cost"]
    assert cost["ranges_ns"] > cost["operators_ns"] and cost["left_out_ranges"] > 0
    assert cost["share_ratio"] < 0.02
    found = sum(event.get("name") == "mine" for event in written["traceEvents"])
    assert found + cost["left_out_ranges"] == count
    # Steps stay.
    steps = {event["name"] for event in written["traceEvents"] if event.get("name", "").startswith("ProfilerStep#")}
    assert len(steps) >= count // 1000 - 1


def test_allocations_that_alone_are_too_much_end_and_are_whole_until_then(tmp_path):
    torch = pytest.importorskip("torch")
    trace_path = tmp_path / "trace.json"
    with pytest.warns(UserWarning, match=r"without allocations: recording them cost .* memory numbers are those of the time before"):
        with lanescope.profile(activities=[lanescope.ProfilerActivity.CPU], profile_memory=True, budget="0.1%") as prof:
            began = time.monotonic()
            ran = tiny_operators(torch, lambda _: time.monotonic() - began > 2)
        prof.export_chrome_trace(trace_path)
    written = json.loads(trace_path.read_text())
    ended = [entry for entry in written["lanescope_thinned"] if entry["what"] == "allocations"]
    assert len(ended) == 1 and ended[0]["to_ns"] is None and "level" not in ended[0]
    cost = written["lanescope_cost"]
    # The budget of 0.2 s is less than the smallest balance that counts, 1 ms. A look may come late on a busy machine.
    assert 1_000_000 < cost["memory_ns"] < 0.1 * cost["window_ns"]
    memory = [event for event in written["traceEvents"] if event.get("name") == "[memory]"]
    assert 0 < len(memory) < 2 * ran
    base, end_ns = written["baseTimeNanoseconds"], ended[0]["from_ns"]
    times = sorted(base + event["ts"] * 1000 for event in memory)
    assert times[-1] < end_ns + 10_000_000  # a thread may still be at it
    # Whole until then: each block is freed before its address is given out again.
    live = set()
    for event in sorted((event for event in memory if base + event["ts"] * 1000 <= end_ns), key=lambda event: event["ts"]):
        address = event["args"]["Addr"]
        if event["args"]["Bytes"] > 0:
            assert address not in live
            live.add(address)
        else:
            live.discard(address)
    assert len(live) <= 3  # `one`, and the last result
    assert "no allocations after the first" in lanescope.info(lanescope.read_trace(trace_path))


def test_without_a_budget_nothing_is_thinned(tmp_path):
    torch = pytest.importorskip("torch")
    trace_path = tmp_path / "trace.json"
    with lanescope.profile(activities=[lanescope.ProfilerActivity.CPU], record_shapes=True) as prof:
        ran = tiny_operators(torch, lambda count: count >= 20_000)
    prof.export_chrome_trace(trace_path)
    written = json.loads(trace_path.read_text())
    assert "lanescope_thinned" not in written and "lanescope_cost" not in written
    assert sum(event.get("name") == "aten::add" for event in written["traceEvents"]) == ran
