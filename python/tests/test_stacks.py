"""Call stacks: the lines that call operators and ranges, in special cases of Python.

They are in the argument "Call stack"; ``event.stack`` has torch.profiler's frames (test_torch_stacks.py).
test_operator_stacks.py has those of operators.
"""

from __future__ import annotations

import inspect
import os
import re
import sys
import threading
import warnings

import pytest

import lanescope
from lanescope import profile, record_function
from stack_lines import functions_in, lines_in, lines_of, stacks_of

CPU = [lanescope.ProfilerActivity.CPU]
FILE = os.path.basename(__file__)


def here(offset=0):
    return inspect.currentframe().f_back.f_lineno + offset


def functions(stack):
    return functions_in(stack, FILE)


def lines(stack):
    return lines_in(stack, FILE)


def test_a_range_knows_the_lines_that_led_to_it():
    def inner():
        with record_function("mine"):
            pass
        return here(-2)

    def outer():
        return inner(), here()

    with profile(activities=CPU, with_stack=True) as prof:
        line, above = outer()
    (stack,) = stacks_of(prof, "mine")
    assert functions(stack)[:2] == ["inner", "outer"]
    assert lines(stack)[:2] == [line, above]
    assert stack[0].endswith(f"{FILE}({line}): inner")


def test_file_names_are_below_the_folders_that_modules_come_from(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "stack_helper").mkdir()
    (tmp_path / "stack_helper" / "deep.py").write_text("def call(f):\n    f()\n", encoding="utf-8")
    from stack_helper.deep import call

    def make():
        with record_function("mine"):
            pass

    with profile(activities=CPU, with_stack=True) as prof:
        call(make)
    (stack,) = stacks_of(prof, "mine")
    assert stack[1] == "stack_helper/deep.py(2): call"


def test_without_with_stack_there_are_none():
    with profile(activities=CPU, with_stack=True):
        pass
    with profile(activities=CPU) as prof:
        with record_function("mine"):
            pass
    assert stacks_of(prof, "mine") == [[]]
    event = next(e for e in prof.events() if e.name == "mine")
    assert "Call stack" not in event.args
    with pytest.raises(lanescope.InvalidArgumentError, match="with_stack=True"):
        prof.export_stacks("stacks.txt")
    with pytest.raises(AssertionError):  # torch.profiler's
        prof.export_stacks("stacks.txt")
    with pytest.raises(AssertionError):  # also where the metric is wrong, too
        prof.export_stacks("stacks.txt", "nonsense")


def test_the_same_line_reached_by_two_ways_has_two_stacks():
    def leaf():
        with record_function("leaf"):
            pass

    def one():
        leaf()

    def two():
        leaf()

    with profile(activities=CPU, with_stack=True) as prof:
        for _ in range(50):
            one()
            two()
    assert [functions(stack)[1] for stack in stacks_of(prof, "leaf")] == ["one", "two"] * 50


def test_generators_show_who_resumes_them():
    def numbers():
        for number in range(3):
            with record_function("in generator"):
                pass
            yield number

    def first(generator):
        return next(generator)

    def second(generator):
        return next(generator)

    def through():
        yield from generator

    with profile(activities=CPU, with_stack=True) as prof:
        generator = numbers()
        first(generator)
        second(generator)
        next(through())
    found = [functions(stack)[:2] for stack in stacks_of(prof, "in generator")]
    assert found == [["numbers", "first"], ["numbers", "second"], ["numbers", "through"]]


def test_coroutines_and_classes_and_comprehensions():
    import asyncio

    async def work():
        await asyncio.sleep(0)
        with record_function("in coroutine"):
            pass

    async def caller():
        await work()

    def range_now(name):
        with record_function(name):
            pass

    with profile(activities=CPU, with_stack=True) as prof:
        asyncio.run(caller())

        class Body:
            range_now("in class")

        list(map(lambda _: range_now("in lambda"), [1]))
        sorted([2, 1], key=lambda value: range_now("in key") or value)
    assert functions(stacks_of(prof, "in coroutine")[0])[:2] == ["work", "caller"]
    assert functions(stacks_of(prof, "in class")[0])[:2] == ["range_now", "Body"]
    assert functions(stacks_of(prof, "in lambda")[0])[:2] == ["range_now", "<lambda>"]
    assert len(stacks_of(prof, "in key")) == 2


def test_threads_have_stacks_of_their_own():
    def work(number):
        for _ in range(100):
            exec(f"def work_{number}(make):\n    make()\nwork_{number}(make)", {"make": make})

    def make():
        with record_function(threading.current_thread().name):
            pass

    with profile(activities=CPU, with_stack=True) as prof:
        threads = [threading.Thread(target=work, args=(n,), name=f"thread {n}") for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for number in range(4):
        found = stacks_of(prof, f"thread {number}")
        assert len(found) == 100
        for stack in found:
            assert stack[1] == f"<string>(2): work_{number}"
            assert any(frame.endswith("): _bootstrap") for frame in stack)
            assert not any("test_threads" in frame for frame in stack)


def test_deep_recursion_keeps_the_innermost_128_frames():
    def recurse(depth):
        if depth == 0:
            with record_function("deep"):
                pass
            return
        recurse(depth - 1)

    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(5000)
    try:
        with profile(activities=CPU, with_stack=True) as prof:
            recurse(2000)
    finally:
        sys.setrecursionlimit(limit)
    (stack,) = stacks_of(prof, "deep")
    assert stack[-1] == "(deeper frames left out)"
    assert functions(stack[:-1]) == ["recurse"] * 128


def test_a_stack_of_exactly_128_frames_is_whole():
    # A thread's outermost frames are `Thread._bootstrap`, `_bootstrap_inner` and `run` of threading.
    def recurse(depth):
        if depth == 0:
            with record_function("deep"):
                pass
        else:
            recurse(depth - 1)

    with profile(activities=CPU, with_stack=True) as prof:
        for frames in (128, 129):
            thread = threading.Thread(target=recurse, args=(frames - 4,))
            thread.start()
            thread.join()
    whole, cut = stacks_of(prof, "deep")
    assert len(whole) == 128 and whole[-1].endswith("): _bootstrap")
    assert len(cut) == 129 and cut[-1] == "(deeper frames left out)" and cut[:124] == whole[:124]


def test_code_made_at_run_time_has_the_name_it_was_compiled_with():
    with profile(activities=CPU, with_stack=True) as prof:
        exec(compile("\n\nwith record_function('a'): pass", "made up.py", "exec"))
        eval("record_function('b').__enter__().__exit__(None, None, None)")
        exec(compile("def f():\n  with record_function('c'): pass\nf()", "a;b\u00fc\u20ac\U0001f600.py", "exec"), globals())
    assert stacks_of(prof, "a")[0][0] == "made up.py(3): <module>"
    assert stacks_of(prof, "b")[0][0] == "<string>(1): <module>"
    assert stacks_of(prof, "c")[0][0] == "a_b\u00fc\u20ac\U0001f600.py(2): f"


def test_a_freed_code_object_leaves_no_wrong_names():
    """Functions are made, called and dropped, so that new code objects get the addresses of old ones."""
    addresses = set()
    with profile(activities=CPU, with_stack=True) as prof:
        for number in range(3000):
            scope = {"record_function": record_function}
            code = f"def made_{number % 7}():\n{chr(10) * (number % 5)}  with record_function('r{number}'): pass"
            exec(compile(code, f"file{number % 11}.py", "exec"), scope)
            scope[f"made_{number % 7}"]()
            addresses.add(id(scope[f"made_{number % 7}"].__code__))
            scope.clear()  # the function and its globals hold each other
    assert len(addresses) < 1500  # or the test shows nothing
    for event in prof.events():
        if re.fullmatch(r"r\d+", event.name):
            number = int(event.name[1:])
            assert lines_of(event)[0] == f"file{number % 11}.py({number % 5 + 2}): made_{number % 7}"


def test_threads_that_make_and_drop_code_do_not_mix_their_names():
    def work(letter):
        for number in range(400):
            scope = {"record_function": record_function}
            exec(f"def {letter}{number % 3}():\n  with record_function('{letter}{number % 3}'): pass", scope)
            scope[f"{letter}{number % 3}"]()

    with profile(activities=CPU, with_stack=True) as prof:
        threads = [threading.Thread(target=work, args=(letter,)) for letter in "abcd"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    found = [e for e in prof.events() if re.fullmatch(r"[abcd]\d", e.name)]
    assert len(found) == 1600
    assert all(lines_of(event)[0] == f"<string>(2): {event.name}" for event in found)


def test_a_python_that_cannot_be_read_is_one_warning(monkeypatch):
    from lanescope import _stacks, profiler

    class Refusing:
        @staticmethod
        def start_stacks(prefixes):
            return "this Python is too new"

    monkeypatch.setattr(_stacks, "_core", Refusing)
    profiler._warned.clear()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            with profile(activities=CPU, with_stack=True) as prof:
                with record_function("mine"):
                    pass
    mine = [str(w.message) for w in caught if "with_stack" in str(w.message)]
    assert mine == ["lanescope: with_stack: going on without stacks and Python frames: this Python is too new"]
    assert [e.name for e in prof.events()] == ["mine"]


def test_a_forked_child_records_stacks_of_its_own(run_python):
    done = run_python(
        code="""
import os, sys, threading
import lanescope
from lanescope import profile, record_function
def parent_line():
    with record_function("mine"): pass
def child_line():
    with record_function("mine"): pass
stop = False
def busy():
    while not stop:
        exec("def f():\\n  with record_function('busy'): pass\\nf()", {"record_function": record_function})
with profile(with_stack=True, activities=[lanescope.ProfilerActivity.CPU]) as prof:
    thread = threading.Thread(target=busy)
    thread.start()
    for number in range(20):
        parent_line()
        pid = os.fork()
        if pid == 0:
            with profile(with_stack=True, activities=[lanescope.ProfilerActivity.CPU]) as own:
                parent_line()
                child_line()
            found = [e.stack[0].split(": ")[1] for e in own.events() if e.name == "mine"]
            os._exit(0 if found == ["parent_line", "child_line"] else 1)
        assert os.waitpid(pid, 0)[1] == 0, number
    stop = True
    thread.join()
assert [e.stack[0].split(": ")[1] for e in prof.events() if e.name == "mine"] == ["parent_line"] * 20
print("done")
"""
    )
    assert done.stdout == "done\n", done.stderr
