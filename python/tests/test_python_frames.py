"""Python frames: what each call of a function records, compared with torch.profiler and in special cases of Python."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import warnings

import pytest

import lanescope
from lanescope import _frames, profile

from frame_trees import CPU, frames_of, one, plain, recorded, written

FILE = os.path.basename(__file__)
HAS_MONITORING = hasattr(sys, "monitoring")


def here(name):
    return f"{FILE}: {name}"


# -- calls ---------------------------------------------------------------------------------------------------------------


def leaf():
    return 1


def twice():
    return leaf() + leaf()


def test_each_call_is_a_frame_inside_its_callers(tmp_path):
    def run():
        twice()
        leaf()

    frames = recorded(tmp_path, run)
    run_frame = one(frames, here("run"))
    assert run_frame.tree() == (here("run"), [(here("twice"), [(here("leaf"), []), (here("leaf"), [])]), (here("leaf"), [])])
    assert run_frame.event["ph"] == "X" and run_frame.event["dur"] > 0
    assert run_frame.event["tid"] == threading.get_native_id()
    assert set(run_frame.event["args"]) == {"Python parent id", "Python id", "Ev Idx"}
    line = twice.__code__.co_firstlineno
    assert f"{FILE}({line}): twice" in [frame.name.rsplit("/", 1)[-1] for frame in frames]


def test_c_functions_are_frames_too(tmp_path):
    def run():
        len([1])
        sorted([2, 1], key=by)
        "a-b".split("-")

    def by(value):
        return value

    frames = recorded(tmp_path, run)
    names = [child.tree() for child in one(frames, here("run")).children]
    assert names == [
        ("<built-in function len>", []),
        ("<built-in function sorted>", [(here("by"), []), (here("by"), [])]),
        ("<built-in method split of str object>", []),
    ]


def test_an_exception_ends_the_frames_that_it_leaves(tmp_path):
    def fails():
        raise ValueError

    def between():
        fails()

    def c_function_fails():
        int("x")

    def run():
        for function in (between, c_function_fails):
            try:
                function()
            except ValueError:
                leaf()

    frames = recorded(tmp_path, run)
    assert [child.tree() for child in one(frames, here("run")).children] == [
        (here("between"), [(here("fails"), [])]),
        (here("leaf"), []),
        (here("c_function_fails"), []),
        (here("leaf"), []),
    ]


def closing_runs_a_generator(make):
    """Some versions of Python close a generator that catches nothing without running it."""
    generator, seen = make(), []
    next(generator)
    sys.setprofile(lambda frame, what, arg: seen.append(frame.f_code))
    generator.close()
    sys.setprofile(None)
    return make.__code__ in seen


def test_a_generator_is_a_frame_each_time_it_runs(tmp_path):
    def numbers():
        yield leaf()
        yield 2

    def run():
        made = numbers()
        next(made)
        leaf()
        next(made)
        made.close()

    frames = recorded(tmp_path, run)
    closed = [(here("numbers"), [])] if closing_runs_a_generator(numbers) else []
    assert [child.tree() for child in one(frames, here("run")).children] == [
        ("<built-in function next>", [(here("numbers"), [(here("leaf"), [])])]),
        (here("leaf"), []),
        ("<built-in function next>", [(here("numbers"), [])]),
        ("<built-in method close of generator object>", closed),
    ]


def test_coroutines_are_below_the_loop_that_runs_them(tmp_path):
    async def inner():
        await asyncio.sleep(0)
        return leaf()

    async def outer():
        return await asyncio.gather(inner(), inner())

    frames = recorded(tmp_path, lambda: asyncio.run(outer()))
    inner_frames = [frame for frame in frames if plain(frame.name) == here("inner")]
    assert len(inner_frames) == 4  # two coroutines, each begun and resumed once
    assert sum(len(frame.below(here("leaf"))) for frame in inner_frames) == 2


def test_recursion_deeper_than_can_be_kept_is_counted(tmp_path, run_python):
    done = run_python(
        code="""
import sys, json, lanescope
sys.setrecursionlimit(20000)
def down(n):
    return n and down(n - 1)
with lanescope.profile(activities=[lanescope.ProfilerActivity.CPU], with_stack=True) as prof:
    down(6000)
    down(3)
prof.export_chrome_trace("deep.json")
events = json.load(open("deep.json"))["traceEvents"]
print(sum(e["name"].endswith("): down") for e in events if e.get("cat") == "python_function"), prof.stats()["depth_overflow"])
""",
    )
    kept, lost = map(int, done.stdout.split())
    assert kept + lost == 6001 + 4
    assert 4000 < kept <= 4096 + 4


def test_a_code_object_at_an_old_address_has_its_own_name(tmp_path):
    names = [f"made_{number}" for number in range(200)]

    def run():
        for name in names:
            space = {}
            exec(f"def {name}(): pass", space)
            space[name]()
            del space

    frames = recorded(tmp_path, run)
    called = [plain(frame.name).split(": ")[-1] for frame in frames if ": made_" in frame.name]
    assert called == names


# -- windows and threads -------------------------------------------------------------------------------------------------


def test_frames_that_were_open_before_are_drawn_from_the_start(tmp_path):
    def outer():
        prof.start()
        leaf()

    prof = profile(activities=CPU, with_stack=True)
    outer()
    prof.stop()
    trace = written(prof, tmp_path)
    frames = list(frames_of(trace).values())
    span = next(event for event in trace["traceEvents"] if event.get("cat") == "Trace")
    outer_frame = one(frames, here("outer"))
    assert plain(outer_frame.children[-1].name) == here("leaf")
    test_frame = one(frames, here("test_frames_that_were_open_before_are_drawn_from_the_start"))
    assert outer_frame in test_frame.children
    assert 0 <= test_frame.start - span["ts"] < 20_000
    assert outer_frame.end < test_frame.end <= span["ts"] + span["dur"] + 0.0015


def test_threads_have_frames_of_their_own(tmp_path):
    go, done = threading.Event(), threading.Event()

    def early():
        go.wait()
        leaf()
        done.set()

    def late():
        twice()

    old = threading.Thread(target=early)
    old.start()

    def run():
        go.set()
        done.wait()
        thread = threading.Thread(target=late)
        thread.start()
        thread.join()

    frames = recorded(tmp_path, run)
    old.join()
    early_frame, late_frame = one(frames, here("early")), one(frames, here("late"))
    assert len({one(frames, here("run")).tid, early_frame.tid, late_frame.tid}) == 3
    assert early_frame.below(here("leaf")) and late_frame.below(here("twice"))
    roots = [frame for frame in frames if frame.event["args"]["Python parent id"] is None]
    assert sorted(plain(frame.name) for frame in roots)[-2:] == ["threading.py: _bootstrap", "threading.py: _bootstrap"]


def test_each_recorded_window_begins_with_its_open_frames(tmp_path):
    def step():
        leaf()
        prof.step()

    plan = lanescope.schedule(wait=1, warmup=0, active=1, repeat=2)
    with profile(activities=CPU, with_stack=True, schedule=plan, acc_events=True) as prof:
        for _ in range(4):
            step()
    trace = written(prof, tmp_path)
    frames = list(frames_of(trace).values())
    assert len([frame for frame in frames if plain(frame.name) == here("leaf")]) == 2
    name = here("test_each_recorded_window_begins_with_its_open_frames")
    roots = [frame for frame in frames if plain(frame.name) == name]
    assert len(roots) == 2  # one a window
    spans = [event for event in trace["traceEvents"] if event.get("cat") == "Trace"]
    for frame, span in zip(sorted(roots, key=lambda frame: frame.start), spans):
        assert span["ts"] <= frame.start and frame.end <= span["ts"] + span["dur"] + 0.0015


def test_a_second_profile_has_the_frames_that_the_first_began(tmp_path):
    def inside():
        with profile(activities=CPU, with_stack=True) as second:
            leaf()
        return second

    with profile(activities=CPU, with_stack=True):
        second = inside()
        twice()
    frames = list(frames_of(written(second, tmp_path)).values())
    assert one(frames, here("leaf")).event["args"]["Python parent id"] == one(frames, here("inside")).event["args"]["Python id"]
    assert not [frame for frame in frames if plain(frame.name) == here("twice")]


def test_frames_come_only_when_asked_for(tmp_path):
    assert recorded(tmp_path, twice, record_shapes=True) == []
    assert sys.getprofile() is None
    frames = recorded(tmp_path, twice)
    assert one(frames, here("twice"))
    assert sys.getprofile() is None
    assert recorded(tmp_path, twice, record_shapes=True) == []


def test_a_killed_process_leaves_its_frames(tmp_path):
    script = tmp_path / "killed.py"
    script.write_text(
        """
import os, lanescope
def work():
    for _ in range(20000):
        leaf()
def leaf():
    pass
prof = lanescope.profile(activities=[lanescope.ProfilerActivity.CPU], with_stack=True, output_dir="out")
prof.start()
work()
os.kill(os.getpid(), 9)
""",
        encoding="utf-8",
    )
    done = subprocess.run([sys.executable, str(script)], cwd=tmp_path, check=False)
    assert done.returncode == -signal.SIGKILL
    (spool,) = (tmp_path / "out").glob("*.lspool")
    trace = lanescope.read_trace(str(spool))
    names = [trace.name(i) for i in range(len(trace))]
    assert sum(name.endswith("): leaf") for name in names) == 20000


def test_a_forked_child_goes_on_without(tmp_path):
    with profile(activities=CPU, with_stack=True) as prof:
        pid = os.fork()
        if pid == 0:
            twice()
            os._exit(0 if sys.getprofile() is None and not _frames._owners else 1)
        _, status = os.waitpid(pid, 0)
        leaf()
    assert status == 0
    assert one(frames_of(written(prof, tmp_path)).values(), here("leaf"))


# -- other profilers -----------------------------------------------------------------------------------------------------


@pytest.mark.skipif(HAS_MONITORING, reason="needs Python 3.11 or older: sys.monitoring has a place for each tool")
def test_another_profile_hook_stays_and_is_reported(tmp_path, monkeypatch):
    monkeypatch.setattr(lanescope.profiler, "_warned", set())
    seen = []

    def theirs(frame, event, arg):
        seen.append(event)

    sys.setprofile(theirs)
    try:
        with pytest.warns(UserWarning, match="another profile hook is set there"):
            frames = recorded(tmp_path, twice)
        assert sys.getprofile() is theirs
    finally:
        sys.setprofile(None)
    assert "call" in seen
    assert not [frame for frame in frames if plain(frame.name) == here("twice")]


def test_a_hook_that_comes_later_works_and_stays(tmp_path, monkeypatch):
    monkeypatch.setattr(lanescope.profiler, "_warned", set())
    seen = []

    def theirs(frame, event, arg):
        seen.append((event, frame.f_code.co_name))

    def run():
        leaf()
        sys.setprofile(theirs)
        twice()

    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            frames = recorded(tmp_path, run)
        assert sys.getprofile() is theirs
    finally:
        sys.setprofile(None)
    assert ("call", "twice") in seen
    assert one(frames, here("run")).below(here("leaf"))
    if not HAS_MONITORING:
        assert [line for line in map(str, (w.message for w in caught)) if "frames end early" in line]


def test_nothing_breaks_next_to_torch_profiler(torch, tmp_path):
    x = torch.ones(2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with profile(activities=CPU, with_stack=True) as prof:
            leaf()
            with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], with_stack=True) as theirs:
                torch.neg(x)
            twice()
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], with_stack=True) as outer:
            with profile(activities=CPU, with_stack=True):
                torch.neg(x)
    leaves = [frame for frame in frames_of(written(prof, tmp_path)).values() if plain(frame.name) == here("leaf")]
    assert len(leaves) == (3 if HAS_MONITORING else 1)  # one hook a thread before: torch.profiler's came, and ours ended
    for each in (theirs, outer):
        assert [event for event in each.events() if event.name == "aten::neg"]
