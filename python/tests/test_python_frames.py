"""Python frames: what each call of a function records, compared with torch.profiler and in special cases of Python."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import warnings

import pytest

import lanescope
from lanescope import _frames, profile, record_function

from torch_programs import make_net

CPU = [lanescope.ProfilerActivity.CPU]
FILE = os.path.basename(__file__)
HAS_MONITORING = hasattr(sys, "monitoring")


class Frame:
    """One python_function event of a written trace, with those that it called."""

    def __init__(self, event):
        self.event = event
        self.name = event["name"]
        self.tid = event["tid"]
        self.start, self.end = event["ts"], event["ts"] + event["dur"]
        self.children = []

    def tree(self):
        """Names below this one: (name, [of what it called])."""
        return (plain(self.name), [child.tree() for child in self.children])

    def below(self, name):
        found = [self] if plain(self.name) == name else []
        return found + [frame for child in self.children for frame in child.below(name)]


def plain(name):
    """Without the line, the folder and addresses: "file.py: f"."""
    name = re.sub(r" object at 0x[0-9a-f]+>", " object>", name)
    found = re.fullmatch(r"(?:.*/)?([^/]*)\(\d+\): (.*)", name)
    return f"{found[1]}: {found[2]}" if found else name


def written(prof, tmp_path):
    path = tmp_path / "trace.json"
    prof.export_chrome_trace(str(path))
    return json.loads(path.read_text(encoding="utf-8"))


def frames_of(trace):
    """All frames of a trace, by "Python id"; each has its children."""
    events = [event for event in trace["traceEvents"] if event.get("cat") == "python_function"]
    frames = {event["args"]["Python id"]: Frame(event) for event in events}
    assert len(frames) == len(events)
    for frame in frames.values():
        parent = frame.event["args"].get("Python parent id")  # None, or from torch 2.14 on absent
        if parent is None:
            continue
        above = frames[parent]
        assert above.tid == frame.tid
        # Times are whole nanoseconds; a parent holds its children but for their rounding.
        assert above.start <= frame.start + 0.0015 and frame.end <= above.end + 0.0015
        above.children.append(frame)
    return frames


def recorded(tmp_path, run, **options):
    options = options or {"with_stack": True}
    with profile(activities=CPU, **options) as prof:
        run()
    return list(frames_of(written(prof, tmp_path)).values())


def here(name):
    return f"{FILE}: {name}"


def one(frames, name):
    found = [frame for frame in frames if plain(frame.name) == name]
    assert len(found) == 1, (name, sorted({plain(frame.name) for frame in frames}))
    return found[0]


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
    # Python 3.12 and 3.13 close a generator that catches nothing without running it.
    closed = [] if (3, 12) <= sys.version_info < (3, 14) else [(here("numbers"), [])]
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


def test_beside_torch_profiler_nothing_breaks(torch, tmp_path):
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


# -- torch ---------------------------------------------------------------------------------------------------------------


def subtree(trace, name):
    found = [frame for frame in frames_of(trace).values() if plain(frame.name) == name]
    assert len(found) == 1, name
    return found[0]


def test_frames_are_those_of_torch_profiler(torch, tmp_path):
    net, x = make_net(torch), torch.ones(2, 4)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, foreach=False)

    def program():
        optimizer.zero_grad()
        net(x).backward()
        optimizer.step()
        return sorted([3, 1], key=lambda value: -value)

    for _ in range(3):
        program()
    with profile(activities=CPU, with_stack=True) as mine:
        program()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], with_stack=True) as theirs:
        program()
    theirs.export_chrome_trace(str(tmp_path / "torch.json"))
    other = subtree(json.loads((tmp_path / "torch.json").read_text(encoding="utf-8")), here("program"))
    ours = subtree(written(mine, tmp_path), here("program"))
    assert ours.tree() == other.tree()
    assert set(ours.event["args"]) == set(other.event["args"])

    def names(frame):  # lines and numbers included
        return [re.sub(r"0x[0-9a-f]+", "", frame.name)] + [name for child in frame.children for name in names(child)]

    assert names(ours) == names(other)
    module_ids = [
        [frame.event["args"].get("Python module id") for frame in each.below("nn.Module: Linear_1")] for each in (ours, other)
    ]
    assert module_ids == [[1], [1]]


def test_modules_are_numbered_within_their_class(torch, tmp_path):
    net, x = make_net(torch), torch.ones(2, 4)

    def run():
        net(x)
        net(x)

    frames = recorded(tmp_path, run, with_modules=True)
    assert {frame.name.startswith("nn.Module: ") for frame in frames} == {True}
    linears = [f"nn.Module: Linear_{number}" for number in range(4)]
    first = [
        ("nn.Module: Block_0", [(linears[0], []), (linears[1], [])]),
        ("nn.Module: Block_1", [(linears[2], []), (linears[3], [])]),
    ]
    whole = ("nn.Module: Net_0", [("nn.Module: Sequential_0", first)])
    assert [frame.tree() for frame in frames if frame.event["args"]["Python parent id"] is None] == [whole, whole]
    assert [frame.event["args"]["Python module id"] for frame in frames if frame.name == linears[3]] == [3, 3]


def test_a_module_at_an_old_address_is_another_one(torch, tmp_path):
    x = torch.ones(2, 4)

    def run():
        for _ in range(5):
            torch.nn.Linear(4, 4)(x)

    frames = recorded(tmp_path, run, with_modules=True)
    assert [frame.name for frame in frames] == [f"nn.Module: Linear_{number}" for number in range(5)]


def test_all_windows_of_a_profile_share_the_numbers_and_the_next_profile_begins_anew(torch, tmp_path):
    first, second, x = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4), torch.ones(2, 4)
    plan = lanescope.schedule(wait=1, warmup=0, active=1, repeat=2)
    with profile(activities=CPU, with_modules=True, schedule=plan, acc_events=True) as prof:
        for step in range(4):
            (first if step < 2 else second)(x)
            prof.step()
    assert [frame.name for frame in frames_of(written(prof, tmp_path)).values()] == [
        "nn.Module: Linear_0",
        "nn.Module: Linear_1",
    ]
    assert [frame.name for frame in recorded(tmp_path, lambda: second(x), with_modules=True)] == ["nn.Module: Linear_0"]


def test_tables_and_trees_are_the_same_with_frames_and_without(torch, tmp_path):
    net, x = make_net(torch), torch.ones(2, 4)

    def run(**options):
        with profile(activities=CPU, **options) as prof:
            with record_function("step"):
                net(x).backward()
        rows = [(event.name, event.cpu_parent.name if event.cpu_parent else None) for event in prof.events()]
        return rows, sorted((row.key, row.count) for row in prof.key_averages()), prof

    run()
    plain_rows, plain_table, plain_prof = run()
    for options in ({"with_stack": True}, {"with_modules": True}):
        rows, table, prof = run(**options)
        assert rows == plain_rows
        assert table == plain_table
        ids = [
            [event["args"]["External id"] for event in written(each, tmp_path)["traceEvents"] if event.get("cat") == "cpu_op"]
            for each in (prof, plain_prof)
        ]
        assert ids[0] == ids[1]


def test_with_modules_says_nothing_and_is_in_the_metadata(torch, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with profile(activities=CPU, with_modules=True) as prof:
            torch.nn.Linear(4, 4)(torch.ones(2, 4))
    assert written(prof, tmp_path)["with_modules"] == 1


def test_a_budget_takes_the_frames_with_the_stacks(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with profile(activities=CPU, with_stack=True, budget="0.5%") as prof:
            began = time.monotonic()
            calls = 0
            while time.monotonic() - began < 3:
                for _ in range(1000):
                    leaf()
                calls += 1000
            thinned_hook = sys.getprofile()
    assert thinned_hook is None
    trace = written(prof, tmp_path)
    assert "stacks" in [period["what"] for period in trace["lanescope_thinned"]]
    leaves = [frame for frame in frames_of(trace).values() if plain(frame.name) == here("leaf")]
    assert 0 < len(leaves) < calls


def test_the_recording_of_a_command_with_stack_has_frames(run_python, tmp_path):
    (tmp_path / "script.py").write_text("def work():\n    pass\nwork()\nimport torch\ndef later():\n    pass\nlater()\n")
    run_python("-m", "lanescope.record", "-o", "out", "--stack", "--", sys.executable, "script.py")
    (path,) = (tmp_path / "out").glob("*.json")
    names = [event["name"] for event in json.loads(path.read_text())["traceEvents"] if event.get("cat") == "python_function"]
    assert any(name.endswith("script.py(5): later") for name in names)


@pytest.mark.parametrize("imports", [True, False])
def test_what_an_import_runs_is_left_out_when_told_so(tmp_path, monkeypatch, imports):
    monkeypatch.syspath_prepend(str(tmp_path))
    name = f"made_of_calls_{imports}"
    (tmp_path / f"{name}.py").write_text("import nested_import\ndef call():\n    pass\nfor _ in range(500):\n    call()\n")
    (tmp_path / "nested_import.py").write_text("def early():\n    pass\nearly()\n")
    monkeypatch.delitem(sys.modules, "nested_import", raising=False)

    def work():
        leaf()
        __import__(name).call()
        with pytest.raises(ImportError):
            __import__("there_is_no_such_module")
        leaf()

    prof = profile(activities=CPU, with_stack=True)
    prof._frames_of_imports = imports
    with prof:
        work()
    frames = frames_of(written(prof, tmp_path)).values()
    (around,) = [frame for frame in frames if plain(frame.name) == here("work")]
    assert len(around.below(here("leaf"))) == 2
    assert len(around.below(f"{name}.py: call")) == (501 if imports else 1)
    assert len(around.below("nested_import.py: early")) == (1 if imports else 0)
    outer = [each for each in around.children if plain(each.name).endswith(": _find_and_load")]
    below = [each.children for frame in around.children for each in frame.below("<frozen importlib._bootstrap>: _find_and_load")]
    assert len(below) >= 2 and all(bool(children) == imports for children in below) and len(outer) <= len(below)


def test_the_recording_of_a_small_program_with_stack_stays_small(run_python, tmp_path, torch):
    """torch imports much of itself when an optimizer is first used: over a million calls."""
    (tmp_path / "script.py").write_text(
        "import torch\n"
        "net = torch.nn.Linear(4, 4)\n"
        "optimizer = torch.optim.SGD(net.parameters(), lr=0.1)\n"
        "def train():\n"
        "    net(torch.ones(2, 4)).sum().backward()\n"
        "    optimizer.step()\n"
        "for _ in range(6):\n"
        "    train()\n"
    )
    run_python("-m", "lanescope.record", "-o", "out", "--stack", "--json", "--", sys.executable, "script.py")
    (path,) = (tmp_path / "out").glob("*.json")
    frames = frames_of(json.loads(path.read_text())).values()
    trains = [frame for frame in frames if plain(frame.name) == "script.py: train"]
    assert [len(frame.below("nn.Module: Linear_0")) for frame in trains] == [1] * 6
    assert len(frames) < 20_000
    lines = lanescope.read_trace(path)
    found = [lines.args(i)["Call stack"] for i in range(len(lines)) if lines.name(i) == "aten::linear"]
    assert len(found) == 6 and all("script.py(5): train;" in stack for stack in found)
