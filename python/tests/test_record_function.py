"""record_function: a context manager, a decorator, visible to torch.profiler too."""

from __future__ import annotations

import threading

import pytest

import lanescope
from lanescope import profile, record_function


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
    odd = ["", "quote\" and \\", "Größe 大きさ", "line\nbreak", "\ud800", "x" * 5000]
    with profile() as prof:
        for name in odd:
            with record_function(name):
                pass
    assert len(prof.events()) == len(odd)
    assert "Größe 大きさ" in names(prof)


def test_a_name_that_is_no_text_is_refused():
    with pytest.raises(TypeError, match="int"):
        record_function(3)


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
