"""``prof.profiler.kineto_results``: the raw events that scripts read, compared with torch's own."""

from __future__ import annotations

import json

import pytest

import lanescope
from lanescope import ProfilerActivity, UnsupportedError, profile, record_function

CPU = [ProfilerActivity.CPU]
OPTIONS = dict(activities=CPU, record_shapes=True, profile_memory=True, with_flops=True)


@pytest.fixture(scope="module")
def both(torch):
    x, w = torch.ones(4, 3, requires_grad=True), torch.ones(3, 5)

    def run():
        torch.cat([x, x], dim=0)
        with torch.profiler.record_function("mine"):
            torch.mm(x, w).sum().backward()
        x.grad = None
        torch.ops.aten.sum.dim_IntList(x, [0], keepdim=True)

    run()
    found = []
    for make in (profile, torch.profiler.profile):
        with make(**OPTIONS) as prof:
            run()
        found.append(prof)
    return found


def in_torch(results, methods):
    """Those of the methods that this version of torch has: 2.11 has neither activity_type nor external_id, among others."""
    found = [method for method in methods if hasattr(results.events()[0], method)]
    assert "correlation_id" in found or "shapes" in found
    return found


def test_events_are_those_of_torch(both, torch):
    ours, theirs = [prof.profiler.kineto_results for prof in both]

    def rows(results, *methods):
        return [
            (event.name(), *(getattr(event, method)() for method in methods))
            for event in sorted(results.events(), key=lambda event: event.start_ns())
        ]

    same = ("overload_name", "device_type", "scope", "activity_type", "shapes", "structured_input_shapes",
            "structured_input_strides", "dtypes", "concrete_inputs", "kwinputs", "flops", "nbytes", "is_async",
            "is_user_annotation", "is_python_function", "is_hidden_event", "fwd_thread_id", "flow_type", "flow_start",
            "cuda_elapsed_us", "privateuse1_elapsed_us", "python_id", "python_parent_id", "python_module_id",
            "linked_correlation_id", "metadata_json", "extra_meta", "stack")  # fmt: skip
    for method in in_torch(theirs, same):
        assert rows(ours, method) == rows(theirs, method), method
    assert sum(event.name() == "[memory]" and event.nbytes() > 0 for event in ours.events()) > 3
    assert {event.flow_type() for event in ours.events()} == {0, 1}
    method_names = {name for name in dir(theirs.events()[0]) if not name.startswith("_")}
    assert {name for name in method_names if not hasattr(ours.events()[0], name)} <= {"event_metadata"}


def test_numbers_that_join_events_join_the_same_ones(both):
    ours, theirs = [
        sorted(prof.profiler.kineto_results.events(), key=lambda event: event.start_ns()) for prof in both
    ]
    join = ("correlation_id", "external_id", "sequence_nr", "flow_id", "start_thread_id", "end_thread_id", "device_resource_id")
    for method in in_torch(both[1].profiler.kineto_results, join):
        groups = []
        for events in (ours, theirs):
            numbers = [getattr(event, method)() for event in events]
            groups.append([numbers.index(number) for number in numbers])
        assert groups[0] == groups[1], method


def test_operators_have_the_numbers_of_the_event_list(both):
    """torch's Inductor joins the two."""
    prof = both[0]
    raw = {event.correlation_id() for event in prof.profiler.kineto_results.events() if event.activity_type() == "cpu_op"}
    assert {event.id for event in prof.events() if event.activity_type == "cpu_op"} <= raw
    assert {event.args["External id"] for event in prof.events() if event.name == "aten::mm"} <= raw


def test_times_are_those_of_the_trace(both):
    prof = both[0]
    results = prof.profiler.kineto_results
    trace = prof.trace
    assert results.trace_start_ns() == trace.base_time_ns + trace.window_start_ns
    (event,) = [event for event in results.events() if event.name() == "mine"]
    (row,) = [row for row in range(len(trace)) if trace.name(row) == "mine"]
    assert event.start_ns() == trace.base_time_ns + int(trace.start_ns[row])
    assert event.duration_ns() == int(trace.dur_ns[row]) == event.end_ns() - event.start_ns()
    starts = [event.start_ns() for event in results.events()]
    assert starts == sorted(starts) and starts[0] >= results.trace_start_ns()


def test_save_writes_the_trace_as_often_as_wanted(both, tmp_path):
    results = both[0].profiler.kineto_results
    for name in ("one.json", "two.json"):
        results.save(str(tmp_path / name))
        assert len(lanescope.read_trace(tmp_path / name)) == len(both[0].trace)
    both[0].export_chrome_trace(tmp_path / "exported.json")
    written, exported = [
        {event["name"] for event in json.loads((tmp_path / name).read_text())["traceEvents"]}
        for name in ("one.json", "exported.json")
    ]
    assert written == exported


def test_what_cannot_be_had_says_what_to_use():
    with profile(activities=CPU) as prof:
        with record_function("mine"):
            pass
    with pytest.raises(UnsupportedError, match="experimental_event_tree: .* prof.events"):
        prof.profiler.kineto_results.experimental_event_tree()


def test_it_is_there_when_something_was_recorded():
    prof = profile(activities=CPU, schedule=lanescope.schedule(wait=1, warmup=1, active=1, repeat=2))
    assert prof.kineto_results is None
    seen = []
    prof.on_trace_ready = lambda prof: seen.append([e.name() for e in prof.profiler.kineto_results.events()])
    prof.start()
    assert prof.profiler.kineto_results is None
    for number in range(6):
        with record_function(f"in step {number}"):
            pass
        prof.step()
    prof.stop()
    assert seen == [["ProfilerStep#2", "in step 2"], ["ProfilerStep#5", "in step 5"]]
    results = prof.profiler.kineto_results
    assert results is prof.profiler.kineto_results
    assert [e.name() for e in results.events()] == seen[1]
