"""record_function: a context manager, a decorator, visible to torch.profiler too."""

from __future__ import annotations

import contextlib
import copy
import gc
import json
import pickle
import threading
import time
import weakref

import pytest

import lanescope
from lanescope import profile, record_function, schedule


def names(prof):
    return [event.name for event in prof.events()]


def test_ranges_nest_and_repeat():
    with profile() as prof:
        for _ in range(3):
            with record_function("outer"):
                with record_function("inner"):
                    pass
    events = prof.events()
    assert [e.name for e in events] == ["outer", "inner"] * 3
    assert {e.cpu_parent.name for e in events if e.name == "inner"} == {"outer"}
    assert all(e.is_user_annotation for e in events)


def test_a_decorator_opens_a_range_a_call_also_in_recursion():
    @record_function("down")
    def down(n):
        """Counts down."""
        return n if n == 0 else down(n - 1)

    assert down.__name__ == "down" and down.__doc__ == "Counts down."
    with profile() as prof:
        assert down(3) == 0
    trace = prof.trace
    assert [trace.name(i) for i in range(len(trace))].count("down") == 4  # torch's table folds them into one


def test_an_exception_ends_the_range_and_goes_on():
    with profile() as prof:
        with pytest.raises(KeyError):
            with record_function("fails"):
                raise KeyError("x")
        with record_function("after"):
            pass
    assert [e.cpu_parent for e in prof.events()] == [None, None]


def test_without_a_profile_nothing_happens():
    with record_function("unseen") as entered:
        assert entered.name == "unseen"
    with profile() as prof:
        pass
    assert names(prof) == []


def test_one_object_may_be_used_again():
    again = record_function("again")
    with profile() as prof:
        for _ in range(2):
            with again:
                pass
    assert names(prof) == ["again", "again"]


def test_any_text_is_a_name():
    odd = ["", "quote\" and \\", "Größe 大きさ", "line\nbreak", "x" * 5000]
    with profile() as prof:
        for name in odd:
            with record_function(name):
                pass
    assert len(prof.events()) == len(odd)
    assert "Größe 大きさ" in names(prof)


def test_what_is_no_text_is_refused_where_torch_refuses_it(torch):
    for base in (torch.profiler.record_function, record_function):
        for label in (base(3), base(None), base(["a"]), base("name", 5)):  # made without an error
            with pytest.raises(RuntimeError):
                label.__enter__()
    with profile() as prof:
        with pytest.raises(RuntimeError, match="expected name of type str, found int"):
            with record_function(3):
                pass
        with pytest.raises(RuntimeError, match="expected args of type str, found int"):
            record_function("name", 5)(lambda: None)()
    assert names(prof) == []


def test_lone_surrogates_are_refused_where_torch_refuses_them(torch):
    with profile() as prof:
        for base in (torch.profiler.record_function, record_function):
            for label in (base("\ud800"), base("name", "a\udfff"), base("\ud800", "args")):  # made without an error
                with pytest.raises(RuntimeError):
                    label.__enter__()
        with pytest.raises(RuntimeError, match="expected args that UTF-8 can encode, found lone surrogates"):
            record_function("Größe", "\ud800")(lambda: None)()
        with record_function("Größe", "大きさ"):
            pass
    assert names(prof) == ["Größe"]


def test_it_is_a_context_decorator_as_in_torch(torch):
    for base in (torch.profiler.record_function, record_function):

        class Stage(base):
            pass

        class Both(base, contextlib.ContextDecorator):
            def _recreate_cm(self):
                return type(self)(self.name + " again")

        for made in (base, Stage, Both):
            assert issubclass(made, contextlib.ContextDecorator)
            assert isinstance(made("name"), contextlib.ContextDecorator)
        assert base("name")._recreate_cm().name == "name"
        assert base.__mro__[-2:] == (contextlib.ContextDecorator, object)

        def outer(n):
            """The text."""
            return n if n == 0 else outer(n - 1)

        outer = base("outer", "args")(Both("both")(outer))
        assert outer.__name__ == "outer" and outer.__doc__ == "The text." and outer.__wrapped__ is not None
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as prof:
            assert outer(2) == 0
            with pytest.raises(KeyError):
                base("raises")(lambda: {}["x"])()
        found = sorted(event.name for event in prof.events())
        assert found == ["both again"] * 3 + ["outer"] * 3 + ["raises"], base


def test_a_change_of_context_decorator_is_seen(monkeypatch):
    assert record_function in contextlib.ContextDecorator.__subclasses__()

    class Stage(record_function):
        pass

    for made in (record_function, Stage):
        for _ in range(3):  # Python remembers attributes of classes after their first use
            assert not hasattr(made, "added")
            monkeypatch.setattr(contextlib.ContextDecorator, "added", lambda self: object(), raising=False)
            assert type(made("x").added()) is object
            monkeypatch.undo()


def test_a_range_ends_with_a_future_as_in_torch(torch):
    """Also on another thread, and with an error."""

    def run(module):
        def later(action):
            thread = threading.Thread(target=lambda: (time.sleep(0.02), action()))
            thread.start()
            return thread

        with module.profile(activities=[module.ProfilerActivity.CPU]) as prof:
            made = [torch.futures.Future() for _ in range(3)]
            after = []
            for name, future in zip(("value", "error", "at once"), made):
                with module.record_function(name) as label:
                    after.append(label._call_end_callbacks_on_future(future))
                with pytest.raises(RuntimeError, match="can only be called once"):
                    label._call_end_callbacks_on_future(future)
            made[2].set_result(7)
            threads = [later(lambda: made[0].set_result(5)), later(lambda: made[1].set_exception(ValueError("no")))]
            results = [after[0].wait(), after[2].wait()]
            try:
                raise after[1].wait()  # torch gives what set_exception() was called with as the value
            except (ValueError, RuntimeError) as error:  # ours raises it
                assert "no" in str(error)
            for thread in threads:
                thread.join()
            with module.record_function("open"):  # ends with its own block
                pass
        never_entered = module.record_function("never entered")
        with pytest.raises(AssertionError):
            never_entered._call_end_callbacks_on_future(made[0])
        took = {event.name: event.time_range.elapsed_us() for event in prof.events() if not event.name.startswith("aten::")}
        return results, sorted(took), {name for name in took if took[name] > 15_000}

    theirs, ours = run(torch.profiler), run(lanescope)
    assert ours == theirs == ([5, 7], ["at once", "error", "open", "value"], {"error", "value"})


def test_it_is_entered_before_it_is_left_as_in_torch(torch):
    for base in (torch.profiler.record_function, record_function):
        label = base("label")
        assert label.record is None and label.run_callbacks_on_exit is True
        with pytest.raises(AssertionError):
            label.__exit__(None, None, None)
        with label:
            assert label.record is not None
        assert label.record is not None


def test_a_range_may_stay_open_when_it_is_left(torch):
    def durations(module, stays_open):
        with module.profile(activities=[module.ProfilerActivity.CPU]) as prof:
            label = module.record_function("label")
            with label:
                label.run_callbacks_on_exit = not stays_open
            time.sleep(0.02)
            del label  # ends what is open
        return [event.time_range.elapsed_us() for event in prof.events() if event.name == "label"]

    for module in (torch.profiler, lanescope):
        (left,) = durations(module, stays_open=False)
        (stayed,) = durations(module, stays_open=True)
        assert left < 10_000 < stayed, module


def test_a_name_of_bytes_is_text_as_in_torch(torch):
    odd = {b"bytes": "bytes", "größe".encode(): "größe", b"\xff": "\ufffd"}
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as theirs:
        with torch.profiler.record_function(b"bytes"):
            pass
        with record_function(b"ours"):
            pass
    assert [e.name for e in theirs.events()] == ["bytes", "ours"]
    with profile() as prof:
        for name in odd:
            with record_function(name, b"args") as entered:
                assert entered.name is name and entered.args == b"args"

        @record_function(b"decorated")
        def function():
            pass

        function()
    assert names(prof) == [*odd.values(), "decorated"]


def test_the_name_may_be_changed_before_the_next_range():
    label = record_function("first")
    with profile() as prof:
        with label:
            pass
        label.name = "second"
        with label:
            pass
        label.name = 3
        with pytest.raises(RuntimeError, match="int"), label:
            pass
        label.name = "third"
        with label:
            pass
    assert names(prof) == ["first", "second", "third"]


def test_a_subclass_may_extend_it(torch):
    """What programs do with torch's class."""

    def made_of(base):
        class Stage(base):
            entered = 0

            def __init__(self, number):
                super().__init__(f"stage {number}")
                self.number = number

            def __enter__(self):
                self.entered += 1
                return super().__enter__()

        class Plain(base):
            pass

        with Stage(3) as stage:
            torch.ones(2)
        with Plain("plain", "args") as plain:
            pass
        decorated = Stage(4)
        count = decorated(lambda n: n + 1)
        return stage.number, stage.entered, stage.name, plain.name, plain.args, count(1), count(2), decorated.entered

    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as theirs:
        expected = made_of(torch.profiler.record_function)
    with profile() as ours:
        assert made_of(record_function) == expected
    ranges = [[e.name for e in prof.events() if not e.name.startswith("aten::")] for prof in (theirs, ours)]
    assert ranges[0] == ranges[1] == ["stage 3", "plain", "stage 4", "stage 4"]


def test_it_can_be_copied_pickled_and_referred_to_weakly(torch):
    for base in (torch.profiler.record_function, record_function):
        label = base("name", "args")
        label.run_callbacks_on_exit = False
        for other in (copy.copy(label), copy.deepcopy(label), pickle.loads(pickle.dumps(label))):
            assert type(other) is base and other is not label
            assert (other.name, other.args, other.run_callbacks_on_exit, other.record) == ("name", "args", False, None)
        refers = weakref.ref(label)
        assert refers() is label
        del label
        assert refers() is None

        class Stage(base):
            pass

        stage = Stage("stage")
        stage.owner = [stage]
        other = copy.copy(stage)
        assert type(other) is Stage and other.name == "stage" and other.owner is stage.owner
        refers = weakref.ref(stage)
        del stage, other
        gc.collect()
        assert refers() is None  # the circle through its own attributes was found


SCRIPTED = """
import torch
from lanescope import ProfilerActivity, profile, record_function

def function(x: torch.Tensor) -> torch.Tensor:
    with record_function("scripted"):
        y = x + 1
    return y * 2

class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with record_function("model"):
            return x.sin()

scripted, model = torch.jit.script(function), torch.jit.script(Model())
x = torch.ones(2)
for _ in range(3):
    scripted(x), model(x)
with profile(activities=[ProfilerActivity.CPU]) as prof:
    scripted(x), model(x)
parents = {event.name: event.cpu_parent and event.cpu_parent.name for event in prof.events()}
assert parents["aten::add"] == "scripted" and parents["aten::sin"] == "model", parents
assert parents["scripted"] != "scripted" and parents["aten::mul"] != "scripted", parents
with record_function("eager") as still:
    assert type(still) is record_function
"""


def test_a_scripted_function_may_use_it(run_python):
    """TorchScript compiles torch's own class in its place."""
    run_python(code=SCRIPTED)
    run_python(code="import lanescope, sys; assert not hasattr(lanescope.record_function, '_jit_override_qualname') and 'torch' not in sys.modules")


def test_every_thread_is_recorded():
    def work():
        for _ in range(10):
            with record_function("in a thread"):
                pass

    with profile() as prof:
        threads = [threading.Thread(target=work) for _ in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    events = prof.events()
    assert len(events) == 50 and len({e.thread for e in events}) == 5


def test_torch_profiler_sees_it_and_both_see_it_once(torch):
    with profile() as ours:
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as theirs:
            with record_function("for both"):
                torch.ones(2)
        with record_function("for us"):
            pass
    assert [e.name for e in theirs.events() if e.name.startswith("for")] == ["for both"]
    assert [e.name for e in ours.events() if e.name.startswith("for")] == ["for both", "for us"]
    annotation = [e for e in ours.events() if e.name == "for both"][0]
    assert annotation.is_user_annotation


def test_torch_profiler_alone_sees_it(torch):
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as theirs:
        with record_function("alone"):
            pass
    assert "alone" in [e.name for e in theirs.events()]


def test_torchs_own_record_function_is_seen(torch):
    with profile() as prof:
        with torch.profiler.record_function("torch's"):
            torch.ones(2)
    events = {e.name: e for e in prof.events()}
    assert events["torch's"].is_user_annotation and events["aten::ones"].cpu_parent.name == "torch's"


def test_inside_a_compiled_function_it_does_not_break_the_graph(torch):
    def function(x):
        with record_function("inside"):
            y = x.sin()
        return y.cos()

    x = torch.ones(3)
    compiled = torch.compile(function, fullgraph=True, backend="eager")
    assert torch.equal(compiled(x), function(x))


def test_repr_names_it():
    assert repr(lanescope.record_function("a")) == "lanescope.record_function('a')"


def nodes_of(path):
    return [node["name"] for node in json.loads(path.read_text())["nodes"]]


def execution_trace(torch, path):
    observer = torch.profiler.ExecutionTraceObserver()
    return observer.register_callback(str(path))


def test_an_execution_trace_alone_has_it(torch, tmp_path):
    observer = execution_trace(torch, tmp_path / "et.json")
    with record_function("before"):
        pass
    observer.start()
    with record_function("shown", "1, 2"):
        torch.ones(2)
    observer.stop()
    observer.unregister_callback()
    nodes = nodes_of(tmp_path / "et.json")
    assert nodes.count("shown") == 1 and "before" not in nodes and "aten::ones" in nodes


def test_an_execution_trace_before_any_profile_has_it(run_python, tmp_path):
    code = f"""
import json, torch, torch.profiler
from lanescope import record_function
observer = torch.profiler.ExecutionTraceObserver().register_callback({str(tmp_path / "et.json")!r})
observer.start()
with record_function("shown"):
    torch.ones(2)
observer.stop()
observer.unregister_callback()
print([n["name"] for n in json.load(open({str(tmp_path / "et.json")!r}))["nodes"]].count("shown"))
"""
    assert run_python(code=code).stdout.split() == ["1"]


def test_an_execution_trace_and_a_profile_both_have_it_once(torch, tmp_path):
    observer = execution_trace(torch, tmp_path / "et.json")
    with profile() as prof:
        with record_function("ours only"):
            pass
        observer.start()
        with record_function("both"):
            torch.ones(2)
        observer.stop()
    observer.unregister_callback()
    assert nodes_of(tmp_path / "et.json").count("both") == 1
    assert [e.name for e in prof.events() if "o" in e.name and "::" not in e.name] == ["ours only", "both"]


def test_a_profile_drives_an_execution_trace_of_the_same_calls(torch, tmp_path):
    observer = execution_trace(torch, tmp_path / "et.json")
    with profile(schedule=schedule(wait=1, warmup=1, active=2, repeat=1), execution_trace_observer=observer) as prof:
        for step in range(6):
            with record_function(f"loop {step}"):
                torch.ones(2, requires_grad=True).sum().backward()
            prof.step()
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    nodes = json.loads((tmp_path / "et.json").read_text())["nodes"]
    names = [node["name"] for node in nodes if node["name"].startswith(("loop", "ProfilerStep"))]
    assert sorted(names) == ["ProfilerStep#2", "ProfilerStep#3", "loop 2", "loop 3"]
    in_execution_trace = {
        attribute["value"]: node["name"] for node in nodes for attribute in node["attrs"] if attribute["name"] == "rf_id"
    }
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    in_trace = {
        event["args"]["Record function id"]: event["name"]
        for event in events
        if event.get("cat") in ("cpu_op", "user_annotation")
    }
    assert len(in_trace) > 10 and 0 not in in_trace
    root_nodes = {"[pytorch|profiler|execution_trace|process]", "[pytorch|profiler|execution_trace|thread]"}
    assert in_trace == {number: name for number, name in in_execution_trace.items() if name not in root_nodes}


def test_text_given_with_a_name_is_shown_as_its_input(torch):
    with profile(record_shapes=True) as prof:
        with record_function("with", "1, 2"):
            pass
        with record_function("without"):
            pass
    shapes = {event.name: event.input_shapes for event in prof.events()}
    assert shapes == {"with": [[]], "without": []}


def test_a_backward_node_keeps_its_numbers_with_an_execution_trace(torch, tmp_path):
    """The engine's wrapper gets the sequence number of the node inside it, whatever else is recorded in between."""
    x = torch.ones(2, requires_grad=True)
    observer = execution_trace(torch, tmp_path / "et.json")
    with profile(execution_trace_observer=observer) as prof:
        x.exp().sum().backward()
    trace = prof.trace
    numbers = {}
    for at in range(len(trace)):
        arguments = trace.args(at)
        if "ExpBackward0" in trace.name(at):
            numbers[trace.name(at)] = arguments.get("Sequence number")
    assert len(numbers) == 2 and None not in numbers.values() and len(set(numbers.values())) == 1
