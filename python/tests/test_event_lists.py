"""events() and key_averages() are lists, as in torch.profiler: whatever a program does to its lists works, with its results."""

from __future__ import annotations

import copy
import json
import pickle
import warnings

import pytest

import lanescope
from lanescope import EventList, KeyAverages, ProfilerActivity
from lanescope._lazy_list import LazyList


@pytest.fixture(scope="module")
def work():
    torch = pytest.importorskip("torch")
    x, w = torch.ones(4, 3, requires_grad=True), torch.ones(3, 5)

    def run():
        torch.add(x, 2.5, alpha=2)
        torch.cat([x, x], dim=0)
        x.sum(dim=[0], keepdim=True)
        x.view(12).reshape(4, 3)
        with torch.profiler.record_function("mine"):
            torch.mm(x, w).sum().backward()

    run()
    return run


@pytest.fixture(scope="module")
def ours(work):
    torch = pytest.importorskip("torch")
    from lanescope import _torch

    reason = _torch.ensure_observer()
    if reason:
        pytest.skip(f"needs the torch observer: {reason}")
    with lanescope.profile(
        activities=[ProfilerActivity.CPU], record_shapes=True, profile_memory=True, with_flops=True, with_stack=True
    ) as prof:
        work()
        torch.empty(10)
    return prof


@pytest.fixture(scope="module")
def theirs(work):
    torch = pytest.importorskip("torch")
    with torch.profiler.profile(activities=[ProfilerActivity.CPU], record_shapes=True, with_flops=True) as prof:
        work()
        torch.empty(10)
    return prof


# -- the list itself ---------------------------------------------------------------------------------------------------


def lazy(elements):
    made = LazyList()
    made._later(len(elements), lambda: elements)
    return made


@pytest.mark.parametrize(
    "look",
    [
        lambda x: list(x),
        lambda x: [*x],
        lambda x: [3] + x,
        lambda x: x + [3],
        lambda x: x * 2,
        lambda x: 2 * x,
        lambda x: x[0],
        lambda x: x[1:],
        lambda x: x[-1],
        lambda x: len(x),
        lambda x: bool(x),
        lambda x: 2 in x,
        lambda x: sorted(x),
        lambda x: list(reversed(x)),
        lambda x: x == [5, 2],
        lambda x: [5, 2] == x,
        lambda x: x != [5, 2],
        lambda x: x < [6],
        lambda x: [6] > x,
        lambda x: x.index(2),
        lambda x: x.count(5),
        lambda x: x.copy(),
        lambda x: copy.copy(x),
        lambda x: copy.deepcopy(x),
        lambda x: pickle.loads(pickle.dumps(x)),
        lambda x: json.dumps(x),
        lambda x: tuple(x),
        lambda x: sum(x),
        lambda x: ([1] + [4]) + x,
        lambda x: max(x),
        lambda x: "".join(map(str, x)),
    ],
)
def test_a_list_that_is_made_later_looks_like_any_other(look):
    assert look(lazy([5, 2])) == look([5, 2])
    filled = lazy([5, 2])
    len(filled), list(filled)
    assert look(filled) == look([5, 2])


@pytest.mark.parametrize(
    "change",
    [
        lambda x: x.append(1),
        lambda x: x.extend([1, 2]),
        lambda x: x.insert(1, 9),
        lambda x: x.pop(),
        lambda x: x.pop(0),
        lambda x: x.remove(2),
        lambda x: x.reverse(),
        lambda x: x.sort(),
        lambda x: x.sort(key=lambda v: -v),
        lambda x: x.clear(),
        lambda x: x.__setitem__(0, 7),
        lambda x: x.__setitem__(slice(0, 1), [7, 8]),
        lambda x: x.__delitem__(0),
        lambda x: x.__iadd__([4]),
        lambda x: x.__imul__(2),
        lambda x: x.extend(lazy([8, 8])),
        lambda x: x.__iadd__(lazy([8])),
    ],
)
def test_a_list_that_is_made_later_changes_like_any_other(change):
    plain, made = [5, 2], lazy([5, 2])
    change(plain), change(made)
    assert made == plain and len(made) == len(plain) and list(made) == plain and made._is_own


def test_every_method_of_a_list_was_thought_of():
    left = {"__class__", "__doc__", "__getattribute__", "__hash__", "__init__", "__new__", "__repr__", "__sizeof__",
            "__class_getitem__"}  # fmt: skip
    assert [name for name in vars(list) if name not in vars(LazyList) and name not in left] == []


# -- what profile() gives ----------------------------------------------------------------------------------------------


def test_they_are_lists(ours):
    events, averages = ours.events(), ours.key_averages()
    for each in (events, averages):
        assert isinstance(each, list) and isinstance(each, EventList)
    assert type(events[:2]) is type(averages[:2]) is type(events + averages) is type(events.copy()) is list
    assert isinstance(averages, KeyAverages)


def test_events_are_the_same_objects_each_time(ours):
    events = ours.events()
    assert ours.events() is events is ours.function_events is ours.profiler.function_events
    assert events[0] is events[0] and events[3] is list(events)[3]
    child = next(event for event in events if event.cpu_parent is not None)
    assert any(child.cpu_parent is event for event in events)
    assert any(child is sibling for sibling in child.cpu_parent.cpu_children)


def test_averages_make_no_events(ours, monkeypatch):
    made = []
    original = lanescope.FunctionEvent._in
    monkeypatch.setattr(lanescope.FunctionEvent, "_in", staticmethod(lambda *a: made.append(a) or original(*a)))
    fresh = EventList(ours.trace, profile_memory=True)
    averages = ours.key_averages()
    averages.table(), str(averages), len(averages), averages[0], averages.total_average(), repr(fresh), len(fresh)
    ours.profiler.self_cpu_time_total, ours.profiler.total_average(), fresh.self_cpu_time_total, fresh.key_averages()
    assert made == []
    fresh[0]
    assert len(made) == len(fresh)


def test_a_table_is_the_same_from_a_list_that_a_program_has_looked_at(ours):
    for group in ({}, {"group_by_input_shape": True}, {"group_by_stack_n": 3}):
        for options in ({}, {"sort_by": "cpu_time_total", "row_limit": 3}, {"sort_by": "self_cpu_memory_usage"},
                        {"top_level_events_only": True}, {"time_unit": "ms", "header": "x"}):  # fmt: skip
            looked = ours.key_averages(**group)
            list(looked)
            assert looked.table(**options) == ours.key_averages(**group).table(**options)
            assert copy.deepcopy(looked).table(**options) == looked.table(**options)
            assert pickle.loads(pickle.dumps(looked)).table(**options) == looked.table(**options)


def test_tables_of_other_lists_are_torchs_byte_for_byte(ours):
    """torch's own code over our rows."""
    util = pytest.importorskip("torch.autograd.profiler_util")
    events = ours.events()
    chosen = [event for event in events if event.name.startswith("aten::") and event.cpu_parent is None]
    averages = ours.key_averages(group_by_input_shape=True)
    for rows in (list(events), chosen, sorted(events, key=lambda e: e.cpu_time_total)[:7], list(averages), averages[2:6]):
        for options in ({}, {"sort_by": "self_cpu_time_total"}, {"sort_by": "cpu_time", "row_limit": 4},
                        {"top_level_events_only": True, "time_unit": "us"}, {"max_name_column_width": 20}):  # fmt: skip
            theirs = util.EventList(rows, profile_memory=True, with_flops=True).table(**options)
            assert EventList(rows, profile_memory=True, with_flops=True).table(**options) == theirs
    assert events.table(row_limit=5) == util.EventList(events, profile_memory=True, with_flops=True).table(row_limit=5)
    averages.sort(key=lambda row: row.key)
    assert averages.table() == util.EventList(averages, profile_memory=True, with_flops=True).table()
    assert EventList([]).table() == ""


def test_averages_of_a_choice_of_events(ours):
    events = ours.events()
    whole = EventList(list(events), profile_memory=True, with_flops=True)
    for options in ({}, {"group_by_input_shapes": True}, {"group_by_stack_n": 2}):
        mine, recorded = whole.key_averages(**options), events.key_averages(**options)
        assert [(row.key, row.count, row.input_shapes, row.stack, row.flops, row.self_cpu_memory_usage) for row in mine] == [
            (row.key, row.count, row.input_shapes, row.stack, row.flops, row.self_cpu_memory_usage) for row in recorded
        ]
        for name in ("cpu_time_total", "self_cpu_time_total"):
            assert [getattr(row, name) for row in mine] == pytest.approx([getattr(row, name) for row in recorded])
    only_sums = EventList([event for event in events if event.name == "aten::sum"])
    assert [(row.key, row.count) for row in only_sums.key_averages()] == [("aten::sum", 2)]
    assert only_sums.total_average().count == 2 and only_sums.total_average().key == "Total"
    assert only_sums.self_cpu_time_total == sum(event.self_cpu_time_total for event in only_sums)
    with pytest.raises(AssertionError):
        events.key_averages().key_averages()
    shorter = ours.events()[:]
    assert len(EventList(shorter[:5]).key_averages()) <= 5


def test_a_list_that_was_sorted_or_cut_shows_what_it_holds(ours):
    averages = ours.key_averages()
    count = len(averages)
    del averages[:-1]
    assert averages[0].key.startswith("aten::")
    assert averages.table().count("aten::") + averages.table().count("mine") == 1 and count > 1
    assert averages.total_average().count == averages[0].count
    assert averages.self_cpu_time_total == averages[0].self_cpu_time_total
    assert len(json.loads(averages.json())["rows"]) == 1


def test_row_attributes_that_a_program_sets_are_shown(ours):
    averages = ours.key_averages()
    averages[0].input_shapes = "[[mine]]"
    assert "[[mine]]" in averages.table()
    event = copy.copy(ours.events()[0])
    event.stack = ["here.py(1): f"]
    event.note = "anything"
    assert "here.py(1): f" in EventList([event]).table() and ours.events()[0].stack != event.stack


def test_values_are_torchs(ours, theirs):
    def rows(prof):
        return [
            (e.name, e.scope, e.input_shapes, e.structured_input_shapes, e.structured_input_strides, e.input_dtypes,
             e.concrete_inputs, e.kwinputs, e.flops, e.fwd_thread != 0, e.is_user_annotation, e.is_async, e.activity_type,
             e.overload_name, e.trace_name, e.use_device, e.device_type, e.device_index, e.device_resource_id,
             e.is_python_function, e.python_id, e.linked_correlation_id, e.count, e.node_id, e.event_metadata)
            for e in prof.events()
            if e.name != "[memory]"
        ]  # fmt: skip

    assert rows(ours) == rows(theirs)
    by_name = {event.name: event for event in ours.events()}
    assert by_name["aten::sum"].concrete_inputs[0] is None
    assert any(event.concrete_inputs == [None, [4, 3]] for event in ours.events() if event.name == "aten::reshape")
    assert by_name["MmBackward0"].scope == 1 and by_name["mine"].scope == 7 and by_name["aten::cat"].scope == 0
    mm = next(event for event in ours.events() if event.name == "aten::mm")
    assert mm.flops == 2 * 4 * 3 * 5


@pytest.mark.filterwarnings("ignore:.metadata_json. is deprecated:FutureWarning")
def test_arrows_metadata_and_percents_are_torchs(ours, theirs):
    if not hasattr(theirs.events()[0], "flow_id"):
        pytest.skip("needs a torch whose events have flow_id: 2.13 or newer")

    def rows(prof):
        found = [event for event in prof.events() if event.name != "[memory]"]
        numbers = [event.flow_id for event in found]  # torch counts from 1 in each recording, lanescope has numbers of its own
        return [
            (e.name, numbers.index(e.flow_id), e.flow_id == 0, e.flow_type, e.flow_start, e.metadata_json)
            for e in found
        ]

    assert rows(ours) == rows(theirs)
    arrows = {event.flow_id: event.name for event in ours.events() if event.flow_start}
    backward = {event.name: arrows[event.flow_id] for event in ours.events() if event.flow_type == 1 and not event.flow_start}
    assert backward["MmBackward0"] == "aten::mm" and backward["SumBackward0"] == "aten::sum"
    for module in (lanescope, pytest.importorskip("torch.autograd.profiler_util")):
        made = module.FunctionEvent(1, "x", 0, 0.0, 1.0, flow_id=4, flow_type=1, flow_start=True)
        assert (made.flow_id, made.flow_type, made.flow_start, made.metadata_json) == (4, 1, True, None)
        assert made.self_cpu_percent == made.total_cpu_percent == made.total_device_percent == -1


def test_an_unknown_sort_key_is_torchs_error_too(ours, theirs):
    for rows in (ours.events(), ours.key_averages(), theirs.events(), theirs.key_averages()):
        with pytest.raises(AttributeError):
            rows.table(sort_by="nonsense")
    with pytest.raises(lanescope.InvalidArgumentError, match="unknown sort key 'nonsense'.*self_cpu_time_total") as raised:
        ours.key_averages().table(sort_by="nonsense")
    assert raised.value.code == "invalid-argument" and raised.value.offset is None


def test_averages_have_torchs_values(ours, theirs):
    def rows(prof):
        return [
            (row.key, row.count, row.scope, row.input_shapes, row.overload_name, row.flops, row.is_legacy, row.is_remote,
             row.node_id, row.is_user_annotation, row.device_type, None if row.cpu_parent is None else row.cpu_parent.name,
             [child.name for child in row.cpu_children])
            for row in prof.key_averages()
            if row.key != "[memory]"
        ]  # fmt: skip

    assert rows(ours) == rows(theirs)


def test_keyword_arguments_of_a_range_are_seen(ours):
    torch = pytest.importorskip("torch")
    fast = getattr(torch._C._profiler, "_RecordFunctionFast", None)
    if fast is None:
        pytest.skip("needs a torch with _RecordFunctionFast")

    def run(module):
        with module.profile(activities=[ProfilerActivity.CPU], record_shapes=True) as prof:
            with fast("with words", [], {"stream": 7, "grid": "grid(1,)"}):
                pass
        return next(event for event in prof.events() if event.name == "with words").kwinputs

    assert run(lanescope) == run(torch.profiler) == {"stream": 7, "grid": "grid(1,)"}


def test_pickled_and_copied_events_keep_their_fields(ours):
    events = ours.events()
    for other in (pickle.loads(pickle.dumps(events)), copy.deepcopy(events)):
        assert isinstance(other, EventList) and len(other) == len(events)
        for mine, copied in zip(events, other):
            for name in ("name", "time_range", "thread", "input_shapes", "concrete_inputs", "stack", "scope", "flops",
                         "cpu_time_total", "self_cpu_time_total", "device_type", "self_cpu_memory_usage", "is_async"):  # fmt: skip
                assert getattr(mine, name) == getattr(copied, name)
            assert (mine.cpu_parent is None) == (copied.cpu_parent is None)
        assert other.table() == events.table()
        assert [row.key for row in other.key_averages()] == [row.key for row in events.key_averages()]
        child = next(event for event in other if event.cpu_parent is not None)
        assert any(child.cpu_parent is event for event in other)


def test_events_can_be_made_by_hand():
    event = lanescope.FunctionEvent(3, "one", 1, 2.0, 5.5, input_shapes=[[2]], stack=["a"])
    assert (event.id, event.key, event.cpu_time_total, event.self_cpu_time_total, event.scope) == (3, "one", 3.5, 3.5, 0)
    assert EventList([event]).table().count("one") == 1 and event.device_type == lanescope.DeviceType.CPU
    with pytest.raises(TypeError, match="colour"):
        lanescope.FunctionEvent(3, "one", 1, 2.0, 5.5, colour="red")


def test_an_event_has_torchs_public_names(ours, theirs):
    names = [name for name in dir(theirs.events()[0]) if not name.startswith("_")]
    assert [name for name in names if not hasattr(ours.events()[0], name)] == []


@pytest.mark.parametrize("kind", ["lanescope", "torch"])
def test_a_program_links_events_itself(theirs, kind):
    torch = pytest.importorskip("torch")
    make = lanescope.FunctionEvent if kind == "lanescope" else type(theirs.events()[0])
    on_cpu = {"device_type": torch.autograd.DeviceType.CPU, "use_device": "cuda"}
    parent, child = make(0, "parent", 1, 0.0, 10.0, **on_cpu), make(1, "child", 1, 2.0, 5.0, **on_cpu)
    parent.append_cpu_child(child)
    child.set_cpu_parent(parent)
    child.append_kernel("kernel", 0, 7.0)
    child.append_kernel("kernel", 0, 1.0)
    assert (parent.self_cpu_time_total, parent.device_time_total, child.self_device_time_total) == (7.0, 8.0, 8.0)
    assert parent.cpu_children == [child] and child.cpu_parent is parent
    assert [(kernel.name, kernel.duration) for kernel in child.kernels] == [("kernel", 7.0), ("kernel", 1.0)]
    on_gpu = make(2, "kernel", 1, 0.0, 1.0, device_type=torch.autograd.DeviceType.CUDA)
    for call in lambda: on_gpu.append_kernel("k", 0, 1.0), lambda: parent.append_cpu_child(on_gpu), lambda: child.set_cpu_parent(on_gpu):
        with pytest.raises(AssertionError):
            call()


def test_links_of_a_recorded_event_can_be_changed(ours):
    events = EventList(ours.events())
    leaf = next(event for event in events if event.cpu_parent is not None)
    before = list(leaf.kernels), list(leaf.cpu_children)
    leaf = copy.copy(leaf)
    leaf.append_kernel("kernel", 0, 2.0)
    leaf.append_cpu_child(events[0])
    assert (len(leaf.kernels), leaf.cpu_children) == (len(before[0]) + 1, [*before[1], events[0]])


def test_the_inner_object_has_torchs_public_names(ours, theirs):
    names = [name for name in dir(theirs.profiler) if not name.startswith("_")]
    # How torch keeps its results.
    internals = {"config", "create_trace_id", "default_trace_id", "enabled", "entered", "kineto_activities",
                 "profiler_kind", "profiling_start_time_ns", "profiling_end_time_ns", "use_cpu",
                 "use_cuda", "trace_id", "activity_filters"}  # fmt: skip
    assert [name for name in names if name not in internals and not hasattr(ours.profiler, name)] == []
    inner = ours.profiler
    assert inner.table(row_limit=2) == ours.events().table(row_limit=2)
    assert inner.total_average().count == sum(row.count for row in inner.key_averages())
    assert inner.self_cpu_time_total == pytest.approx(sum(row.self_cpu_time_total for row in inner.key_averages()))


def test_exports_of_a_choice(ours, tmp_path):
    events = ours.events()
    chosen = EventList([event for event in events if event.name == "aten::mm"])
    chosen.export_chrome_trace(tmp_path / "chosen.json")
    assert [row["name"] for row in json.loads((tmp_path / "chosen.json").read_text())] == [e.name for e in chosen]
    events.export_chrome_trace(tmp_path / "all.json")
    assert len(lanescope.read_trace(tmp_path / "all.json")) >= len(events) - 20
    assert set(events.supported_export_stacks_metrics()) >= {"self_cpu_time_total", "self_xpu_time_total"}
    with pytest.raises(ValueError, match="metric"):
        chosen.export_stacks(tmp_path / "s.txt", "count")


def test_a_list_without_a_trace_says_so():
    with pytest.raises(ValueError, match="single events"):
        EventList([]).column("name_id")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert repr(EventList([])) == "<lanescope.EventList: 0 events>"


def test_a_printed_row_says_what_was_recorded(torch):
    with lanescope.profile(
        activities=[lanescope.ProfilerActivity.CPU], record_shapes=True, profile_memory=True
    ) as prof:
        kept = torch.ones(2, 8) + 1
    (event,) = [event for event in prof.events() if event.name == "aten::add"]
    assert repr(event).endswith(", shapes [[2, 8], [], []], CPU memory 64 B>")
    (row,) = [row for row in prof.key_averages() if row.key == "aten::add"]
    assert repr(row).startswith("<FunctionEventAvg 'aten::add': 1 call, CPU ")
    assert repr(row).endswith(", CPU memory 64 B>") and kept.numel() == 16
    with lanescope.profile(activities=[lanescope.ProfilerActivity.CPU]) as prof:
        kept + 1
        kept + 1
    (row,) = [row for row in prof.key_averages() if row.key == "aten::add"]
    assert ": 2 calls, CPU " in repr(row) and "shapes" not in repr(row) and "memory" not in repr(row)


def test_they_are_instances_of_torchs_classes(torch):
    from torch.autograd import profiler_util as theirs

    with lanescope.profile(activities=[lanescope.ProfilerActivity.CPU]) as prof:
        torch.ones(2) + 1
    events, rows = prof.events(), prof.key_averages()
    for kind, ours, found in (
        ("EventList", lanescope.EventList, (events, rows)),
        ("FunctionEvent", lanescope.FunctionEvent, (events[0], copy.copy(events[0]), pickle.loads(pickle.dumps(events[0])))),
        ("FunctionEventAvg", lanescope.FunctionEventAvg, (rows[0], rows.total_average(), copy.deepcopy(rows[0]))),
    ):
        for each in found:
            assert isinstance(each, getattr(theirs, kind)) and isinstance(each, ours)
    assert not isinstance(events[0], theirs.FunctionEventAvg) and not isinstance(rows[0], theirs.FunctionEvent)
    assert type(copy.copy(rows)) is type(rows) and type(pickle.loads(pickle.dumps(events))) is lanescope.EventList
    total = theirs.FunctionEventAvg()
    total.add(rows[0])  # refuses what is no instance
    total.add(rows[0])
    assert (total.key, total.count) == (rows[0].key, 2 * rows[0].count)
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):  # torch's enumerations end the process before 2
        for each in (events, rows, events[0], rows[0], rows.total_average()):
            assert type(pickle.loads(pickle.dumps(each, protocol))) is type(each)
